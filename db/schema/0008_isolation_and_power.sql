-- Schema 8. Candidates that hung or crashed are found without reading the others; clocks, power and the
-- reasons of throttling are recorded where the driver tells them; and the configuration that needs the
-- least energy is an answer of its own (docs/decisions/0024).

CREATE INDEX trials_that_ended_badly ON trials (session) WHERE status IN ('timeout', 'crash');

ALTER TABLE sessions ADD COLUMN objective TEXT;  -- "energy"; NULL: time

ALTER TABLE trials ADD COLUMN watts REAL;  -- of the card, after the samples; NULL: unknown
ALTER TABLE trials ADD COLUMN celsius REAL;
ALTER TABLE trials ADD COLUMN throttled TEXT;  -- "power cap, thermal"; NULL: unknown or not

ALTER TABLE winners ADD COLUMN watts REAL;  -- after the rounds
ALTER TABLE winners ADD COLUMN celsius REAL;
ALTER TABLE winners ADD COLUMN throttled TEXT;

-- The certified answer for a problem in some circumstances if joules count, not microseconds.
CREATE TABLE energy_winners (
  problem TEXT NOT NULL CHECK (problem <> ''),
  circumstances INTEGER NOT NULL REFERENCES circumstances (id),
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  session INTEGER REFERENCES sessions (id),
  started_utc TEXT NOT NULL,
  config TEXT NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  joules REAL,  -- of one launch
  low REAL,
  high REAL,
  watts REAL,
  us REAL,  -- of one launch, in the same blocks
  default_joules REAL,
  default_low REAL,
  default_high REAL,
  source TEXT NOT NULL,  -- the sensor
  card TEXT,
  checksum INTEGER,
  PRIMARY KEY (problem, circumstances, cold)
) STRICT, WITHOUT ROWID;
