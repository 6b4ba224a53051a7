-- outbox_postgres_1.sql - the outbox's tables, version 1. "@@" stands for the schema and a dot.
--
-- (1) A row is written in the transaction of the change that it reports. A relay finds rows by
--     their state, never by a number above the last one seen: transactions commit in another order
--     than they take numbers.
-- (2) seq is taken under an advisory lock on the ordering key, which lasts until the end of the
--     transaction. So within one key the order of seq is the order of commits (hapax_outbox_add).
-- (3) Rows are published in the order of seq within their ordering key. `held` marks rows that
--     block later ones of their key: parked, waiting, or to be retried later.
-- (4) A partition belongs to one relay at a time, by lease and token. Times are milliseconds since
--     1970.

CREATE TABLE @@hapax_outbox_meta (
	id smallint PRIMARY KEY CHECK (id = 1),
	version integer NOT NULL
);
INSERT INTO @@hapax_outbox_meta VALUES (1, 1);

CREATE SEQUENCE @@hapax_outbox_seq AS bigint;
CREATE SEQUENCE @@hapax_outbox_token AS bigint MAXVALUE 9007199254740991;

CREATE TABLE @@hapax_outbox (
	seq bigint PRIMARY KEY,
	id text NOT NULL,                      -- of the message, the same however often it is published
	part smallint NOT NULL,                -- 0 to 63, by the ordering key
	state smallint NOT NULL DEFAULT 0,     -- 0 pending, 1 sent, 2 parked, 3 waiting behind one that is parked
	held boolean NOT NULL DEFAULT false,
	attempts integer NOT NULL DEFAULT 0,
	next_ms bigint NOT NULL DEFAULT 0,     -- not before
	created_ms bigint NOT NULL,
	sent_ms bigint,
	topic text NOT NULL,
	ordering_key text,                     -- NULL: in any order
	type text,
	source text,
	subject text,
	content_type text,
	headers jsonb,                         -- an object of texts
	payload bytea NOT NULL,
	error text,                            -- of the last attempt
	origin text,                           -- the table that the row was taken from, and its id there
	origin_id text
);
CREATE UNIQUE INDEX hapax_outbox_id ON @@hapax_outbox (id);
-- By an expression, so that no other index has this order: the primary key would lead through all
-- sent rows.
CREATE INDEX hapax_outbox_pending ON @@hapax_outbox ((seq + 0), part) WHERE state = 0;
CREATE INDEX hapax_outbox_held ON @@hapax_outbox (ordering_key, seq) WHERE held;
CREATE INDEX hapax_outbox_sent ON @@hapax_outbox (sent_ms) WHERE state = 1;

CREATE TABLE @@hapax_outbox_part (
	part smallint PRIMARY KEY,
	token bigint NOT NULL,
	relay text,                            -- NULL: free
	until_ms bigint NOT NULL
);
INSERT INTO @@hapax_outbox_part SELECT n, 0, NULL, 0 FROM generate_series(0, 63) n;

CREATE TABLE @@hapax_outbox_relay (
	relay text PRIMARY KEY,
	owner text NOT NULL,                   -- for people
	until_ms bigint NOT NULL,
	is_idle boolean NOT NULL               -- it waits to be told of new rows
);
