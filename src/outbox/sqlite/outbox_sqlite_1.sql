-- outbox_sqlite_1.sql - the outbox's tables in a SQLite database, version 1. See
-- outbox_postgres_1.sql.
--
-- Only one transaction writes at a time, so the order of seq is the order of commits without a
-- lock.

CREATE TABLE main.hapax_outbox_meta (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	version INTEGER NOT NULL,
	token INTEGER NOT NULL
) STRICT;
INSERT INTO main.hapax_outbox_meta VALUES (1, 1, 0);

CREATE TABLE main.hapax_outbox (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	part INTEGER NOT NULL,
	state INTEGER NOT NULL DEFAULT 0,
	held INTEGER NOT NULL DEFAULT 0,
	attempts INTEGER NOT NULL DEFAULT 0,
	next_ms INTEGER NOT NULL DEFAULT 0,
	created_ms INTEGER NOT NULL,
	sent_ms INTEGER,
	topic TEXT NOT NULL,
	ordering_key TEXT,
	type TEXT,
	source TEXT,
	subject TEXT,
	content_type TEXT,
	headers TEXT,
	payload BLOB NOT NULL,
	error TEXT,
	origin TEXT,
	origin_id TEXT
) STRICT;
CREATE INDEX main.hapax_outbox_pending ON hapax_outbox (seq, part) WHERE state = 0;
CREATE INDEX main.hapax_outbox_held ON hapax_outbox (ordering_key, seq) WHERE held = 1;
CREATE INDEX main.hapax_outbox_sent ON hapax_outbox (sent_ms) WHERE state = 1;

CREATE TABLE main.hapax_outbox_part (
	part INTEGER PRIMARY KEY,
	token INTEGER NOT NULL,
	relay TEXT,
	until_ms INTEGER NOT NULL
) STRICT;
WITH RECURSIVE n (part) AS (SELECT 0 UNION ALL SELECT part + 1 FROM n WHERE part < 63)
INSERT INTO hapax_outbox_part SELECT part, 0, NULL, 0 FROM n;

CREATE TABLE main.hapax_outbox_relay (
	relay TEXT PRIMARY KEY,
	owner TEXT NOT NULL,
	until_ms INTEGER NOT NULL
) STRICT;
