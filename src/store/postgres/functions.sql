-- functions.sql - the store for every language that speaks SQL.
--
--	BEGIN;
--	SELECT * FROM hapax_claim('order-1'); -- 'acquired': run; 'replay': body has the result
--	INSERT INTO orders ...;               -- the caller's own statements
--	SELECT hapax_complete('order-1', token, convert_to('{"id": 1}', 'UTF8'));
--	COMMIT;                               -- all of it, or nothing
--
-- If another transaction holds the key, a claim waits until that transaction ends (lock_timeout
-- limits the wait), then replays. Without p_lease, a claim belongs to the transaction: committed
-- without completion, it counts as lapsed. With p_lease, it is an ordinary claim: commit it first,
-- and complete it later by its token.
--
-- Plans are made once: the planner does not see that a generic plan prunes partitions when it runs.
--
-- token is the caller's own, and NULL unless the outcome is 'acquired'. holder_token is for
-- waiters: call hapax_listen(), claim, and commit. If the outcome was 'in_progress', the end of
-- that claim sends a NOTIFY with holder_token as its text. Then claim again.
--
-- p_event_id, p_event_type, p_event_source and p_event_time are the event that the key is claimed
-- for, kept for people and for hapax_processed_events. They decide nothing.
--
-- The tenant is p_tenant, or else the setting hapax.tenant. With row level security, one of them is
-- required.

CREATE OR REPLACE FUNCTION @@hapax_no_tenant(p_tenant text) RETURNS bytea
	LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF p_tenant = '*' THEN
		RAISE EXCEPTION 'invalid tenant ''*'': a record belongs to one tenant'
			USING ERRCODE = 'HX004', HINT = 'Use the name of a tenant.';
	END IF;
	RAISE EXCEPTION 'no tenant is set, but this role sees one tenant at a time'
		USING ERRCODE = 'HX005', HINT = 'SET hapax.tenant = ''NAME'', or use p_tenant.';
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_tenant(p_tenant text) RETURNS bytea LANGUAGE sql STABLE
RETURN CASE
	WHEN p_tenant = '*' THEN @@hapax_no_tenant(p_tenant)
	WHEN p_tenant IS NOT NULL THEN convert_to(p_tenant, 'UTF8')
	WHEN current_setting('hapax.tenant', true) = '*' THEN 'default'::bytea
	WHEN current_setting('hapax.tenant', true) <> ''
		THEN convert_to(current_setting('hapax.tenant', true), 'UTF8')
	WHEN row_security_active('@@hapax_record'::regclass) THEN @@hapax_no_tenant(NULL)
	ELSE 'default'::bytea END;

CREATE OR REPLACE FUNCTION @@hapax_milliseconds(p_span interval) RETURNS bigint
	LANGUAGE sql IMMUTABLE
RETURN (extract(epoch FROM p_span) * 1000)::bigint;

-- Numbers are big-endian in SQL, and little-endian in a cause.
CREATE OR REPLACE FUNCTION @@hapax_reverse(p_bytes bytea) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN (SELECT string_agg(substring(p_bytes FROM i FOR 1), ''::bytea ORDER BY i DESC)
	FROM generate_series(1, length(p_bytes)) i);

CREATE OR REPLACE FUNCTION @@hapax_outcome(p_outcome integer) RETURNS text LANGUAGE sql IMMUTABLE
RETURN (ARRAY['acquired', 'replay', 'in_progress', 'mismatch', 'parked', 'applied', 'found',
	'absent', 'busy', 'not_met', 'skipped'])[p_outcome];

-- A refused operation becomes an error, so that the transaction around it fails as well.
CREATE OR REPLACE FUNCTION @@hapax_refuse(a @@hapax_answer, p_key text) RETURNS void
	LANGUAGE plpgsql AS $$
BEGIN
	IF a.outcome = -3 THEN
		RAISE EXCEPTION 'a limit was reached for key ''%''', p_key
			USING ERRCODE = 'HX007', HINT = 'If keys are parked, run hapax resolve.';
	END IF;
END
$$;

-- o was FENCED: explain why, by the current state of the record.
CREATE OR REPLACE FUNCTION @@hapax_fenced(o @@hapax_op, p_key text) RETURNS void
	LANGUAGE plpgsql AS $$
