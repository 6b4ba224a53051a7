-- schema_4.sql - version 4 of the store: a record keeps the event that its key was claimed for.
--
-- The column has the bytes of src/record/cause.c, not four texts. A database need not have a
-- character for every one of UTF-8, and a claim must not fail for a text that decides nothing. Each
-- column of an answer costs time, too. hapax_processed_events shows the parts.

ALTER TABLE @@hapax_record ADD COLUMN cause bytea;
ALTER TYPE @@hapax_op ADD ATTRIBUTE cause bytea;
ALTER TYPE @@hapax_answer ADD ATTRIBUTE cause bytea;

-- Functions whose parameters have changed; hapax_claim() has a new result, too (holder_token). The
-- functions that replace them get their grants (regrant.sql). If an object of another owner depends
-- on an old form, the migration fails with PostgreSQL's own error.
DO $do$
DECLARE
	v_name text;
BEGIN
	FOR v_name IN SELECT p.oid::regprocedure FROM pg_proc p
		JOIN pg_class c ON c.relnamespace = p.pronamespace
		WHERE c.oid = '@@hapax_meta'::regclass AND (p.proname IN ('hapax_insert',
			'hapax_operate', 'hapax_join', 'hapax_tx_take', 'hapax_tx_claim')
		OR p.oid = to_regprocedure('@@hapax_claim(text, bytea, interval, interval, text, text,'
			' text, uuid, text)')) LOOP
		EXECUTE 'DROP FUNCTION ' || v_name;
	END LOOP;
END
$do$;
