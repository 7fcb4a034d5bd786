-- Schema 7. A run of the tuner that did not finish goes on where it stopped (docs/decisions/0023), and
-- the answers of pinned problems never change.

-- One command: what was asked for, and how it ended.
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  request TEXT NOT NULL CHECK (request <> ''),  -- hash of everything that the trials depend on but the seed
  seed TEXT NOT NULL,
  command TEXT NOT NULL,
  started_utc TEXT NOT NULL,
  ended_utc TEXT,  -- NULL: it is running, or did not finish
  checksum INTEGER
) STRICT;

CREATE INDEX runs_by_request ON runs (request);

ALTER TABLE sessions ADD COLUMN run INTEGER REFERENCES runs (id);  -- NULL: it can't be resumed
ALTER TABLE sessions ADD COLUMN plan TEXT;  -- JSON: what the search was given; NULL: it did not begin

CREATE INDEX sessions_by_run ON sessions (run);

ALTER TABLE trials ADD COLUMN phase TEXT;  -- plan, search, finals or lost; NULL: unknown
ALTER TABLE trials ADD COLUMN asks INTEGER;  -- how often the strategy had been asked when it was told this trial
ALTER TABLE trials ADD COLUMN elapsed_s REAL;  -- seconds of the session's budget that were spent then

-- Problems whose answer never changes.
CREATE TABLE pins (
  problem TEXT NOT NULL CHECK (problem <> ''),
  device INTEGER NOT NULL REFERENCES devices (id),
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  pinned_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (problem, device, cold)
) STRICT, WITHOUT ROWID;
