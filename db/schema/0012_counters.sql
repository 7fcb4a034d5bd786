-- Schema 12. What hardware counters tell of a configuration's run, beside its trials
-- (docs/profile.md).

-- The latest counters of a configuration for a problem on a device model. They need no trial: a
-- profiled configuration may come from another database.
CREATE TABLE counters (
  device TEXT NOT NULL CHECK (device <> ''),  -- fingerprint
  problem TEXT NOT NULL CHECK (problem <> ''),
  config TEXT NOT NULL CHECK (config <> ''),
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  device_name TEXT NOT NULL,
  driver TEXT NOT NULL,
  compiler TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source <> ''),  -- "CUPTI 13.0, GH100"
  passes INTEGER NOT NULL,
  figures TEXT NOT NULL CHECK (json_valid(figures)),  -- values by name; absent ones are not counted
  us REAL,  -- of a run that was not counted; NULL: not timed
  card TEXT,  -- UUID; NULL: unknown
  recorded_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (device, problem, config, cold)
) STRICT, WITHOUT ROWID;
