-- outbox_sqlite_2.sql - from version 1 of the outbox's tables to version 2. See
-- outbox_postgres_2.sql.

ALTER TABLE main.hapax_outbox_relay ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 3600000;
UPDATE main.hapax_outbox_meta SET version = 2;