DECLARE
	v_why text;
BEGIN
	SELECT CASE WHEN r.token > o.token THEN 'A newer token owns the key.'
		WHEN r.token < o.token THEN 'The token is not of this key.'
		WHEN r.state = 2 THEN 'The key is done.'
		ELSE 'The claim was released.' END INTO v_why
		FROM @@hapax_record r WHERE r.tenant = o.tenant AND r.grp = o.grp AND r.key = o.key
		AND (r.state IN (1, 4) OR r.expires IS NULL OR r.expires > @@hapax_now());
	RAISE EXCEPTION 'the token does not hold key ''%''', p_key USING ERRCODE = 'HX006',
		DETAIL = coalesce(v_why,
			'The key has no record: it was never claimed, has expired or was forgotten.'),
		HINT = 'Roll back.';
END
$$;

-- Report what is wrong with the arguments, if anything is.
CREATE OR REPLACE FUNCTION @@hapax_verify(p_key bytea, p_group bytea, p_tenant bytea,
	p_fingerprint bytea, p_ttl bigint, p_lease bigint) RETURNS void
	LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF @@hapax_is_good(p_key, p_group, p_tenant, p_fingerprint, p_ttl, p_lease) THEN
		RETURN;
	ELSIF p_key IS NULL OR length(p_key) NOT BETWEEN 1 AND 1024 THEN
		RAISE EXCEPTION 'a key must be 1 to 1,024 bytes long' USING ERRCODE = 'HX004';
	ELSIF length(p_fingerprint) <> 32 THEN
		RAISE EXCEPTION 'a fingerprint must be a SHA-256 of 32 bytes'
			USING ERRCODE = 'HX004', HINT = 'Use sha256(payload).';
	ELSIF p_ttl <= 0 OR p_ttl > 3155760000000 THEN
		RAISE EXCEPTION 'a TTL must be above 0 and at most 100 years'
			USING ERRCODE = 'HX004', HINT = 'NULL means forever.';
	ELSIF p_lease NOT BETWEEN 1 AND 604800000 THEN
		RAISE EXCEPTION 'a lease must be above 0 and at most 7 days'
			USING ERRCODE = 'HX004';
	END IF;
	RAISE EXCEPTION 'tenant and group must be 1 to 128 bytes long' USING ERRCODE = 'HX004';
END
$$;

-- The full rules, for keys that are not new.
CREATE OR REPLACE FUNCTION @@hapax_one_planned(o @@hapax_op, p_lease_less boolean)
	RETURNS @@hapax_answer
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
	RETURN @@hapax_one(o, NULL, 10000, p_lease_less);
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_is_utf8(p_text text) RETURNS boolean
	LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM convert_from(convert_to(p_text, 'UTF8'), 'UTF8');
	RETURN true;
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
	RETURN false;
END
$$;

-- A text of an event as it is kept: whole characters, at most 255 bytes. A database without an
-- encoding (SQL_ASCII) has texts that are not UTF-8, which are left out, and cuts others within a
-- character.
CREATE OR REPLACE FUNCTION @@hapax_cause_text(p_text text) RETURNS bytea
	LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	v_text text := left(coalesce(p_text, ''), 255);
BEGIN
	WHILE getdatabaseencoding() <> 'UTF8' AND NOT @@hapax_is_utf8(v_text) LOOP
		IF length(p_text) <= 255 OR length(v_text) < 253 THEN
			RETURN '';
		END IF;
		v_text := left(v_text, -1);
	END LOOP;
	WHILE length(convert_to(v_text, 'UTF8')) > 255 LOOP
		v_text := left(v_text, -1);
	END LOOP;
	RETURN convert_to(v_text, 'UTF8');
END
$$;

-- The event of a claim in the form of src/record/cause.c. A time beyond the years 1 to 9999 is left
-- out. NULL: nothing is known of the event.
CREATE OR REPLACE FUNCTION @@hapax_cause(p_id text, p_type text, p_source text, p_time timestamptz)
	RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	v_id bytea := @@hapax_cause_text(p_id);
	v_type bytea := @@hapax_cause_text(p_type);
	v_source bytea := @@hapax_cause_text(p_source);
	v_time bigint := CASE WHEN p_time >= '0001-01-01 00:00+00'
		AND p_time < '10000-01-01 00:00+00'
		THEN floor(extract(epoch FROM p_time) * 1000)::bigint ELSE 0 END;
