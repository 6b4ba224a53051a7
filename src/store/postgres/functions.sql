-- functions.sql - the ledger for every language that speaks SQL.
--
--	BEGIN;
--	SELECT * FROM hapax_claim('order-1');       -- outcome 'acquired': run; 'replay': the result is in body
--	INSERT INTO orders ...;                     -- the caller's own statements
--	SELECT hapax_complete('order-1', token, convert_to('{"id": 1}', 'UTF8'));
--	COMMIT;                                     -- all of it, or nothing
--
-- Who comes while another transaction holds the key waits for its end (lock_timeout bounds it), then replays.
-- Without p_lease a claim lives in the transaction: committed without completion it counts as lapsed. With
-- p_lease it is a claim like any other, to be committed first and completed by its token later.
--
-- Plans are made once: the planner does not see that a generic one prunes partitions when it runs.
--
-- The tenant is p_tenant, else the setting hapax.tenant. Where row level security applies one of them is needed.

CREATE OR REPLACE FUNCTION @@hapax_tenant(p_tenant text) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_setting text := nullif(current_setting('hapax.tenant', true), '');
BEGIN
	IF coalesce(p_tenant, nullif(v_setting, '*')) IS NOT NULL THEN
		IF p_tenant = '*' THEN
			RAISE EXCEPTION '''*'' is no tenant: a record belongs to one' USING ERRCODE = 'HX004',
				HINT = 'Give the name of a tenant.';
		END IF;
		RETURN convert_to(coalesce(p_tenant, v_setting), 'UTF8');
	END IF;
	IF v_setting IS NULL AND row_security_active('@@hapax_record') THEN
		RAISE EXCEPTION 'no tenant is set, and this role sees one tenant at a time'
			USING ERRCODE = 'HX005', HINT = 'SET hapax.tenant = ''NAME'', or give p_tenant.';
	END IF;
	RETURN 'default'::bytea;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_milliseconds(p_span interval) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN (extract(epoch FROM p_span) * 1000)::bigint;

CREATE OR REPLACE FUNCTION @@hapax_outcome(p_outcome integer) RETURNS text LANGUAGE sql IMMUTABLE
RETURN (ARRAY['acquired', 'replay', 'in_progress', 'mismatch', 'parked', 'applied', 'found', 'absent', 'busy',
	'not_met', 'skipped'])[p_outcome];

-- What does not go becomes an error, so that the transaction around it does not go either.
CREATE OR REPLACE FUNCTION @@hapax_refuse(a @@hapax_answer, p_key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF a.outcome = -6 THEN
		RAISE EXCEPTION 'the token is not the current one of key ''%''', p_key
			USING ERRCODE = 'HX006', HINT = 'Another run took the key over. Roll back.';
	ELSIF a.outcome = -3 THEN
		RAISE EXCEPTION 'a limit was reached for key ''%''', p_key
			USING ERRCODE = 'HX007', HINT = 'Parked records wait for a decision: hapax resolve.';
	END IF;
END
$$;

