-- Schema 10. The certifying rounds of all finalists of a session, not only of its winner.

-- A finalist of a session that ended. The finalists were timed in turn, and the times at the same
-- place of their lists belong to one round.
CREATE TABLE finalists (
  session INTEGER NOT NULL REFERENCES sessions (id),
  place INTEGER NOT NULL,  -- those that stayed to the end first, and the default first of them
  config TEXT NOT NULL CHECK (config <> ''),
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  samples_us TEXT NOT NULL CHECK (json_valid(samples_us)),  -- fewer if it left earlier
  batch INTEGER NOT NULL,  -- launches averaged in each
  left_as TEXT CHECK (left_as IN ('slower', 'failed', 'slower elsewhere')),  -- NULL: it stayed
  checksum INTEGER,
  PRIMARY KEY (session, place)
) STRICT, WITHOUT ROWID;