BEGIN
	IF length(v_id || v_type || v_source) = 0 AND v_time = 0 THEN
		RETURN NULL;
	END IF;
	RETURN substring(int4send(length(v_id)) FROM 4)
		|| substring(int4send(length(v_type)) FROM 4)
		|| substring(int4send(length(v_source)) FROM 4) || @@hapax_reverse(int8send(v_time))
		|| v_id || v_type || v_source;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_claim(
	p_key text, p_fingerprint bytea DEFAULT NULL, p_ttl interval DEFAULT '24 hours',
	p_lease interval DEFAULT NULL, p_on_lapse text DEFAULT 'retry',
	p_group text DEFAULT 'default', p_tenant text DEFAULT NULL, p_attempt_id uuid DEFAULT NULL,
	p_owner text DEFAULT NULL, p_event_id text DEFAULT NULL, p_event_type text DEFAULT NULL,
	p_event_source text DEFAULT NULL, p_event_time timestamptz DEFAULT NULL,
	OUT outcome text, OUT token bigint, OUT attempt bigint, OUT first_seen timestamptz,
	OUT expires_at timestamptz, OUT lease_left interval, OUT result_class text,
	OUT result_status integer, OUT headers bytea, OUT body bytea, OUT holder_token bigint)
LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
	v_now bigint := @@hapax_now();
BEGIN
	-- In one expression: PL/pgSQL prepares each expression again in every transaction.
	token := @@hapax_insert(@@hapax_tenant(p_tenant), convert_to(p_group, 'UTF8'),
		convert_to(p_key, 'UTF8'), true, p_fingerprint,
		uuid_send(coalesce(p_attempt_id, gen_random_uuid())),
		substring(convert_to(p_owner, 'UTF8') FOR 128),
		CASE p_on_lapse WHEN 'park' THEN 1 WHEN 'retry' THEN 0 END, v_now,
		@@hapax_milliseconds(p_lease), @@hapax_milliseconds(p_ttl), 10000,
		CASE WHEN num_nonnulls(p_event_id, p_event_type, p_event_source, p_event_time) > 0
		THEN @@hapax_cause(p_event_id, p_event_type, p_event_source, p_event_time) END);
	IF token IS NOT NULL THEN
		outcome := 'acquired';
		attempt := 1;
		first_seen := to_timestamp(v_now / 1000.0);
		lease_left := coalesce(p_lease, interval '0');
		RETURN;
	END IF;
	o.type := 1;
	o.flags := 1 | CASE p_on_lapse WHEN 'park' THEN 2 WHEN 'retry' THEN 0 END;
	IF o.flags IS NULL THEN
		RAISE EXCEPTION 'on_lapse must be ''retry'' or ''park''' USING ERRCODE = 'HX004';
	END IF;
	IF @@hapax_channel() IN (SELECT pg_listening_channels()) THEN
		o.flags := o.flags | 1024;
	END IF;
	o.tenant := @@hapax_tenant(p_tenant);
	o.grp := convert_to(p_group, 'UTF8');
	o.key := convert_to(p_key, 'UTF8');
	o.print := p_fingerprint;
	o.attempt_id := uuid_send(coalesce(p_attempt_id, gen_random_uuid()));
	o.owner := substring(convert_to(p_owner, 'UTF8') FOR 128);
	o.lease := @@hapax_milliseconds(p_lease);
	o.ttl := @@hapax_milliseconds(p_ttl);
	IF num_nonnulls(p_event_id, p_event_type, p_event_source, p_event_time) > 0 THEN
		o.cause := @@hapax_cause(p_event_id, p_event_type, p_event_source, p_event_time);
	END IF;
	PERFORM @@hapax_verify(o.key, o.grp, o.tenant, o.print, o.ttl, o.lease);
	a := @@hapax_one_planned(o, p_lease IS NULL);
	IF a.outcome < 0 THEN
		PERFORM @@hapax_refuse(a, p_key);
	END IF;
	outcome := @@hapax_outcome(a.outcome);
	-- The holder's token ends the holder's claim, so it is not in the column that callers
	-- complete with.
	token := CASE WHEN a.outcome = 1 THEN a.token END;
	holder_token := CASE WHEN a.outcome = 3 THEN a.token END;
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
	p_type integer, p_key text, p_token bigint, p_group text, p_tenant text, p_error text,
	p_class text, p_status integer, p_body bytea, p_lease interval) RETURNS void
	LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
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
		RAISE EXCEPTION 'a result must be ''ok'' or ''definitive''' USING ERRCODE = 'HX004';
	END IF;
	IF p_status IS NULL THEN
		RAISE EXCEPTION 'a status must be a number; 0 means none' USING ERRCODE = 'HX004';
	END IF;
	IF p_token IS NULL THEN
		RAISE EXCEPTION 'missing token' USING ERRCODE = 'HX004',
			HINT = 'Use the token that hapax_claim() returned.';
	END IF;
	IF p_type = 2 AND o.lease IS NULL THEN
		RAISE EXCEPTION 'missing lease' USING ERRCODE = 'HX004';
	END IF;
	o.kind := CASE WHEN p_body IS NULL AND p_status = 0 THEN 0 ELSE 1 END;
	o.status := p_status;
	o.omitted := 0;
	o.body := p_body;
	IF length(p_body) > 262144 THEN
		o.body := NULL;
		o.omitted := length(p_body);
	END IF;
	PERFORM @@hapax_verify(o.key, o.grp, o.tenant, NULL, NULL, o.lease);
	a := @@hapax_one(o, NULL, 10000, false);
	IF a.outcome = -6 THEN
		PERFORM @@hapax_fenced(o, p_key);
	ELSIF a.outcome < 0 THEN
		PERFORM @@hapax_refuse(a, p_key);
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_complete(
	p_key text, p_token bigint, p_body bytea DEFAULT NULL, p_class text DEFAULT 'ok',
	p_status integer DEFAULT 0, p_group text DEFAULT 'default', p_tenant text DEFAULT NULL)
	RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_awaited boolean;
	v_now bigint := @@hapax_now();
	v_tenant bytea := @@hapax_tenant(p_tenant);
	v_group bytea := convert_to(p_group, 'UTF8');
	v_key bytea := convert_to(p_key, 'UTF8');
