-- operate.sql - the rules, in the server: one call is one transaction and one round trip. The rules
-- are those of src/record/transition.c; the conformance suite compares the two.
--
-- (1) A claim is an INSERT that may conflict: the second caller waits for the commit of the first.
-- (2) A token is taken while the record is held.
-- (3) An operation that changes nothing locks nothing, so that duplicates are read without a commit
--     that must be synced.
-- (4) The end of a claim is announced only if a caller waits for it, and only by its token. Other
--     tenants also receive the notice, and the token reveals nothing about keys.

CREATE OR REPLACE FUNCTION @@hapax_now() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Let tokens continue above p_token. It holds its own lock, because two calls of setval() must not
-- overlap; only the sequence changes under that lock.
CREATE OR REPLACE FUNCTION @@hapax_token_raise(p_token bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_lock bigint := (1751478384::bigint << 32) | '@@hapax_token'::regclass::oid::bigint;
BEGIN
	PERFORM pg_advisory_lock(v_lock);
	BEGIN
		PERFORM setval('@@hapax_token', p_token) FROM @@hapax_token s
			WHERE s.last_value < p_token;
	EXCEPTION WHEN query_canceled OR others THEN
		PERFORM pg_advisory_unlock(v_lock);
		RAISE;
	END;
	PERFORM pg_advisory_unlock(v_lock);
END
$$;

-- A token above every earlier one: the sequence follows the clock in microseconds, so that a
-- restored backup does not issue a token again. p_token is the next value of the sequence.
CREATE OR REPLACE FUNCTION @@hapax_token_follow(p_now bigint, p_token bigint) RETURNS bigint
	LANGUAGE plpgsql AS $$
BEGIN
	IF p_token >= (p_now - 1000) * 1000 OR p_now * 1000 > 9007199254740991 - 1000000 THEN
		RETURN p_token;
	END IF;
	PERFORM @@hapax_token_raise(p_now * 1000);
	RETURN nextval('@@hapax_token');
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_token_next(p_now bigint) RETURNS bigint LANGUAGE sql
RETURN @@hapax_token_follow(p_now, nextval('@@hapax_token'));

CREATE OR REPLACE FUNCTION @@hapax_count_parked(p_tenant bytea, p_group bytea, p_difference integer)
	RETURNS void
LANGUAGE sql AS $$
	INSERT INTO @@hapax_scope AS s VALUES (p_tenant, p_group, greatest(p_difference, 0))
	ON CONFLICT (tenant, grp) DO UPDATE SET parked = greatest(s.parked + p_difference, 0)
$$;

-- The channel of notices about ended claims; a channel belongs to the whole database.
CREATE OR REPLACE FUNCTION @@hapax_channel() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'hapax_' || left(encode(sha256(convert_to('@@', 'UTF8')), 'hex'), 32);

CREATE OR REPLACE FUNCTION @@hapax_listen() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('LISTEN %I', @@hapax_channel());
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_tell(p_token bigint) RETURNS void LANGUAGE sql
RETURN pg_notify(@@hapax_channel(), p_token::text);

-- Request a notice of the end of a claim. False: it has ended, or its row is locked; this never
-- waits.
CREATE OR REPLACE FUNCTION @@hapax_await(p_tenant bytea, p_group bytea, p_key bytea, p_token bigint)
	RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @@hapax_record r WHERE r.tenant = p_tenant AND r.grp = p_group
		AND r.key = p_key
		AND r.token = p_token AND r.state = 1 FOR NO KEY UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	UPDATE @@hapax_record r SET awaited = true WHERE r.tenant = p_tenant AND r.grp = p_group
		AND r.key = p_key;
	RETURN true;
END
$$;

-- Copy the numbers of the record into an answer.
CREATE OR REPLACE FUNCTION @@hapax_describe(INOUT a @@hapax_answer, r @@hapax_record, p_now bigint)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	a.token := r.token;
	a.attempt := r.attempt;
	a.first_seen := r.first_seen;
	a.expires := r.expires;
	a.lease_left := CASE WHEN r.state = 1 AND r.lease_ends > p_now THEN r.lease_ends - p_now
		ELSE 0 END;
END
$$;

-- Copy the record into an answer, with its stored result, unless p_own says that the caller has it.
CREATE OR REPLACE FUNCTION @@hapax_show(INOUT a @@hapax_answer, r @@hapax_record, p_own boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
	a.state := r.state;
	a.origin := r.origin;
	a.on_lapse := r.on_lapse;
	a.result_kind := r.result_kind;
	a.result_class := r.result_class;
	a.result_own := p_own;
	a.changed := r.changed;
	a.lease_ends := r.lease_ends;
	a.ttl := r.ttl;
	a.result_status := r.result_status;
	a.result_omitted := r.result_omitted;
	a.fingerprint := r.fingerprint;
	a.attempt_id := r.attempt_id;
	a.owner := r.owner;
	a.error := r.error;
	a.cause := r.cause;
	a.record_token := r.token;
	a.record_attempt := r.attempt;
	a.record_first_seen := r.first_seen;
	a.record_expires := r.expires;
	IF p_own OR a.outcome = 4 THEN
		RETURN;
	END IF;
	IF r.result_apart THEN
		SELECT p.headers, p.body INTO a.headers, a.body FROM @@hapax_result p
			WHERE p.tenant = r.tenant AND p.grp = r.grp AND p.key = r.key
				AND p.token = r.token
			AND p.expires = coalesce(r.expires, 9223372036854775807);
	ELSE
		a.headers := r.headers;
		a.body := r.body;
	END IF;
END
$$;

-- Write nxt in place of old, which is locked, or as a new row. False: another transaction has just
-- created that row.
CREATE OR REPLACE FUNCTION @@hapax_put(old @@hapax_record, nxt @@hapax_record) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	v_rows bigint;
BEGIN
	IF old.state IS NULL THEN
		INSERT INTO @@hapax_record SELECT nxt.* ON CONFLICT DO NOTHING;
		GET DIAGNOSTICS v_rows = ROW_COUNT;
		RETURN v_rows = 1;
	END IF;
	UPDATE @@hapax_record r SET state = nxt.state, origin = nxt.origin, on_lapse = nxt.on_lapse,
		result_kind = nxt.result_kind, result_class = nxt.result_class,
		result_apart = nxt.result_apart, attempt = nxt.attempt, token = nxt.token,
		first_seen = nxt.first_seen, changed = nxt.changed, lease_ends = nxt.lease_ends,
		expires = nxt.expires, ttl = nxt.ttl, bucket = nxt.bucket,
		result_status = nxt.result_status, result_omitted = nxt.result_omitted,
		fingerprint = nxt.fingerprint, attempt_id = nxt.attempt_id, owner = nxt.owner,
		error = nxt.error, headers = nxt.headers, body = nxt.body, awaited = nxt.awaited,
		cause = nxt.cause
		WHERE r.tenant = nxt.tenant AND r.grp = nxt.grp AND r.key = nxt.key;
	RETURN true;
END
$$;

-- The rare parts of a change: separate results, parked records, waiters.
CREATE OR REPLACE FUNCTION @@hapax_follow(
	o @@hapax_op, old @@hapax_record, nxt @@hapax_record, p_removes boolean) RETURNS void
	LANGUAGE plpgsql AS $$
DECLARE
	v_expires bigint := coalesce(nxt.expires, 9223372036854775807);
BEGIN
	IF old.result_apart AND NOT p_removes AND o.type = 10 THEN
		UPDATE @@hapax_result SET expires = v_expires
			WHERE tenant = old.tenant AND grp = old.grp AND key = old.key
				AND token = old.token
			AND expires = coalesce(old.expires, 9223372036854775807);
	ELSIF old.result_apart THEN
		DELETE FROM @@hapax_result
			WHERE tenant = old.tenant AND grp = old.grp AND key = old.key
				AND token = old.token
			AND expires = coalesce(old.expires, 9223372036854775807);
	END IF;
	IF NOT p_removes AND nxt.result_apart AND o.type <> 10 THEN
		INSERT INTO @@hapax_result
			VALUES (nxt.tenant, nxt.grp, nxt.key, nxt.token, v_expires, o.headers,
				o.body);
	END IF;
	IF (coalesce(old.state, 0) = 4) <> (NOT p_removes AND nxt.state = 4) THEN
		PERFORM @@hapax_count_parked(o.tenant, o.grp, CASE WHEN coalesce(old.state, 0) = 4
			THEN -1 ELSE 1 END);
	END IF;
END
$$;

-- Are these valid values of a record? A NULL result means no.
CREATE OR REPLACE FUNCTION @@hapax_is_good(p_key bytea, p_group bytea, p_tenant bytea,
	p_fingerprint bytea, p_ttl bigint, p_lease bigint) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN length(p_key) BETWEEN 1 AND 1024 AND length(p_group) BETWEEN 1 AND 128
	AND length(p_tenant) BETWEEN 1 AND 128
	AND coalesce(length(p_fingerprint) = 32, true)
	AND coalesce(p_ttl BETWEEN 1 AND 3155760000000, true)
	AND coalesce(p_lease BETWEEN 1 AND 604800000, true);

-- An INSERT may have waited for one that was rolled back, and that one's token may be higher,
-- unless no token was taken since ours. Take another token now that the record is locked.
CREATE OR REPLACE FUNCTION @@hapax_token_retake(p_tenant bytea, p_group bytea, p_key bytea,
	p_now bigint) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_token bigint := @@hapax_token_next(p_now);
BEGIN
	UPDATE @@hapax_record r SET token = v_token WHERE r.tenant = p_tenant AND r.grp = p_group
		AND r.key = p_key;
	RETURN v_token;
END
$$;

-- The two most frequent operations, in as few steps as possible; all other cases use the full rules
-- below. First, the row of a new key: a claim or a mark. Returns its token. NULL: the key has a
-- row, too many keys are parked, or an argument is invalid.
CREATE OR REPLACE FUNCTION @@hapax_insert(
	p_tenant bytea, p_group bytea, p_key bytea, p_is_claim boolean, p_print bytea,
	p_attempt_id bytea, p_owner bytea, p_lapse integer, p_now bigint, p_lease bigint,
	p_ttl bigint, p_parked_max bigint, p_cause bytea)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	v_token bigint := nextval('@@hapax_token');
BEGIN
	IF v_token < (p_now - 1000) * 1000 THEN
		v_token := @@hapax_token_follow(p_now, v_token);
	END IF;
	INSERT INTO @@hapax_record SELECT p_tenant, p_group, p_key, CASE WHEN p_is_claim THEN 1
		ELSE 2 END, CASE WHEN p_is_claim THEN 0 ELSE 1 END, p_lapse, 0, 0, false, 1,
			v_token, p_now, p_now,
		CASE WHEN p_is_claim THEN p_now + coalesce(p_lease, 0) ELSE 0 END,
		CASE WHEN p_is_claim THEN NULL ELSE p_now + p_ttl END, p_ttl,
		(p_now + p_ttl) / 300000, 0, 0, p_print, p_attempt_id, p_owner, NULL, NULL, NULL,
		NULL, p_cause
		WHERE @@hapax_is_good(p_key, p_group, p_tenant, p_print, p_ttl, p_lease)
			AND p_lapse IS NOT NULL
		AND (p_parked_max IS NULL OR coalesce((SELECT s.parked FROM @@hapax_scope s
			WHERE s.tenant = p_tenant AND s.grp = p_group) < p_parked_max, true))
		ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	IF pg_sequence_last_value('@@hapax_token'::regclass) <> v_token THEN
		RETURN @@hapax_token_retake(p_tenant, p_group, p_key, p_now);
	END IF;
	RETURN v_token;
END
$$;

-- A claim or check of a key without a row. NULL: there is one by now.
CREATE OR REPLACE FUNCTION @@hapax_new(
	o @@hapax_op, p_now bigint, p_parked_max bigint, p_lease_less boolean)
	RETURNS @@hapax_answer
LANGUAGE plpgsql AS $$
DECLARE
	a @@hapax_answer;
	v_now bigint := coalesce(p_now, @@hapax_now());
	v_is_claim boolean := o.type = 1;
	v_lapse smallint := CASE WHEN v_is_claim AND o.flags & 2 <> 0 THEN 1 ELSE 0 END;
	v_lease bigint := CASE WHEN NOT v_is_claim THEN 0 WHEN p_lease_less THEN v_now
		ELSE v_now + o.lease END;
BEGIN
	IF o.flags & 1 <> 0
		AND length(o.tenant) + length(o.grp) + length(o.key) + coalesce(length(o.owner), 0)
			+ coalesce(length(o.cause), 0) > o.room THEN
		RETURN NULL;
	END IF;
	a.token := @@hapax_insert(o.tenant, o.grp, o.key, v_is_claim, o.print, o.attempt_id,
		o.owner, v_lapse, v_now, CASE WHEN v_is_claim AND NOT p_lease_less THEN o.lease END,
		o.ttl, CASE WHEN v_is_claim THEN p_parked_max END, o.cause);
	IF a.token IS NULL THEN
		RETURN NULL;
	END IF;
	a.place := o.place;
	a.outcome := 1;
	a.unverified := false;
	a.attempt := 1;
	a.first_seen := v_now;
	IF NOT v_is_claim THEN
		a.expires := v_now + o.ttl;
	END IF;
	a.lease_left := greatest(v_lease - v_now, 0);
	a.took_token := true;
	a.changes := true;
	IF o.flags & 1 <> 0 THEN
		a.state := CASE WHEN v_is_claim THEN 1 ELSE 2 END;
		a.origin := CASE WHEN v_is_claim THEN 0 ELSE 1 END;
		a.on_lapse := v_lapse;
		a.changed := v_now;
		a.lease_ends := v_lease;
		a.ttl := o.ttl;
		a.fingerprint := o.print;
		IF v_is_claim THEN
			a.attempt_id := o.attempt_id;
			a.owner := o.owner;
			a.cause := o.cause;
		END IF;
		a.record_token := a.token;
		a.record_attempt := 1;
		a.record_first_seen := v_now;
		a.record_expires := a.expires;
	END IF;
	RETURN a;
END
$$;

-- The completion of a claim with a small result, if the caller does not want the record. NULL: any
-- other case.
CREATE OR REPLACE FUNCTION @@hapax_end(o @@hapax_op, p_now bigint) RETURNS @@hapax_answer
LANGUAGE plpgsql AS $$
DECLARE
	a @@hapax_answer;
	v_now bigint := coalesce(p_now, @@hapax_now());
	v_awaited boolean;
BEGIN
	UPDATE @@hapax_record r SET state = 2, changed = greatest(v_now, r.changed), lease_ends = 0,
		expires = greatest(v_now, r.changed) + r.ttl,
		bucket = (greatest(v_now, r.changed) + r.ttl) / 300000, attempt_id = NULL,
		owner = NULL, error = NULL, result_kind = coalesce(o.kind, 0),
		result_class = coalesce(o.class, 0), result_status = coalesce(o.status, 0),
		result_omitted = coalesce(o.omitted, 0), headers = o.headers, body = o.body
		WHERE r.tenant = o.tenant AND r.grp = o.grp AND r.key = o.key AND r.token = o.token
			AND r.state = 1
		RETURNING r.token, r.attempt, r.first_seen, r.expires, r.awaited
		INTO a.token, a.attempt, a.first_seen, a.expires, v_awaited;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	IF v_awaited THEN
		PERFORM @@hapax_tell(a.token);
	END IF;
	a.place := o.place;
	a.outcome := 6;
	a.unverified := false;
	a.lease_left := 0;
	a.took_token := false;
	a.changes := true;
	RETURN a;
END
$$;

-- Decide and apply one operation. p_now NULL: the server's clock. p_lease_less: a claim that
-- belongs to the caller's transaction.
CREATE OR REPLACE FUNCTION @@hapax_one(
	o @@hapax_op, p_now bigint, p_parked_max bigint, p_lease_less boolean)
	RETURNS @@hapax_answer
LANGUAGE plpgsql AS $$
DECLARE
	old @@hapax_record;
	nxt @@hapax_record;
	a @@hapax_answer;
	v_now bigint;
	v_ttl bigint; -- of a record that the operation writes
	v_locks boolean := o.type NOT IN (1, 6, 7, 9); -- reads alone are often enough for these
	v_awaits boolean := o.flags & 1024 <> 0;
	v_alive boolean;
	v_acquires boolean;
	v_puts boolean;
	v_removes boolean;
	v_renews boolean;
	v_result boolean; -- the operation brings the result
	v_error bytea;
	v_enters smallint;
	v_room bigint;
	v_due numeric;
BEGIN
	IF o.type = 3 AND o.flags & 1 = 0
		AND coalesce(length(o.headers), 0) + coalesce(length(o.body), 0) <= 512 THEN
		a := @@hapax_end(o, p_now);
		IF a.outcome IS NOT NULL THEN
			RETURN a;
		END IF;
	END IF;
	LOOP
		IF v_locks THEN
			SELECT * INTO old FROM @@hapax_record r
				WHERE r.tenant = o.tenant AND r.grp = o.grp AND r.key = o.key
					FOR UPDATE;
		ELSE
			SELECT * INTO old FROM @@hapax_record r
				WHERE r.tenant = o.tenant AND r.grp = o.grp AND r.key = o.key;
		END IF;
		IF old.state IS NULL AND (o.type = 1 OR o.type = 6) THEN
			a := @@hapax_new(o, p_now, p_parked_max, p_lease_less);
			IF a.outcome IS NOT NULL THEN
				RETURN a;
			END IF;
		END IF;
		v_now := greatest(coalesce(p_now, @@hapax_now()), old.changed);
		-- 2048: ttl is the time of expiry; convert it to a span from now.
		v_ttl := CASE WHEN o.flags & 2048 <> 0
			THEN least(greatest(o.ttl - v_now, 1), 3155760000000) ELSE o.ttl END;
		v_alive := old.state IS NOT NULL
			AND NOT (old.state IN (2, 3) AND coalesce(old.expires <= v_now, false));
		a := NULL;
		a.place := o.place;
		a.unverified := false;
		a.took_token := false;
		a.changes := false;
		a.lease_left := 0;
		v_acquires := false;
		v_puts := false;
		v_removes := false;
		v_renews := false;
		v_result := false;
		v_error := NULL;
		v_enters := NULL;

		IF o.flags & 256 <> 0 THEN
			a.outcome := -3;
		ELSIF o.type = 1 OR o.type = 6 THEN -- claim, check
			IF NOT v_alive OR old.state = 3 THEN
				v_acquires := true;
			ELSE
				a.unverified := o.print IS NULL OR old.fingerprint IS NULL;
				IF NOT a.unverified
					AND substring(o.print FOR length(old.fingerprint))
					<> old.fingerprint THEN
					a.outcome := 4;
				ELSIF old.state = 1 AND o.type = 1
					AND o.attempt_id = old.attempt_id THEN
					a.outcome := 1;
					v_enters := 1;
					v_renews := true;
				ELSIF old.state = 1 AND old.lease_ends > v_now THEN
					a.outcome := 3;
					-- Only once: the current holder may hold the key for long.
					IF v_awaits AND old.awaited IS NULL THEN
						v_awaits := false;
						CONTINUE WHEN NOT @@hapax_await(o.tenant, o.grp,
							o.key, old.token);
					END IF;
				ELSIF old.state = 1 AND old.on_lapse = 1 THEN
					a.outcome := 5;
					v_enters := 4;
					v_error := 'the lease lapsed'::bytea;
				ELSIF old.state = 1 THEN
					v_acquires := true;
				ELSIF old.state = 4 THEN
					a.outcome := 5;
				ELSE
					a.outcome := 2;
				END IF;
			END IF;
		ELSIF o.type BETWEEN 2 AND 5 THEN -- renew, complete, release, park
			v_error := o.error;
			IF NOT v_alive OR old.token <> o.token THEN
				a.outcome := -6;
			ELSIF o.type = 2 AND old.state IN (1, 4) THEN
				v_enters := 1;
				v_renews := true;
			ELSIF o.type = 3 THEN
				v_enters := CASE WHEN old.state = 2 THEN NULL ELSE 2 END;
				v_result := old.state <> 2;
			ELSIF o.type = 4 AND old.state <> 2 THEN
				v_enters := CASE WHEN old.state = 3 THEN NULL ELSE 3 END;
			ELSIF o.type = 5 AND old.state IN (1, 4) THEN
				v_enters := CASE WHEN old.state = 4 THEN NULL ELSE 4 END;
			ELSE
				a.outcome := -6;
			END IF;
			a.outcome := coalesce(a.outcome, 6);
		ELSIF o.type = 7 THEN -- lookup
			a.outcome := CASE WHEN v_alive THEN 7 ELSE 8 END;
		ELSIF o.type = 8 THEN -- forget
			IF NOT v_alive OR (o.flags & 8 <> 0 AND old.state = 3) THEN
				a.outcome := 8;
			ELSIF (old.state IN (1, 4) AND o.flags & 4 = 0)
				OR (o.flags & 8 <> 0 AND old.origin <> 2) THEN
				a.outcome := 9;
			ELSIF o.flags & 8 <> 0 AND o.flags & 128 <> 0
				AND @@hapax_body(old) IS DISTINCT FROM o.expected THEN
				a.outcome := 10;
			ELSE
				a.outcome := 6;
				v_removes := true;
			END IF;
		ELSIF o.type = 9 THEN -- set
			IF v_alive AND old.state <> 3 AND NOT (old.state = 2 AND old.origin = 2)
				AND o.flags & 32 = 0 THEN
				a.outcome := 9;
			ELSIF (o.flags & 32 <> 0 AND v_alive AND old.state <> 3)
				OR (o.flags & 64 <> 0 AND (NOT v_alive OR old.state = 3))
				OR (o.flags & 128 <> 0 AND (NOT v_alive OR old.state = 3
					OR @@hapax_body(old) IS DISTINCT FROM o.expected)) THEN
				a.outcome := 10;
			ELSE
				v_acquires := true;
			END IF;
		ELSIF o.type = 10 THEN -- expire
			IF NOT v_alive OR old.state = 3 THEN
				a.outcome := 8;
			ELSIF NOT (old.state = 2 AND old.origin = 2) THEN
				a.outcome := 9;
			ELSE
				a.outcome := 6;
				nxt := old;
				nxt.ttl := v_ttl;
				nxt.expires := v_now + v_ttl;
				nxt.bucket := nxt.expires / 300000;
				v_puts := true;
			END IF;
		ELSE -- load
			a.outcome := 6;
			nxt := NULL;
			nxt.state := o.state;
			nxt.origin := o.origin;
			nxt.on_lapse := CASE WHEN o.flags & 2 <> 0 THEN 1 ELSE 0 END;
			nxt.attempt := o.attempt;
			nxt.token := o.token;
			nxt.first_seen := o.first_seen;
			nxt.changed := o.changed;
			nxt.lease_ends := o.lease;
			nxt.expires := o.expires;
			nxt.ttl := o.ttl;
			-- The times of a loaded record may be any numbers.
			v_due := CASE WHEN o.state = 1 THEN o.lease::numeric + o.ttl
				ELSE o.expires END;
			nxt.bucket := CASE WHEN v_due IS NOT NULL
				THEN least(greatest(div(v_due, 300000), -2147483648), 2147483647)
				END;
			nxt.fingerprint := o.print;
			nxt.attempt_id := o.attempt_id;
			nxt.owner := o.owner;
			nxt.error := o.error;
			nxt.cause := o.cause;
			v_result := true;
			v_puts := true;
		END IF;

		-- A new run, or a new value.
		IF v_acquires THEN
			IF o.type = 1 THEN
				PERFORM 1 FROM @@hapax_scope s
					WHERE s.tenant = o.tenant AND s.grp = o.grp
						AND s.parked >= p_parked_max;
				IF FOUND THEN
					a.outcome := -3;
					a.unverified := false;
					RETURN a;
				END IF;
			END IF;
			a.outcome := CASE WHEN o.type = 9 THEN 6 ELSE 1 END;
			a.took_token := true;
			nxt := NULL;
			nxt.origin := CASE o.type WHEN 6 THEN 1 WHEN 9 THEN 2 ELSE 0 END;
			nxt.on_lapse := 0;
			nxt.attempt := 1;
			nxt.first_seen := v_now;
			nxt.changed := v_now;
			nxt.ttl := v_ttl;
			IF o.type <> 9 THEN
				IF v_alive THEN
					nxt.first_seen := old.first_seen;
					nxt.attempt := least(old.attempt + 1, 4294967295);
				END IF;
				nxt.fingerprint := o.print;
			ELSIF v_alive AND old.state <> 3 AND o.flags & 16 <> 0 THEN
				nxt.ttl := old.ttl;
			END IF;
			IF o.type = 1 THEN
				nxt.on_lapse := CASE WHEN o.flags & 2 <> 0 THEN 1 ELSE 0 END;
				nxt.owner := o.owner;
				nxt.cause := o.cause;
				nxt.attempt_id := o.attempt_id;
				v_enters := 1;
			ELSE
				v_enters := 2;
				v_result := true;
			END IF;
		ELSIF v_enters IS NOT NULL THEN
			nxt := old;
		END IF;

		IF v_enters IS NOT NULL THEN
			v_puts := true;
			IF nxt.state IS DISTINCT FROM v_enters OR v_enters <> 1 THEN
				nxt.changed := v_now;
			END IF;
			nxt.state := v_enters;
			nxt.lease_ends := 0;
			nxt.expires := NULL;
			IF v_enters = 1 THEN
				nxt.lease_ends := CASE WHEN p_lease_less THEN v_now
					ELSE v_now + o.lease END;
				IF NOT v_renews OR nxt.bucket IS NULL THEN
					nxt.bucket := (v_now + nxt.ttl) / 300000;
				END IF;
			ELSIF v_enters = 4 THEN
				nxt.bucket := NULL;
				nxt.error := v_error;
			ELSE
				nxt.expires := v_now + nxt.ttl;
				nxt.attempt_id := NULL;
				nxt.error := NULL;
				IF v_enters = 3 THEN
					nxt.error := v_error;
				ELSE
					nxt.owner := NULL;
					IF o.type = 9 AND v_alive AND old.state <> 3
						AND o.flags & 16 <> 0 THEN
						nxt.expires := old.expires;
					END IF;
				END IF;
				nxt.bucket := nxt.expires / 300000;
			END IF;
		END IF;
		IF v_result OR v_acquires THEN
			nxt.result_kind := CASE WHEN v_result THEN coalesce(o.kind, 0) ELSE 0 END;
			nxt.result_class := CASE WHEN v_result THEN coalesce(o.class, 0) ELSE 0 END;
			nxt.result_status := CASE WHEN v_result THEN coalesce(o.status, 0)
				ELSE 0 END;
			nxt.result_omitted := CASE WHEN v_result THEN coalesce(o.omitted, 0)
				ELSE 0 END;
			nxt.result_apart := v_result
				AND coalesce(length(o.headers), 0)
				+ coalesce(length(o.body), 0) > 512;
			nxt.headers := CASE WHEN v_result AND NOT nxt.result_apart
				THEN o.headers END;
			nxt.body := CASE WHEN v_result AND NOT nxt.result_apart THEN o.body END;
			nxt.tenant := o.tenant;
			nxt.grp := o.grp;
			nxt.key := o.key;
		END IF;

		-- Nothing to write, so no lock was needed.
		IF NOT v_puts AND NOT v_removes THEN
			IF v_alive AND a.outcome > 0 THEN
				IF a.outcome <> 8 AND NOT (a.outcome = 10 AND old.state = 3) THEN
					a := @@hapax_describe(a, old, v_now);
				END IF;
				IF o.flags & 1 <> 0 THEN
					a := @@hapax_show(a, old, false);
					-- Another transaction has just removed the result: read
					-- again, and lock the record.
					IF old.result_apart AND a.outcome <> 4 AND NOT v_locks
						AND a.headers IS NULL
						AND a.body IS NULL THEN
						v_locks := true;
						CONTINUE;
					END IF;
				END IF;
			END IF;
			RETURN a;
		END IF;
		IF old.state IS NOT NULL AND NOT v_locks THEN
			v_locks := true; -- hold it, then look again
			CONTINUE;
		END IF;
		a.changes := true;

		-- The returned record must fit into the caller's memory before anything is done.
		IF o.flags & 1 <> 0 AND (v_alive OR o.type NOT IN (8, 9)) THEN
			v_room := length(o.tenant) + length(o.grp) + length(o.key);
			IF o.type IN (8, 9) THEN
				v_room := v_room + coalesce(length(old.owner), 0)
					+ coalesce(length(old.error), 0)
					+ coalesce(length(old.cause), 0) + @@hapax_result_size(old);
			ELSE
				v_room := v_room + coalesce(length(nxt.owner), 0)
					+ coalesce(length(nxt.error), 0)
					+ coalesce(length(nxt.cause), 0)
					+ CASE WHEN v_result
						THEN coalesce(length(o.headers), 0)
						+ coalesce(length(o.body), 0)
					WHEN v_alive AND nxt.state = 2 THEN @@hapax_result_size(old)
						ELSE 0 END;
			END IF;
			IF v_room > o.room THEN
				IF o.flags & 512 = 0 THEN
					RAISE EXCEPTION 'more room is needed for the record'
						USING ERRCODE = 'HX003',
							DETAIL = o.place || ' ' || v_room;
				END IF;
				a := NULL;
				a.place := o.place;
				a.outcome := -20;
				RETURN a;
			END IF;
		END IF;
		-- Copied before a removal deletes the result.
		IF o.type IN (8, 9) AND v_alive AND o.flags & 1 <> 0 THEN
			a := @@hapax_show(a, old, false);
		END IF;

		IF v_removes THEN
			a := @@hapax_describe(a, old, v_now);
			DELETE FROM @@hapax_record r WHERE r.tenant = o.tenant AND r.grp = o.grp
				AND r.key = o.key;
			PERFORM @@hapax_follow(o, old, NULL, true);
			IF old.awaited AND old.state = 1 THEN
				PERFORM @@hapax_tell(old.token);
			END IF;
			RETURN a;
		END IF;
		IF o.type = 11 THEN
			PERFORM @@hapax_token_raise(o.token);
		END IF;
		IF a.took_token THEN
			nxt.token := @@hapax_token_next(v_now);
		END IF;
		IF NOT @@hapax_put(old, nxt) THEN
			v_locks := true; -- another caller was faster
			CONTINUE;
		END IF;
		-- As in hapax_insert(): the insert may have waited.
		IF a.took_token AND old.state IS NULL
			AND pg_sequence_last_value('@@hapax_token'::regclass) <> nxt.token THEN
			nxt.token := @@hapax_token_next(v_now);
			UPDATE @@hapax_record r SET token = nxt.token
				WHERE r.tenant = nxt.tenant AND r.grp = nxt.grp AND r.key = nxt.key;
		END IF;
		IF old.result_apart OR nxt.result_apart
			OR (coalesce(old.state, 0) = 4) <> (nxt.state = 4) THEN
			PERFORM @@hapax_follow(o, old, nxt, false);
		END IF;
		IF old.awaited AND old.state = 1 AND (nxt.state <> 1 OR nxt.token <> old.token) THEN
			PERFORM @@hapax_tell(old.token);
		END IF;
		a := @@hapax_describe(a, nxt, v_now);
		IF o.flags & 1 <> 0 AND o.type NOT IN (8, 9) THEN
			a := @@hapax_show(a, nxt, v_result);
		END IF;
		RETURN a;
	END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_body(r @@hapax_record) RETURNS bytea LANGUAGE sql AS $$
	SELECT coalesce(CASE WHEN r.result_apart THEN (SELECT p.body FROM @@hapax_result p
		WHERE p.tenant = r.tenant AND p.grp = r.grp AND p.key = r.key AND p.token = r.token
		AND p.expires = coalesce(r.expires, 9223372036854775807)) ELSE r.body END,
		''::bytea)
$$;

CREATE OR REPLACE FUNCTION @@hapax_result_size(r @@hapax_record) RETURNS bigint LANGUAGE sql AS $$
	SELECT CASE WHEN r.result_apart
		THEN (SELECT coalesce(length(p.headers), 0) + coalesce(length(p.body), 0)
		FROM @@hapax_result p
		WHERE p.tenant = r.tenant AND p.grp = r.grp AND p.key = r.key AND p.token = r.token
		AND p.expires = coalesce(r.expires, 9223372036854775807))
		ELSE coalesce(length(r.headers), 0) + coalesce(length(r.body), 0) END
$$;

-- A group that is all or nothing. Everything runs in a subtransaction, which is undone unless all
-- operations succeed.
CREATE OR REPLACE FUNCTION @@hapax_all(
	p_ops @@hapax_op[], p_now bigint, p_parked_max bigint, p_lease_less boolean)
	RETURNS SETOF @@hapax_answer
LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
	answers @@hapax_answer[] := '{}';
	v_goes boolean := true;
	v_took boolean := false;
	v_token bigint;
	v_now bigint;
	old @@hapax_record;
BEGIN
	BEGIN
		FOREACH o IN ARRAY p_ops LOOP
			a := @@hapax_one(o, p_now, p_parked_max, p_lease_less);
			answers := answers || a;
			v_goes := v_goes AND a.outcome IN (1, 6);
			v_took := v_took OR a.took_token;
		END LOOP;
		IF NOT v_goes THEN
			RAISE EXCEPTION 'an operation of the group failed' USING ERRCODE = 'HX001';
		END IF;
	EXCEPTION WHEN SQLSTATE 'HX001' THEN
		NULL;
	END;
	v_now := coalesce(p_now, @@hapax_now());
	-- Claims share one token, taken when all records are locked.
	IF v_goes AND v_took THEN
		v_token := @@hapax_token_next(v_now);
	END IF;
	FOR i IN 1..cardinality(p_ops) LOOP
		o := p_ops[i];
		a := answers[i];
		IF v_goes THEN
			IF v_took AND o.type = 1 THEN
				UPDATE @@hapax_record r SET token = v_token
					WHERE r.tenant = o.tenant AND r.grp = o.grp
						AND r.key = o.key;
				a.token := v_token;
				a.record_token := v_token;
			END IF;
		ELSIF a.outcome > 0 AND (a.changes OR a.outcome IN (1, 6)) THEN
			-- The operation was undone: answer with the current record.
			SELECT * INTO old FROM @@hapax_record r
				WHERE r.tenant = o.tenant AND r.grp = o.grp AND r.key = o.key;
			v_now := greatest(v_now, old.changed);
			IF old.state IN (2, 3) AND coalesce(old.expires <= v_now, false) THEN
				old := NULL;
			END IF;
			IF a.outcome IN (1, 6) THEN
				a := NULL;
				a.place := o.place;
				a.outcome := 11;
				a.unverified := false;
				a.lease_left := 0;
				IF old.state IS NOT NULL THEN
					a := @@hapax_describe(a, old, v_now);
				END IF;
			END IF;
			a.state := NULL;
			IF o.flags & 1 <> 0 AND old.state IS NOT NULL THEN
				a := @@hapax_show(a, old, false);
			END IF;
		ELSIF a.outcome = 3 AND o.flags & 1024 <> 0 THEN
			-- The request for a notice was undone with the rest.
			PERFORM @@hapax_await(o.tenant, o.grp, o.key, a.token);
		END IF;
		RETURN NEXT a;
	END LOOP;
END
$$;

-- Lookups only: all of them see the store at one moment, because a STABLE function uses the
-- snapshot of the calling statement.
CREATE OR REPLACE FUNCTION @@hapax_look(
	p_now bigint, p_flags integer[], p_tenant bytea[], p_group bytea[], p_key bytea[])
RETURNS SETOF @@hapax_answer LANGUAGE plpgsql STABLE AS $$
DECLARE
	old @@hapax_record;
	a @@hapax_answer;
	v_now bigint;
BEGIN
	FOR i IN 1..cardinality(p_key) LOOP
		SELECT * INTO old FROM @@hapax_record r
			WHERE r.tenant = p_tenant[i] AND r.grp = p_group[i] AND r.key = p_key[i];
		v_now := greatest(coalesce(p_now, @@hapax_now()), old.changed);
		a := NULL;
		a.place := i;
		a.unverified := false;
		a.lease_left := 0;
		IF old.state IS NULL OR (old.state IN (2, 3)
			AND coalesce(old.expires <= v_now, false)) THEN
			a.outcome := 8;
		ELSE
			a.outcome := 7;
			a := @@hapax_describe(a, old, v_now);
			IF p_flags[i] & 1 <> 0 THEN
				a := @@hapax_show(a, old, false);
			END IF;
		END IF;
		RETURN NEXT a;
	END LOOP;
END
$$;

-- The call of the store: operations in the order of their keys. p_group_kind 0: each on its own; 1:
-- they take effect together; 2: all or nothing.
CREATE OR REPLACE FUNCTION @@hapax_operate(
	p_now bigint, p_group_kind smallint, p_lease_less boolean, p_parked_max bigint,
	p_type smallint[], p_flags integer[], p_room bigint[], p_tenant bytea[], p_group bytea[],
	p_key bytea[], p_print bytea[], p_attempt_id bytea[], p_owner bytea[], p_error bytea[],
	p_expected bytea[], p_lease bigint[], p_ttl bigint[], p_token bigint[], p_kind smallint[],
	p_class smallint[], p_status integer[], p_omitted bigint[], p_headers bytea[],
	p_body bytea[], p_state smallint[], p_origin smallint[], p_attempt bigint[],
	p_first_seen bigint[], p_changed bigint[], p_expires bigint[], p_cause bytea[])
RETURNS SETOF @@hapax_answer LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	v_ops @@hapax_op[] := '{}';
BEGIN
	IF 7 = ALL (p_type) AND p_group_kind < 2 THEN
		RETURN QUERY SELECT * FROM @@hapax_look(p_now, p_flags, p_tenant, p_group, p_key);
		RETURN;
	END IF;
	-- The records of a group are locked before the first one is read, in the same order by
	-- every caller.
	IF p_group_kind > 0 THEN
		FOR i IN 1..cardinality(p_key) LOOP
			PERFORM 1 FROM @@hapax_record r
				WHERE r.tenant = p_tenant[i] AND r.grp = p_group[i]
					AND r.key = p_key[i] FOR UPDATE;
		END LOOP;
	END IF;
	FOR o IN SELECT u.place::integer, u.t, u.f, u.r, u.te, u.g, u.k, u.p, u.ai, u.ow, u.e, u.x,
		u.l, u.tt, u.tk, u.ki,
			u.cl, u.st, u.om, u.h, u.b, u.s, u.og, u.at, u.fs, u.ch, u.ex, u.ca
		FROM unnest(p_type, p_flags, p_room, p_tenant, p_group, p_key, p_print,
			p_attempt_id, p_owner, p_error, p_expected, p_lease, p_ttl, p_token, p_kind,
			p_class, p_status, p_omitted, p_headers, p_body, p_state, p_origin,
			p_attempt, p_first_seen, p_changed, p_expires, p_cause)
		WITH ORDINALITY AS u (t, f, r, te, g, k, p, ai, ow, e, x, l, tt, tk, ki, cl, st, om,
			h, b, s, og, at, fs, ch, ex, ca, place) LOOP
		IF p_group_kind = 2 THEN
			v_ops := v_ops || o;
		ELSE
			RETURN NEXT @@hapax_one(o, p_now, p_parked_max, p_lease_less);
		END IF;
	END LOOP;
	IF p_group_kind = 2 THEN
		RETURN QUERY SELECT * FROM @@hapax_all(v_ops, p_now, p_parked_max, p_lease_less);
	END IF;
END
$$;

-- The same within the caller's transaction: in a savepoint, with waits of at most p_wait_ms. An
-- error becomes an answer (place -1, the code in owner, the detail in error), and the caller's
-- statements stay.
CREATE OR REPLACE FUNCTION @@hapax_join(
	p_wait_ms bigint,
	p_now bigint, p_group_kind smallint, p_lease_less boolean, p_parked_max bigint,
	p_type smallint[], p_flags integer[], p_room bigint[], p_tenant bytea[], p_group bytea[],
	p_key bytea[], p_print bytea[], p_attempt_id bytea[], p_owner bytea[], p_error bytea[],
	p_expected bytea[], p_lease bigint[], p_ttl bigint[], p_token bigint[], p_kind smallint[],
	p_class smallint[], p_status integer[], p_omitted bigint[], p_headers bytea[],
	p_body bytea[], p_state smallint[], p_origin smallint[], p_attempt bigint[],
	p_first_seen bigint[], p_changed bigint[], p_expires bigint[], p_cause bytea[])
RETURNS SETOF @@hapax_answer LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	a @@hapax_answer;
	v_wait text := current_setting('lock_timeout');
	v_detail text;
BEGIN
	PERFORM set_config('lock_timeout', p_wait_ms::text, true);
	RETURN QUERY SELECT * FROM @@hapax_operate(p_now, p_group_kind, p_lease_less, p_parked_max,
		p_type, p_flags, p_room, p_tenant, p_group, p_key, p_print, p_attempt_id, p_owner,
		p_error, p_expected, p_lease, p_ttl, p_token, p_kind, p_class, p_status, p_omitted,
		p_headers, p_body, p_state, p_origin, p_attempt, p_first_seen, p_changed, p_expires,
		p_cause);
	PERFORM set_config('lock_timeout', v_wait, true);
EXCEPTION WHEN others THEN
	GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_DETAIL;
	a.place := -1;
	a.owner := convert_to(SQLSTATE, 'UTF8');
	a.error := convert_to(v_detail, 'UTF8');
	RETURN NEXT a;
END
$$;

-- The two steps of a run in the caller's transaction, without arrays and without a savepoint: a
-- failure here fails the savepoint around it (postgres_savepoint.h). Both have few expressions,
-- because PL/pgSQL prepares each of them again in every transaction. They answer in a few bytes: a
-- row with all columns of an answer costs as much as the INSERT.
--
-- First, the claim of a new key: its token and time. NULL: it is not new, too many keys are parked,
-- or there is no room. Then hapax_tx_claim() decides. The INSERT takes the token, and sets its own
-- lock timeout.
CREATE OR REPLACE FUNCTION @@hapax_tx_take(
	p_wait_ms bigint, p_now bigint, p_parked_max bigint, p_flags bigint, p_room bigint,
	p_tenant bytea, p_group bytea, p_key bytea, p_print bytea, p_attempt_id bytea,
	p_owner bytea, p_ttl bigint, p_cause bytea)
RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	v_now bigint := coalesce(p_now, @@hapax_now());
	v_wait text := current_setting('lock_timeout');
	v_token bigint;
	v_last bigint;
BEGIN
	INSERT INTO @@hapax_record AS r SELECT p_tenant, p_group, p_key, 1, 0, (p_flags >> 1) & 1,
		0, 0, false, 1, t.token, v_now, v_now, v_now, NULL, p_ttl, (v_now + p_ttl) / 300000,
		0, 0, p_print, p_attempt_id, p_owner, NULL, NULL, NULL, NULL, p_cause
		FROM (SELECT nextval('@@hapax_token') AS token,
			set_config('lock_timeout', p_wait_ms::text, true) AS wait
			OFFSET 0) t
		WHERE t.wait IS NOT NULL AND t.token >= (v_now - 1000) * 1000
		AND length(p_tenant) + length(p_group) + length(p_key)
		+ coalesce(length(p_owner), 0)
			+ coalesce(length(p_cause), 0) <= p_room
		AND @@hapax_is_good(p_key, p_group, p_tenant, p_print, p_ttl, NULL)
		AND coalesce((SELECT s.parked FROM @@hapax_scope s
			WHERE s.tenant = p_tenant AND s.grp = p_group) < p_parked_max, true)
		ON CONFLICT DO NOTHING
		RETURNING r.token, pg_sequence_last_value('@@hapax_token'::regclass) INTO v_token,
			v_last;
	IF v_token <> v_last THEN
		v_token := @@hapax_token_retake(p_tenant, p_group, p_key, v_now);
	END IF;
	RETURN CASE WHEN set_config('lock_timeout', v_wait, true) IS NOT NULL
		THEN int8send(v_token) || int8send(v_now) END;
END
$$;

-- Decide by the full rules, with waits of at most p_wait_ms.
CREATE OR REPLACE FUNCTION @@hapax_tx_claim(
	p_wait_ms bigint, p_now bigint, p_parked_max bigint, p_flags bigint, p_room bigint,
	p_tenant bytea, p_group bytea, p_key bytea, p_print bytea, p_attempt_id bytea,
	p_owner bytea, p_ttl bigint, p_cause bytea)
RETURNS @@hapax_answer LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
	v_wait text := current_setting('lock_timeout');
BEGIN
	PERFORM set_config('lock_timeout', p_wait_ms::text, true);
	o.place := 1;
	o.type := 1;
	o.flags := p_flags;
	o.room := p_room;
	o.tenant := p_tenant;
	o.grp := p_group;
	o.key := p_key;
	o.print := p_print;
	o.attempt_id := p_attempt_id;
	o.owner := p_owner;
	o.ttl := p_ttl;
	o.cause := p_cause;
	a := @@hapax_one(o, p_now, p_parked_max, true);
	PERFORM set_config('lock_timeout', v_wait, true);
	RETURN a;
END
$$;

-- The completion, after which the COMMIT was already sent: anything but applied is an error.
-- Returns attempt, first seen and expiry. The same transaction must have written the claim (xmin):
-- the handler may have ended it and begun another.
CREATE OR REPLACE FUNCTION @@hapax_tx_finish(
	p_now bigint, p_tenant bytea, p_group bytea, p_key bytea, p_token bigint, p_kind bigint,
	p_class bigint, p_status bigint, p_omitted bigint, p_headers bytea, p_body bytea)
	RETURNS bytea
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_now bigint := coalesce(p_now, @@hapax_now());
	v_answer bytea;
	v_awaited boolean;
BEGIN
	UPDATE @@hapax_record r SET state = 2, changed = greatest(v_now, r.changed), lease_ends = 0,
		expires = greatest(v_now, r.changed) + r.ttl,
		bucket = (greatest(v_now, r.changed) + r.ttl) / 300000,
		attempt_id = NULL, owner = NULL, error = NULL, result_kind = coalesce(p_kind, 0),
		result_class = coalesce(p_class, 0), result_status = coalesce(p_status, 0),
		result_omitted = coalesce(p_omitted, 0), headers = p_headers, body = p_body
		WHERE r.tenant = p_tenant AND r.grp = p_group AND r.key = p_key
			AND r.token = p_token AND r.state = 1
		AND age(r.xmin) <= 0 AND coalesce(length(p_headers), 0)
		+ coalesce(length(p_body), 0) <= 512
		RETURNING int8send(r.attempt) || int8send(r.first_seen)
			|| int8send(coalesce(r.expires, 9223372036854775807)),
		r.awaited INTO v_answer, v_awaited;
	IF v_answer IS NULL OR v_awaited THEN
		IF v_answer IS NULL THEN
			RETURN @@hapax_tx_finish_slowly(p_now, p_tenant, p_group, p_key, p_token,
				p_kind, p_class, p_status, p_omitted, p_headers, p_body);
		END IF;
		PERFORM @@hapax_tell(p_token);
	END IF;
	RETURN v_answer;
END
$$;

-- A large result, or a claim that has changed: decide by the full rules.
CREATE OR REPLACE FUNCTION @@hapax_tx_finish_slowly(
	p_now bigint, p_tenant bytea, p_group bytea, p_key bytea, p_token bigint, p_kind bigint,
	p_class bigint, p_status bigint, p_omitted bigint, p_headers bytea, p_body bytea)
	RETURNS bytea
LANGUAGE plpgsql AS $$
DECLARE
	o @@hapax_op;
	a @@hapax_answer;
BEGIN
	PERFORM 1 FROM @@hapax_record r WHERE r.tenant = p_tenant AND r.grp = p_group
		AND r.key = p_key
		AND r.token = p_token AND age(r.xmin) > 0;
	IF FOUND THEN
		RAISE EXCEPTION 'the claim was made in another transaction' USING ERRCODE = 'HX008';
	END IF;
	o.place := 1;
	o.type := 3;
	o.flags := 0;
	o.tenant := p_tenant;
	o.grp := p_group;
	o.key := p_key;
	o.token := p_token;
	o.kind := p_kind;
	o.class := p_class;
	o.status := p_status;
	o.omitted := p_omitted;
	o.headers := p_headers;
	o.body := p_body;
	a := @@hapax_one(o, p_now, NULL, true);
	IF a.outcome <> 6 THEN
		RAISE EXCEPTION 'the token is not the current one' USING ERRCODE = 'HX006';
	END IF;
	RETURN int8send(a.attempt) || int8send(a.first_seen)
		|| int8send(coalesce(a.expires, 9223372036854775807));
END
$$;
