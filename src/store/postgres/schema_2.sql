-- schema_2.sql - version 2 of the tables: waiters are notified.
--
-- A caller that got IN_PROGRESS and listens sets `awaited`, which stays until the claim ends. Only
-- then is the end announced by NOTIFY, which makes commits wait for each other.

ALTER TABLE @@hapax_record ADD COLUMN awaited boolean;

-- Its text is parsed again for every statement that writes: a tenth of the cost of a claim.
ALTER TABLE @@hapax_record DROP CONSTRAINT IF EXISTS hapax_record_state_check;

-- Functions whose parameters have changed.
DROP FUNCTION IF EXISTS @@hapax_check_input(bytea, bytea, bytea, bytea, bigint);
DROP FUNCTION IF EXISTS @@hapax_insert(bytea, bytea, bytea, boolean, bytea, bytea, bytea, integer,
	bigint, bigint, bigint);
