-- Schema 2. A winner is kept for each set of circumstances (docs/decisions/0012), every row carries a
-- checksum, a winner knows what its neighbour's configuration costs here, and databases ship.
-- Checksums of rows that are there already are NULL until the step's end, when all are computed.

ALTER TABLE devices ADD COLUMN checksum INTEGER;
ALTER TABLE problems ADD COLUMN checksum INTEGER;
ALTER TABLE sessions ADD COLUMN checksum INTEGER;
ALTER TABLE trials ADD COLUMN checksum INTEGER;
ALTER TABLE comparisons ADD COLUMN checksum INTEGER;
ALTER TABLE ceilings ADD COLUMN checksum INTEGER;

-- Times are comparable where all of these agree.
CREATE TABLE circumstances (
  id INTEGER PRIMARY KEY,
  device INTEGER NOT NULL REFERENCES devices (id),
  driver TEXT NOT NULL,
  compiler TEXT NOT NULL,
  template_key TEXT NOT NULL,
  checksum INTEGER,
  UNIQUE (device, driver, compiler, template_key)
) STRICT;

-- The certified answer for a problem in some circumstances. WITHOUT ROWID and with the problem's key in
-- the row: a shipped database holds thousands, and nothing but them.
CREATE TABLE certified (
  problem TEXT NOT NULL CHECK (problem <> ''),
  circumstances INTEGER NOT NULL REFERENCES circumstances (id),
  cold INTEGER NOT NULL CHECK (cold IN (0, 1)),
  session INTEGER REFERENCES sessions (id),  -- NULL: it came from another database
  greta_version TEXT NOT NULL,
  started_utc TEXT NOT NULL,  -- of the session that certified it
  config TEXT NOT NULL,  -- as text; "#FORM values" where config_forms has the names
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  median_us REAL,
  low_us REAL,
  high_us REAL,
  p99_us REAL,
  batch INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  flush_bytes INTEGER NOT NULL,
  clocks TEXT NOT NULL,
  default_us REAL,
  speedup REAL,
  speedup_low REAL,
  speedup_high REAL,
  confidence REAL,
  rounds INTEGER NOT NULL,
  roofline REAL,
  passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
  error REAL,
  bound REAL,
  method TEXT NOT NULL,
  detail TEXT NOT NULL,
  ties TEXT NOT NULL CHECK (json_valid(ties)),  -- [[configuration, ratio to the winner], ...]
  -- Raw data and the compiler's figures: none in a shipped database.
  samples_us TEXT NOT NULL CHECK (json_valid(samples_us)),
  default_samples_us TEXT NOT NULL CHECK (json_valid(default_samples_us)),
  kernels TEXT NOT NULL CHECK (json_valid(kernels)),
  -- What the winner of the nearest other shape costs here; NULL where nobody looked.
  neighbour TEXT,  -- its dimensions
  regret REAL,  -- its time here over the winner's
  regret_source TEXT CHECK (regret_source IN ('same', 'tie', 'trials', 'measured')),
  checksum INTEGER,
  CHECK ((neighbour IS NULL) = (regret_source IS NULL)),
  PRIMARY KEY (problem, circumstances, cold)
) STRICT, WITHOUT ROWID;

-- Of a shipped database: names of a configuration's variant and parameters, "tiled BM BN", and other
-- texts that rows share; "#3" stands for the third.
CREATE TABLE config_forms (
  id INTEGER PRIMARY KEY,
  names TEXT NOT NULL UNIQUE,
  checksum INTEGER
) STRICT;

-- Of a shipped database: how many rows each table has, and the sum of their checksums.
CREATE TABLE manifest (
  name TEXT PRIMARY KEY,
  row_count INTEGER NOT NULL,
  sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What another library needs for a problem, as its own files say.
CREATE TABLE peers (
  problem TEXT NOT NULL CHECK (problem <> ''),
  library TEXT NOT NULL CHECK (library <> ''),
  circumstances TEXT NOT NULL,  -- its versions and device, in its words
  solution TEXT NOT NULL,  -- its name for the kernel it chose
  us REAL,
  imported_utc TEXT NOT NULL,
  checksum INTEGER,
  PRIMARY KEY (problem, library, circumstances)
) STRICT, WITHOUT ROWID;

INSERT INTO circumstances (device, driver, compiler, template_key)
  SELECT DISTINCT s.device, s.driver, s.compiler, s.template_key
  FROM winners w JOIN sessions s ON s.id = w.session
  ORDER BY w.session;

-- JSON's numbers: "NaN", "Infinity" and "-Infinity" are text there.
INSERT INTO certified
  SELECT p.key, c.id, w.cold, w.session, s.greta_version, s.started_utc, w.config, w.is_default,
    w.median_us, w.low_us, w.high_us,
    CASE json_extract(w.measurement, '$.p99_us')
      WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999
      ELSE CAST(json_extract(w.measurement, '$.p99_us') AS REAL) END,
    json_extract(w.measurement, '$.batch'), json_extract(w.measurement, '$.dropped'),
    CAST(json_extract(w.measurement, '$.flush_bytes') AS INTEGER),
    json_extract(w.measurement, '$.clocks'), w.default_us, w.speedup, w.speedup_low,
    w.speedup_high, w.confidence, w.rounds, w.roofline, json_extract(w.verdict, '$.passed'),
    CASE json_extract(w.verdict, '$.error')
      WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999
      ELSE CAST(json_extract(w.verdict, '$.error') AS REAL) END,
    CASE json_extract(w.verdict, '$.bound')
      WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN 9e999 WHEN '-Infinity' THEN -9e999
      ELSE CAST(json_extract(w.verdict, '$.bound') AS REAL) END,
    json_extract(w.verdict, '$.method'), json_extract(w.verdict, '$.detail'),
    coalesce((SELECT json_group_array(json_array(
        json_extract(tie.value, '$.config.variant') ||
        coalesce((SELECT group_concat(' ' || json_extract(pair.value, '$[0]') || '=' ||
                    json_extract(pair.value, '$[1]'), '')
                  FROM json_each(tie.value, '$.config.values') pair), ''),
        json_extract(tie.value, '$.ratio_to_winner')))
      FROM json_each(w.ties) tie), '[]'),
    json_extract(w.measurement, '$.samples_us'), w.default_samples_us, w.kernels, NULL, NULL, NULL,
    NULL
  FROM winners w
    JOIN sessions s ON s.id = w.session
    JOIN problems p ON p.id = w.problem
    JOIN circumstances c ON c.device = s.device AND c.driver = s.driver
      AND c.compiler = s.compiler AND c.template_key = s.template_key;

DROP TABLE winners;
ALTER TABLE certified RENAME TO winners;
