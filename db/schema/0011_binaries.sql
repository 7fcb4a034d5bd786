-- Schema 11. A shipped database may carry compiled kernels, so that applications need no compiler
-- (docs/decisions/0034).

-- A kernel compiled for a target.
CREATE TABLE binaries (
  content TEXT NOT NULL CHECK (content <> ''),  -- hash of its source, options and entry
  target TEXT NOT NULL CHECK (target <> ''),  -- "gfx942", "sm_90", "spirv", "spirv khr", "host-gfx942 …"
  name TEXT NOT NULL,  -- of the kernel, for messages: "gemm/tiled"
  compiler TEXT NOT NULL,
  binary BLOB NOT NULL CHECK (length(binary) > 0),  -- code object, cubin, SPIR-V, library
  hash TEXT NOT NULL,  -- of content, target and binary
  compiled_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (content, target)
) STRICT, WITHOUT ROWID;
