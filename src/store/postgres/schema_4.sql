-- schema_4.sql - version 4 of the store: a record keeps the event that its key was claimed for.
--
-- The column has the bytes of src/record/cause.c, not four texts. A database need not have a
-- character for every one of UTF-8, and a claim must not fail for a text that decides nothing. Each
-- column of an answer costs time, too. hapax_processed_events shows the parts.

ALTER TABLE @@hapax_record ADD COLUMN cause bytea;
ALTER TYPE @@hapax_op ADD ATTRIBUTE cause bytea;
ALTER TYPE @@hapax_answer ADD ATTRIBUTE cause bytea;

-- Functions whose parameters have changed.
DO $do$
DECLARE
	v_name text;
BEGIN
	FOR v_name IN SELECT p.oid::regprocedure FROM pg_proc p
		JOIN pg_class c ON c.relnamespace = p.pronamespace
		WHERE c.oid = '@@hapax_meta'::regclass AND p.proname IN ('hapax_insert',
			'hapax_operate', 'hapax_join', 'hapax_tx_take', 'hapax_tx_claim') LOOP
		EXECUTE 'DROP FUNCTION ' || v_name;
	END LOOP;
END
$do$;

-- hapax_claim() takes the event, and returns holder_token, which version 3 added. A function with
-- other parameters cannot be replaced: it is dropped and created again, with its owner and its
-- grants. Its body comes from functions.sql, which replaces this one. If an object of another owner
-- depends on the old form, the migration fails with PostgreSQL's own error.
DO $do$
DECLARE
	v_form text :=
		'@@hapax_claim(text, bytea, interval, interval, text, text, text, uuid, text';
	v_old text := v_form || ')';
	v_name text := v_form || ', text, text, text, timestamptz)';
	v_owner oid;
	v_grants aclitem[];
	g record;
BEGIN
	SELECT p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) INTO v_owner, v_grants
		FROM pg_proc p WHERE p.oid = to_regprocedure(v_old);
	IF NOT FOUND THEN
		RETURN;
	END IF;
	EXECUTE 'DROP FUNCTION ' || v_old;
	CREATE FUNCTION @@hapax_claim(
		p_key text, p_fingerprint bytea, p_ttl interval, p_lease interval, p_on_lapse text,
		p_group text, p_tenant text, p_attempt_id uuid, p_owner text, p_event_id text,
		p_event_type text, p_event_source text, p_event_time timestamptz,
		OUT outcome text, OUT token bigint, OUT attempt bigint, OUT first_seen timestamptz,
		OUT expires_at timestamptz, OUT lease_left interval, OUT result_class text,
		OUT result_status integer, OUT headers bytea, OUT body bytea,
		OUT holder_token bigint) LANGUAGE plpgsql AS 'BEGIN END';
	EXECUTE format('ALTER FUNCTION %s OWNER TO %s', v_name, v_owner::regrole);
	-- The default grants of a new function (PUBLIC, ALTER DEFAULT PRIVILEGES) may differ from
	-- those that this one had.
	FOR g IN SELECT DISTINCT e.grantee FROM pg_proc p,
			aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) e
			WHERE p.oid = to_regprocedure(v_name) LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', v_name,
			CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END);
	END LOOP;
	FOR g IN SELECT e.grantee, bool_or(e.is_grantable AND e.grantee <> v_owner) AS grants
			FROM aclexplode(v_grants) e GROUP BY e.grantee LOOP
		EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', v_name,
			CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
			CASE WHEN g.grants THEN ' WITH GRANT OPTION' ELSE '' END);
	END LOOP;
END
$do$;