BEGIN
	-- A live claim with a small result. All other cases go by the full rules.
	UPDATE @@hapax_record r SET state = 2, changed = greatest(v_now, r.changed), lease_ends = 0,
		expires = greatest(v_now, r.changed) + r.ttl,
		bucket = (greatest(v_now, r.changed) + r.ttl) / 300000, attempt_id = NULL,
		owner = NULL, error = NULL,
		result_kind = CASE WHEN p_body IS NULL AND p_status = 0 THEN 0 ELSE 1 END,
		result_class = CASE p_class WHEN 'ok' THEN 0 ELSE 1 END,
		result_status = p_status, body = p_body
		WHERE r.tenant = v_tenant AND r.grp = v_group AND r.key = v_key
			AND r.token = p_token AND r.state = 1
		AND coalesce(length(p_body), 0) <= 512 AND p_class IN ('ok', 'definitive')
		AND p_status IS NOT NULL
		RETURNING r.awaited INTO v_awaited;
	IF NOT FOUND THEN
		PERFORM @@hapax_by_token(3, p_key, p_token, p_group, p_tenant, NULL, p_class,
			p_status, p_body, NULL);
	ELSIF v_awaited THEN
		PERFORM @@hapax_tell(p_token);
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_release(
	p_key text, p_token bigint, p_error text DEFAULT NULL, p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(4, p_key, p_token, p_group, p_tenant, p_error, 'ok', 0, NULL, NULL)
$$;

CREATE OR REPLACE FUNCTION @@hapax_renew(
	p_key text, p_token bigint, p_lease interval DEFAULT '30 seconds',
	p_group text DEFAULT 'default', p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(2, p_key, p_token, p_group, p_tenant, NULL, 'ok', 0, NULL, p_lease)
$$;

CREATE OR REPLACE FUNCTION @@hapax_park(
	p_key text, p_token bigint, p_error text DEFAULT NULL, p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT @@hapax_by_token(5, p_key, p_token, p_group, p_tenant, p_error, 'ok', 0, NULL, NULL)
$$;

-- Claim and complete in one step, for work that is done in the same transaction: 'acquired' means
-- new. With p_raise, any other outcome is an error (SQLSTATE HX002), so that statements sent after
-- it in the same batch do not run.
CREATE OR REPLACE FUNCTION @@hapax_check(
	p_key text, p_fingerprint bytea DEFAULT NULL, p_ttl interval DEFAULT '24 hours',
	p_group text DEFAULT 'default', p_tenant text DEFAULT NULL, p_raise boolean DEFAULT false)
	RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
BEGIN
	IF @@hapax_insert(@@hapax_tenant(p_tenant), convert_to(p_group, 'UTF8'),
		convert_to(p_key, 'UTF8'), false, p_fingerprint, NULL, NULL, 0, @@hapax_now(), NULL,
		@@hapax_milliseconds(p_ttl), NULL, NULL) IS NOT NULL THEN
		RETURN 'acquired';
	END IF;
	o.type := 6;
	o.flags := 0;
	o.tenant := @@hapax_tenant(p_tenant);
	o.grp := convert_to(p_group, 'UTF8');
	o.key := convert_to(p_key, 'UTF8');
	o.print := p_fingerprint;
	o.ttl := @@hapax_milliseconds(p_ttl);
	PERFORM @@hapax_verify(o.key, o.grp, o.tenant, o.print, o.ttl, NULL);
	a := @@hapax_one_planned(o, true);
	IF p_raise AND a.outcome <> 1 THEN
		RAISE EXCEPTION 'key ''%'' is not new: %', p_key, @@hapax_outcome(a.outcome)
			USING ERRCODE = 'HX002';
	END IF;
	RETURN @@hapax_outcome(a.outcome);
END
$$;

-- The same for many keys at once: returns the new ones, to be processed in the same transaction.
-- Keys are locked in order, so that two such calls cannot deadlock.
CREATE OR REPLACE FUNCTION @@hapax_check_all(
	p_keys text[], p_ttl interval DEFAULT '24 hours', p_group text DEFAULT 'default',
	p_tenant text DEFAULT NULL)
RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_tenant bytea := @@hapax_tenant(p_tenant);
	v_group bytea := convert_to(p_group, 'UTF8');
	v_ttl bigint := @@hapax_milliseconds(p_ttl);
	v_now bigint := @@hapax_now();
	v_key text;
	v_done text[];
BEGIN
	IF p_keys IS NULL THEN
		RAISE EXCEPTION 'missing array of keys' USING ERRCODE = 'HX004',
			HINT = 'It may be empty.';
	END IF;
	PERFORM @@hapax_verify(convert_to(u, 'UTF8'), v_group, v_tenant, NULL, v_ttl, NULL)
		FROM unnest(p_keys) u
		WHERE @@hapax_is_good(convert_to(u, 'UTF8'), v_group, v_tenant, NULL, v_ttl,
			NULL) IS NOT TRUE;
	PERFORM @@hapax_token_next(v_now);
	WITH made AS (
		INSERT INTO @@hapax_record SELECT v_tenant, v_group, convert_to(k, 'UTF8'), 2, 1, 0,
			0, 0, false, 1, nextval('@@hapax_token'), v_now, v_now, 0, v_now + v_ttl,
			v_ttl, (v_now + v_ttl) / 300000, 0, 0
			FROM (SELECT DISTINCT u COLLATE "C" AS k FROM unnest(p_keys) u ORDER BY 1) s
		ON CONFLICT DO NOTHING RETURNING key)
	SELECT coalesce(array_agg(convert_from(key, 'UTF8')), '{}') INTO v_done FROM made;
	RETURN QUERY SELECT unnest(v_done);
	-- Existing keys: expired and failed ones count as new.
	FOR v_key IN SELECT DISTINCT u COLLATE "C" FROM unnest(p_keys) u
		WHERE NOT u = ANY (v_done) ORDER BY 1 LOOP
		IF @@hapax_check(v_key, NULL, p_ttl, p_group, p_tenant) = 'acquired' THEN
			RETURN NEXT v_key;
		END IF;
	END LOOP;
END
$$;
