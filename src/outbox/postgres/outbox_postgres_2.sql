-- outbox_postgres_2.sql - from version 1 of the outbox's tables to version 2. "@@" stands for the
-- schema and a dot.
--
-- (5) A lease that ends much later than a lease granted now was granted before the clock went back:
--     it has lapsed (hapax_outbox_tend). The same applies to a pause (hapax_outbox_settle).

ALTER TABLE @@hapax_outbox_relay ADD COLUMN lease_ms bigint NOT NULL DEFAULT 3600000;
-- It has another parameter now.
DROP FUNCTION IF EXISTS @@hapax_outbox_settle(text);
UPDATE @@hapax_outbox_meta SET version = 2;
