-- Schema 3. Health checks that a device fails with a driver: what they stand for is not used there.

CREATE TABLE unsafe (
  device INTEGER NOT NULL REFERENCES devices (id),
  driver TEXT NOT NULL,
  health_check TEXT NOT NULL CHECK (health_check <> ''),
  status TEXT NOT NULL,  -- how it failed: correctness, timeout, crash …
  message TEXT NOT NULL,
  recorded_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (device, driver, health_check)
) STRICT, WITHOUT ROWID;
