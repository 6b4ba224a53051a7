-- schema_2.sql - version 2 of the ledger's tables: who waits is told.
--
-- `awaited` is set by who was answered IN_PROGRESS and listens, and stays until the claim ends. Only then the end is
-- told by NOTIFY, which makes commits wait for each other.

ALTER TABLE @@hapax_record ADD COLUMN awaited boolean;

-- It is read from its text again for every statement that writes: a tenth of what a claim costs.
ALTER TABLE @@hapax_record DROP CONSTRAINT IF EXISTS hapax_record_state_check;

-- Functions that have another form now.
DROP FUNCTION IF EXISTS @@hapax_check_input(bytea, bytea, bytea, bytea, bigint);
DROP FUNCTION IF EXISTS @@hapax_insert(bytea, bytea, bytea, boolean, bytea, bytea, bytea, integer, bigint, bigint, bigint);
