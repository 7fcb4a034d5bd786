-- Schema 9. A shipped database may carry users' kernels, so that applications need no other files
-- (docs/decisions/0029).

-- A kernel that a file describes, with that file and all files that it names.
CREATE TABLE kernels (
  name TEXT PRIMARY KEY CHECK (name <> ''),  -- of the operation
  description TEXT NOT NULL CHECK (description <> ''),  -- name of the file that describes it
  files BLOB NOT NULL,  -- CBOR: an object of contents by names
  carried_utc TEXT NOT NULL,
  checksum INTEGER
) STRICT, WITHOUT ROWID;
