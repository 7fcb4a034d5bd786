-- Schema 4. A look-up that opens a database reads which problems have winners, and nothing else of their
-- rows, which are long. A shipped database has no such index: its rows are short.

CREATE INDEX winners_by_circumstances ON winners (cold, circumstances);