-- True, or an error.
CREATE OR REPLACE FUNCTION @@hapax_verify(p_key bytea, p_group bytea, p_tenant bytea, p_fingerprint bytea,
	p_ttl bigint, p_lease bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF p_key IS NULL OR length(p_key) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'a key has 1 to 1,024 bytes' USING ERRCODE = 'HX004';
	ELSIF p_group IS NULL OR length(p_group) NOT BETWEEN 1 AND 128 OR length(p_tenant) NOT BETWEEN 1 AND 128 THEN
		RAISE EXCEPTION 'a tenant and a group have 1 to 128 bytes' USING ERRCODE = 'HX004';
	ELSIF length(p_fingerprint) <> 32 THEN
		RAISE EXCEPTION 'a fingerprint is a SHA-256: 32 bytes' USING ERRCODE = 'HX004',
			HINT = 'sha256(payload)';
	ELSIF p_ttl <= 0 OR p_ttl > 3155760000000 THEN
		RAISE EXCEPTION 'a time to live is above 0 and at most 100 years' USING ERRCODE = 'HX004',
			HINT = 'NULL is for ever.';
	ELSIF p_lease NOT BETWEEN 1 AND 604800000 THEN
		RAISE EXCEPTION 'a lease is above 0 and at most 7 days' USING ERRCODE = 'HX004';
	END IF;
	RETURN true;
END
$$;

-- The long way, for what is not new.
CREATE OR REPLACE FUNCTION @@hapax_one_planned(o @@hapax_op, p_lease_less boolean) RETURNS @@hapax_answer
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
	RETURN @@hapax_one(o, NULL, 10000, p_lease_less);
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_claim(
	p_key text, p_fingerprint bytea DEFAULT NULL, p_ttl interval DEFAULT '24 hours', p_lease interval DEFAULT NULL,
	p_on_lapse text DEFAULT 'retry', p_group text DEFAULT 'default', p_tenant text DEFAULT NULL,
	p_attempt_id uuid DEFAULT NULL, p_owner text DEFAULT NULL,
	OUT outcome text, OUT token bigint, OUT attempt bigint, OUT first_seen timestamptz, OUT expires_at timestamptz,
	OUT lease_left interval, OUT result_class text, OUT result_status integer, OUT headers bytea, OUT body bytea)
LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
	v_tenant bytea := @@hapax_tenant(p_tenant);
	v_group bytea := convert_to(p_group, 'UTF8');
	v_key bytea := convert_to(p_key, 'UTF8');
	v_ttl bigint := @@hapax_milliseconds(p_ttl);
	v_lease bigint := @@hapax_milliseconds(p_lease);
	v_good boolean := @@hapax_verify(v_key, v_group, v_tenant, p_fingerprint, v_ttl, v_lease);
	v_lapse integer := CASE p_on_lapse WHEN 'park' THEN 1 WHEN 'retry' THEN 0 END;
	v_attempt_id bytea := uuid_send(coalesce(p_attempt_id, gen_random_uuid()));
	v_owner bytea := substring(convert_to(p_owner, 'UTF8') FOR 128);
	v_now bigint := @@hapax_now();
BEGIN
	IF v_lapse IS NULL THEN
		RAISE EXCEPTION 'on_lapse is ''retry'' or ''park''' USING ERRCODE = 'HX004';
	END IF;
	token := @@hapax_insert(v_tenant, v_group, v_key, true, p_fingerprint, v_attempt_id, v_owner, v_lapse, v_now,
		v_now + coalesce(v_lease, 0), v_ttl, 10000, false);
	IF token IS NOT NULL THEN
		outcome := 'acquired';
		attempt := 1;
		first_seen := to_timestamp(v_now / 1000.0);
		lease_left := coalesce(p_lease, interval '0');
		RETURN;
	END IF;
	o.type := 1;
	o.flags := 1 | (v_lapse << 1);
	o.tenant := v_tenant;
	o.grp := v_group;
	o.key := v_key;
	o.print := p_fingerprint;
	o.attempt_id := v_attempt_id;
	o.owner := v_owner;
	o.lease := v_lease;
	o.ttl := v_ttl;
	a := @@hapax_one_planned(o, p_lease IS NULL);
	IF a.outcome < 0 THEN
		PERFORM @@hapax_refuse(a, p_key);
	END IF;
	outcome := @@hapax_outcome(a.outcome);
	token := a.token;
	attempt := a.attempt;
	first_seen := to_timestamp(a.first_seen / 1000.0);
	expires_at := to_timestamp(a.expires / 1000.0);
	lease_left := make_interval(secs => a.lease_left / 1000.0);
	IF a.outcome = 2 THEN
		result_class := CASE a.result_class WHEN 0 THEN 'ok' ELSE 'definitive' END;
		result_status := a.result_status;
		headers := a.headers;
		body := a.body;
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_by_token(
	p_type integer, p_key text, p_token bigint, p_group text, p_tenant text, p_error text, p_class text,
	p_status integer, p_body bytea, p_lease interval) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
	v_now bigint;
	v_awaited boolean;
	v_good boolean;
BEGIN
	o.type := p_type;
	o.flags := 0;
	o.tenant := @@hapax_tenant(p_tenant);
	o.grp := convert_to(p_group, 'UTF8');
	o.key := convert_to(p_key, 'UTF8');
	o.token := p_token;
	o.error := substring(convert_to(p_error, 'UTF8') FOR 1024);
	o.lease := @@hapax_milliseconds(p_lease);
	o.class := CASE p_class WHEN 'ok' THEN 0 WHEN 'definitive' THEN 1 END;
	IF p_type = 3 AND o.class IS NULL THEN
		RAISE EXCEPTION 'a result is ''ok'' or ''definitive''' USING ERRCODE = 'HX004';
	END IF;
	IF p_status IS NULL THEN
		RAISE EXCEPTION 'a status is a number, and 0 where there is none' USING ERRCODE = 'HX004';
	END IF;
	IF p_token IS NULL THEN
		RAISE EXCEPTION 'a token is needed' USING ERRCODE = 'HX004', HINT = 'hapax_claim() gives it.';
	END IF;
	IF p_type = 2 AND o.lease IS NULL THEN
		RAISE EXCEPTION 'a lease is needed' USING ERRCODE = 'HX004';
	END IF;
	o.kind := CASE WHEN p_body IS NULL AND p_status = 0 THEN 0 ELSE 1 END;
	o.status := p_status;
	o.omitted := 0;
	o.body := p_body;
	IF length(p_body) > 262144 THEN
		o.body := NULL;
		o.omitted := length(p_body);
	END IF;
	v_good := @@hapax_verify(o.key, o.grp, o.tenant, NULL, NULL, o.lease);
	-- The short way: a claim that lives, and a small result. The rest goes by all the rules.
	IF p_type = 3 AND coalesce(length(o.body), 0) <= 512 THEN
		v_now := @@hapax_now();
		UPDATE @@hapax_record r SET state = 2, changed = greatest(v_now, r.changed), lease_ends = 0,
			expires = greatest(v_now, r.changed) + r.ttl, bucket = (greatest(v_now, r.changed) + r.ttl) / 300000,
			attempt_id = NULL, owner = NULL, error = NULL, result_kind = o.kind, result_class = o.class,
			result_status = p_status, result_omitted = o.omitted, body = o.body
			WHERE r.tenant = o.tenant AND r.grp = o.grp AND r.key = o.key AND r.token = o.token AND r.state = 1
			RETURNING r.awaited INTO v_awaited;
		IF FOUND THEN
			IF v_awaited THEN
				PERFORM @@hapax_tell(o.token);
			END IF;
			RETURN;
		END IF;
	END IF;
	a := @@hapax_one(o, NULL, 10000, false);
	IF a.outcome < 0 THEN
		PERFORM @@hapax_refuse(a, p_key);
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_complete(
	p_key text, p_token bigint, p_body bytea DEFAULT NULL, p_class text DEFAULT 'ok', p_status integer DEFAULT 0,
	p_group text DEFAULT 'default', p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(3, p_key, p_token, p_group, p_tenant, NULL, p_class, p_status, p_body, NULL)
$$;

CREATE OR REPLACE FUNCTION @@hapax_release(
	p_key text, p_token bigint, p_error text DEFAULT NULL, p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(4, p_key, p_token, p_group, p_tenant, p_error, 'ok', 0, NULL, NULL)
$$;

CREATE OR REPLACE FUNCTION @@hapax_renew(
	p_key text, p_token bigint, p_lease interval DEFAULT '30 seconds', p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(2, p_key, p_token, p_group, p_tenant, NULL, 'ok', 0, NULL, p_lease)
$$;

CREATE OR REPLACE FUNCTION @@hapax_park(
	p_key text, p_token bigint, p_error text DEFAULT NULL, p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(5, p_key, p_token, p_group, p_tenant, p_error, 'ok', 0, NULL, NULL)
$$;

-- Claim and completion in one step, for work that is done in the same transaction: 'acquired' is the first. With
-- p_raise anything else is an error (SQLSTATE HX002), so that what was sent behind it in one go does not happen.
CREATE OR REPLACE FUNCTION @@hapax_check(
	p_key text, p_fingerprint bytea DEFAULT NULL, p_ttl interval DEFAULT '24 hours', p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL, p_raise boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
	v_tenant bytea := @@hapax_tenant(p_tenant);
	v_group bytea := convert_to(p_group, 'UTF8');
	v_key bytea := convert_to(p_key, 'UTF8');
	v_ttl bigint := @@hapax_milliseconds(p_ttl);
	v_good boolean := @@hapax_verify(v_key, v_group, v_tenant, p_fingerprint, v_ttl, NULL);
BEGIN
	IF @@hapax_insert(v_tenant, v_group, v_key, false, p_fingerprint, NULL, NULL, 0, @@hapax_now(), 0, v_ttl, 0,
		false) IS NOT NULL THEN
		RETURN 'acquired';
	END IF;
	o.type := 6;
	o.flags := 0;
	o.tenant := v_tenant;
	o.grp := v_group;
	o.key := v_key;
	o.print := p_fingerprint;
	o.ttl := v_ttl;
	a := @@hapax_one_planned(o, true);
	IF p_raise AND a.outcome <> 1 THEN
		RAISE EXCEPTION 'key ''%'' is not new: %', p_key, @@hapax_outcome(a.outcome) USING ERRCODE = 'HX002';
	END IF;
	RETURN @@hapax_outcome(a.outcome);
END
$$;

-- The same for many keys at once: those that are new, to be worked on in the same transaction. Keys are taken in
-- their order, so that two such calls do not lock each other out.
CREATE OR REPLACE FUNCTION @@hapax_check_all(
	p_keys text[], p_ttl interval DEFAULT '24 hours', p_group text DEFAULT 'default', p_tenant text DEFAULT NULL)
RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_tenant bytea := @@hapax_tenant(p_tenant);
	v_group bytea := convert_to(p_group, 'UTF8');
	v_ttl bigint := @@hapax_milliseconds(p_ttl);
	v_now bigint := @@hapax_now();
	v_key text;
	v_done text[];
	v_good boolean;
BEGIN
	IF p_keys IS NULL THEN
		RAISE EXCEPTION 'an array of keys is needed' USING ERRCODE = 'HX004', HINT = 'It may be empty.';
	END IF;
	FOREACH v_key IN ARRAY p_keys LOOP
		v_good := @@hapax_verify(convert_to(v_key, 'UTF8'), v_group, v_tenant, NULL, v_ttl, NULL);
	END LOOP;
	PERFORM @@hapax_token_next(v_now);
	WITH made AS (
		INSERT INTO @@hapax_record SELECT v_tenant, v_group, convert_to(k, 'UTF8'), 2, 1, 0, 0, 0, false, 1,
			nextval('@@hapax_token'), v_now, v_now, 0, v_now + v_ttl, v_ttl, (v_now + v_ttl) / 300000, 0, 0
			FROM (SELECT DISTINCT u COLLATE "C" AS k FROM unnest(p_keys) u ORDER BY 1) s
		ON CONFLICT DO NOTHING RETURNING key)
	SELECT coalesce(array_agg(convert_from(key, 'UTF8')), '{}') INTO v_done FROM made;
	RETURN QUERY SELECT unnest(v_done);
	-- Those that are there already: expired or failed ones are new again.
	FOR v_key IN SELECT DISTINCT u COLLATE "C" FROM unnest(p_keys) u WHERE NOT u = ANY (v_done) ORDER BY 1 LOOP
		IF @@hapax_check(v_key, NULL, p_ttl, p_group, p_tenant) = 'acquired' THEN
			RETURN NEXT v_key;
		END IF;
	END LOOP;
END
$$;
