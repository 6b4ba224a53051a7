-- schema_3.sql - version 3 of the store: a claim that was not acquired has no token.
--
-- hapax_claim() returns one more column, holder_token. That is another result type, so the function
-- cannot be replaced: it is dropped and created again, with its owner and its grants. Its body
-- comes from functions.sql, which replaces this one. If an object of another owner depends on the
-- old form, the migration fails with PostgreSQL's own error.
DO $do$
DECLARE
	v_name text := '@@hapax_claim(text, bytea, interval, interval, text, text, text, uuid, text)';
	v_owner oid;
	v_grants aclitem[];
	g record;
BEGIN
	SELECT p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) INTO v_owner, v_grants
		FROM pg_proc p WHERE p.oid = to_regprocedure(v_name);
	IF NOT FOUND THEN
		RETURN;
	END IF;
	EXECUTE 'DROP FUNCTION ' || v_name;
	CREATE FUNCTION @@hapax_claim(
		p_key text, p_fingerprint bytea, p_ttl interval, p_lease interval, p_on_lapse text, p_group text, p_tenant text,
		p_attempt_id uuid, p_owner text,
		OUT outcome text, OUT token bigint, OUT attempt bigint, OUT first_seen timestamptz, OUT expires_at timestamptz,
		OUT lease_left interval, OUT result_class text, OUT result_status integer, OUT headers bytea, OUT body bytea,
		OUT holder_token bigint) LANGUAGE plpgsql AS 'BEGIN END';
	EXECUTE format('ALTER FUNCTION %s OWNER TO %s', v_name, v_owner::regrole);
	-- The default grants of a new function (PUBLIC, ALTER DEFAULT PRIVILEGES) may differ from
	-- those that this one had.
	FOR g IN SELECT DISTINCT e.grantee FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) e
			WHERE p.oid = to_regprocedure(v_name) LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', v_name,
			CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END);
	END LOOP;
	FOR g IN SELECT e.grantee, bool_or(e.is_grantable) AS is_grantable FROM aclexplode(v_grants) e GROUP BY e.grantee LOOP
		EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', v_name,
			CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
			CASE WHEN g.is_grantable AND g.grantee <> v_owner THEN ' WITH GRANT OPTION' ELSE '' END);
	END LOOP;
END
$do$;
