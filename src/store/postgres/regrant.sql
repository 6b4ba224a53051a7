-- regrant.sql - owner and grants of functions that a migration dropped and created again.
--
-- A function with other parameters cannot be replaced. hx_postgres_migrator_keep_grants() has noted
-- every function before the migration. The grants that a new function has by default (PUBLIC, ALTER
-- DEFAULT PRIVILEGES) may differ from those that the old one had.

DO $do$
DECLARE
	f record;
	g record;
BEGIN
	FOR f IN SELECT n.oid::regprocedure AS name, k.owner, k.grants,
			coalesce(n.proacl, acldefault('f', n.proowner)) AS given
			FROM json_to_recordset(current_setting('hapax.functions')::json)
				AS k (id oid, name name, owner oid, grants aclitem[])
			JOIN pg_proc n ON n.proname = k.name AND n.pronamespace =
				to_regnamespace(quote_ident((parse_ident('@@hapax'))[1]))
			WHERE NOT EXISTS (SELECT FROM pg_proc p WHERE p.oid = k.id) LOOP
		EXECUTE format('ALTER FUNCTION %s OWNER TO %s', f.name, f.owner::regrole);
		FOR g IN SELECT DISTINCT e.grantee FROM aclexplode(f.given) e LOOP
			EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', f.name,
				CASE WHEN g.grantee = 0 THEN 'PUBLIC'
				ELSE g.grantee::regrole::text END);
		END LOOP;
		FOR g IN SELECT e.grantee,
			bool_or(e.is_grantable AND e.grantee <> f.owner) AS grants
				FROM aclexplode(f.grants) e GROUP BY e.grantee LOOP
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s%s', f.name,
				CASE WHEN g.grantee = 0 THEN 'PUBLIC'
				ELSE g.grantee::regrole::text END, CASE WHEN g.grants
					THEN ' WITH GRANT OPTION' ELSE '' END);
		END LOOP;
	END LOOP;
END
$do$;
