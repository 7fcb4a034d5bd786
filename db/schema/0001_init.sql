-- Schema 1. docs/database.md describes the tables. Conventions: times are ISO 8601 in UTC; a NULL in
-- a REAL column is a NaN; columns that hold JSON follow docs/json.md.

CREATE TABLE devices (
  id INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE CHECK (fingerprint <> ''),
  name TEXT NOT NULL,
  driver TEXT NOT NULL,  -- as last seen, like info
  info TEXT NOT NULL CHECK (json_valid(info)),
  first_seen_utc TEXT NOT NULL,
  last_seen_utc TEXT NOT NULL
) STRICT;

CREATE TABLE problems (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE CHECK (key <> ''),
  op TEXT NOT NULL,
  dtype TEXT NOT NULL,
  out_dtype TEXT NOT NULL,
  dims TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  device INTEGER NOT NULL REFERENCES devices (id),
  problem INTEGER NOT NULL REFERENCES problems (id),
  opened_as TEXT NOT NULL,  -- the device's place at the time: "vulkan:0"
  greta_version TEXT NOT NULL,
  template_key TEXT NOT NULL,
  driver TEXT NOT NULL,
  compiler TEXT NOT NULL,
  strategy TEXT NOT NULL,
  budget TEXT NOT NULL,
  seed TEXT NOT NULL,  -- decimal text: unsigned 64-bit numbers do not fit into INTEGER
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  command TEXT NOT NULL,
  started_utc TEXT NOT NULL,
  outcome TEXT,  -- NULL: running, or killed
  ended_utc TEXT,
  CHECK ((outcome IS NULL) = (ended_utc IS NULL))
) STRICT;

CREATE INDEX sessions_by_device_and_problem ON sessions (device, problem);

CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions (id),
  stand_in TEXT,  -- the problem that was run where it is not the session's
  config TEXT NOT NULL,
  variant TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ok', 'constraints', 'compile', 'launch', 'correctness',
    'timeout', 'crash', 'out_of_memory', 'unavailable', 'invalid_argument', 'device_lost', 'io')),
  message TEXT NOT NULL,
  log TEXT NOT NULL,
  passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
  error REAL,
  bound REAL,
  method TEXT NOT NULL,
  detail TEXT NOT NULL,
  samples_us TEXT NOT NULL CHECK (json_valid(samples_us)),
  median_us REAL,
  low_us REAL,
  high_us REAL,
  p99_us REAL,
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  raced INTEGER NOT NULL CHECK (raced IN (0, 1)),
  batch INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  flush_bytes INTEGER NOT NULL,
  clocks TEXT NOT NULL,
  content_keys TEXT NOT NULL,
  kernels TEXT NOT NULL CHECK (json_valid(kernels)),
  compile_s REAL,
  verify_s REAL,
  measure_s REAL,
  recorded_utc TEXT NOT NULL
) STRICT;

CREATE INDEX trials_by_session ON trials (session);

-- The answer for a device, a problem and cold or warm caches: the last one that was certified.
CREATE TABLE winners (
  device INTEGER NOT NULL REFERENCES devices (id),
  problem INTEGER NOT NULL REFERENCES problems (id),
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  session INTEGER NOT NULL REFERENCES sessions (id),
  config TEXT NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  median_us REAL,
  low_us REAL,
  high_us REAL,
  default_us REAL,
  speedup REAL,
  speedup_low REAL,
  speedup_high REAL,
  confidence REAL,
  rounds INTEGER NOT NULL,
  measurement TEXT NOT NULL CHECK (json_valid(measurement)),
  default_samples_us TEXT NOT NULL CHECK (json_valid(default_samples_us)),
  roofline REAL,
  verdict TEXT NOT NULL CHECK (json_valid(verdict)),
  kernels TEXT NOT NULL CHECK (json_valid(kernels)),
  ties TEXT NOT NULL CHECK (json_valid(ties)),
  recorded_utc TEXT NOT NULL,
  PRIMARY KEY (device, problem, cold)
) STRICT, WITHOUT ROWID;

CREATE INDEX winners_by_problem ON winners (problem, cold);

-- Winners of two sessions, for one problem on two devices, timed in alternating turns.
CREATE TABLE comparisons (
  faster INTEGER NOT NULL REFERENCES sessions (id),
  slower INTEGER NOT NULL REFERENCES sessions (id),
  ratio REAL,  -- the slower one's time over the faster one's
  low REAL,
  high REAL,
  confidence REAL,
  faster_us TEXT NOT NULL CHECK (json_valid(faster_us)),
  slower_us TEXT NOT NULL CHECK (json_valid(slower_us)),
  recorded_utc TEXT NOT NULL,
  PRIMARY KEY (faster, slower),
  CHECK (faster <> slower)
) STRICT, WITHOUT ROWID;

CREATE INDEX comparisons_by_slower ON comparisons (slower);

CREATE TABLE ceilings (
  device INTEGER NOT NULL REFERENCES devices (id),
  kind TEXT NOT NULL CHECK (kind <> ''),
  value REAL,
  spread_percent REAL,
  driver TEXT NOT NULL,
  measured_utc TEXT NOT NULL,
  PRIMARY KEY (device, kind)
) STRICT, WITHOUT ROWID;
