-- Schema 6. A row of devices is a device model, and a measurement says on which card of the model it was
-- made (docs/decisions/0019). The step's code (db/sqlite/card_migration.cpp) merges the rows of equal
-- cards, fills the new columns of sound rows, and moves ceilings and failed health checks, whose old
-- tables it removes.

CREATE TABLE cards (
  device INTEGER NOT NULL REFERENCES devices (id),
  uuid TEXT NOT NULL CHECK (uuid <> ''),
  pci_address TEXT NOT NULL,  -- as last seen
  first_seen_utc TEXT NOT NULL,
  last_seen_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (device, uuid)
) STRICT, WITHOUT ROWID;

ALTER TABLE trials ADD COLUMN card TEXT;  -- UUID; NULL: unknown
ALTER TABLE winners ADD COLUMN card TEXT;  -- likewise; "#3" in a shipped database

ALTER TABLE ceilings RENAME TO ceilings_of_schema_5;
CREATE TABLE ceilings (
  device INTEGER NOT NULL REFERENCES devices (id),
  kind TEXT NOT NULL CHECK (kind <> ''),
  card TEXT NOT NULL,  -- UUID; '': unknown
  value REAL,
  spread_percent REAL,
  driver TEXT NOT NULL,
  measured_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (device, kind, card)
) STRICT, WITHOUT ROWID;

ALTER TABLE unsafe RENAME TO unsafe_of_schema_5;
CREATE TABLE unsafe (
  device INTEGER NOT NULL REFERENCES devices (id),
  driver TEXT NOT NULL,
  health_check TEXT NOT NULL CHECK (health_check <> ''),
  card TEXT NOT NULL,  -- UUID; '': unknown
  status TEXT NOT NULL,  -- how it failed: correctness, timeout, crash …
  message TEXT NOT NULL,
  recorded_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (device, driver, health_check, card)
) STRICT, WITHOUT ROWID;
