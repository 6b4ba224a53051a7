-- outbox_postgres.sql - the operations of the outbox, in the server: one round trip each, and
-- usable from every language.

CREATE OR REPLACE FUNCTION @@hapax_outbox_now() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- A UUID of version 7: sorts by time (RFC 9562).
CREATE OR REPLACE FUNCTION @@hapax_outbox_uuid7() RETURNS text LANGUAGE sql VOLATILE
RETURN encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
	PLACING substring(int8send(@@hapax_outbox_now()) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid::text;

CREATE OR REPLACE FUNCTION @@hapax_outbox_partition(p_key text) RETURNS smallint LANGUAGE sql IMMUTABLE
RETURN (get_byte(sha256(convert_to(p_key, 'UTF8')), 0) & 63)::smallint;

-- Add an event in the current transaction; returns its ID. Events of one ordering key are published
-- in the order in which their transactions commit: the next add waits here until this transaction
-- has ended. If a transaction adds events of several keys, add them in the same order everywhere,
-- as for any locks.
CREATE OR REPLACE FUNCTION @@hapax_outbox_add(
	p_topic text, p_payload bytea, p_ordering_key text DEFAULT NULL, p_type text DEFAULT NULL,
	p_source text DEFAULT NULL, p_subject text DEFAULT NULL, p_content_type text DEFAULT NULL,
	p_headers jsonb DEFAULT NULL, p_id text DEFAULT NULL, p_origin text DEFAULT NULL, p_origin_id text DEFAULT NULL
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	v_id text := coalesce(p_id, @@hapax_outbox_uuid7());
	v_key text := nullif(p_ordering_key, ''); -- an empty one is none
BEGIN
	IF coalesce(p_topic, '') = '' OR octet_length(p_topic) > 255 THEN
		RAISE EXCEPTION 'an outbox event must have a topic of 1 to 255 bytes' USING ERRCODE = 'HX004';
	END IF;
	IF p_payload IS NULL THEN
		RAISE EXCEPTION 'an outbox event must have a payload' USING ERRCODE = 'HX004', HINT = 'It may be empty.';
	END IF;
	IF octet_length(p_payload) > 16777216 THEN
		RAISE EXCEPTION 'the payload is too large: % bytes, limit 16777216', octet_length(p_payload)
			USING ERRCODE = 'HX004', HINT = 'Store it elsewhere, and send a reference.';
	END IF;
	IF v_id = '' OR octet_length(v_id) > 255 OR octet_length(p_ordering_key) > 1024 OR octet_length(p_type) > 255
		OR octet_length(p_source) > 1024 OR octet_length(p_subject) > 1024 OR octet_length(p_content_type) > 255 THEN
		RAISE EXCEPTION 'an attribute of the event is too long' USING ERRCODE = 'HX004',
			HINT = 'Limits: id, type and content type 255 bytes; ordering key, source and subject 1024 bytes.';
	END IF;
	IF p_headers IS NOT NULL AND (jsonb_typeof(p_headers) <> 'object' OR octet_length(p_headers::text) > 65536) THEN
		RAISE EXCEPTION 'headers must be a JSON object of at most 64 KiB' USING ERRCODE = 'HX004';
	END IF;
	IF v_key IS NOT NULL THEN
		PERFORM pg_advisory_xact_lock(
			('x' || substr(encode(sha256(convert_to('hapax outbox ' || v_key, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint);
	END IF;
	INSERT INTO @@hapax_outbox (seq, id, part, created_ms, topic, ordering_key, type, source, subject, content_type,
		headers, payload, origin, origin_id)
	VALUES (nextval('@@hapax_outbox_seq'), v_id, @@hapax_outbox_partition(coalesce(v_key, v_id)),
		@@hapax_outbox_now(), p_topic, v_key, p_type, p_source, p_subject, p_content_type, p_headers,
		p_payload, p_origin, p_origin_id);
	-- Notify only idle relays: a NOTIFY makes all commits of the database wait for each other.
	IF EXISTS (SELECT FROM @@hapax_outbox_relay WHERE is_idle) THEN
		PERFORM pg_notify('hapax_outbox', '');
	END IF;
	RETURN v_id;
END
$$;

-- The same for JSON. It has its own name: a literal would fit both.
CREATE OR REPLACE FUNCTION @@hapax_outbox_add_json(
	p_topic text, p_payload jsonb, p_ordering_key text DEFAULT NULL, p_type text DEFAULT NULL,
	p_source text DEFAULT NULL, p_subject text DEFAULT NULL, p_headers jsonb DEFAULT NULL, p_id text DEFAULT NULL
) RETURNS text LANGUAGE sql
RETURN @@hapax_outbox_add(p_topic, convert_to(p_payload::text, 'UTF8'), p_ordering_key, p_type, p_source, p_subject,
	'application/json', p_headers, p_id);

-- Renew a relay and its share of the partitions. Called only between batches, so that no row of a
-- partition given up here is in progress. Returns the number of its partitions.
CREATE OR REPLACE FUNCTION @@hapax_outbox_tend(p_relay text, p_owner text, p_lease_ms bigint, p_idle boolean)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	v_now bigint := @@hapax_outbox_now();
	v_share integer;
	v_count integer;
BEGIN
	INSERT INTO @@hapax_outbox_relay (relay, owner, until_ms, is_idle, lease_ms)
	VALUES (p_relay, p_owner, v_now + p_lease_ms, p_idle, p_lease_ms)
	ON CONFLICT (relay) DO UPDATE
	SET until_ms = excluded.until_ms, is_idle = excluded.is_idle, lease_ms = excluded.lease_ms;
	-- A lease that ends much too late was granted before the clock went back. A slightly later
	-- end means that the relay asked after this one.
	DELETE FROM @@hapax_outbox_relay WHERE relay IN (SELECT relay FROM @@hapax_outbox_relay
		WHERE until_ms < v_now OR until_ms > v_now + lease_ms + greatest(lease_ms, 60000) FOR UPDATE SKIP LOCKED);
	SELECT ceil(64.0 / count(*)) INTO v_share FROM @@hapax_outbox_relay WHERE until_ms >= v_now;
	UPDATE @@hapax_outbox_part SET until_ms = v_now + p_lease_ms WHERE relay = p_relay;
	GET DIAGNOSTICS v_count = ROW_COUNT;
	IF v_count > v_share THEN
		UPDATE @@hapax_outbox_part SET relay = NULL, until_ms = 0 WHERE part IN (
			SELECT part FROM @@hapax_outbox_part WHERE relay = p_relay ORDER BY part DESC LIMIT v_count - v_share);
		RETURN v_share;
	END IF;
	IF v_count < v_share THEN
		UPDATE @@hapax_outbox_part
		SET relay = p_relay, until_ms = v_now + p_lease_ms, token = nextval('@@hapax_outbox_token')
		WHERE part IN (SELECT p.part FROM @@hapax_outbox_part p WHERE p.until_ms < v_now
			OR NOT EXISTS (SELECT FROM @@hapax_outbox_relay r WHERE r.relay = p.relay)
			ORDER BY p.part LIMIT v_share - v_count FOR UPDATE SKIP LOCKED);
		SELECT count(*) INTO v_count FROM @@hapax_outbox_part WHERE relay = p_relay;
	END IF;
	RETURN v_count;
END
$$;

-- Rows behind a parked row leave the index of pending rows, and return when no row is parked. The
-- order does not depend on it: a held row blocks the later ones of its key in any state. A row that
-- would wait much longer than p_pause_ms, the longest pause, was paused before the clock went back.
-- The query starts from the few held rows, so its plan does not depend on statistics either.
CREATE OR REPLACE FUNCTION @@hapax_outbox_settle(p_relay text, p_pause_ms bigint DEFAULT 86400000) RETURNS integer
LANGUAGE plpgsql SET enable_seqscan = off SET enable_nestloop = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
	v_now bigint := @@hapax_outbox_now();
	v_parts smallint[] := (SELECT array_agg(part) FROM @@hapax_outbox_part WHERE relay = p_relay);
	v_moved integer := 0;
	v_more integer;
BEGIN
	UPDATE @@hapax_outbox SET next_ms = v_now
	WHERE held AND next_ms > v_now + p_pause_ms + 60000 AND part = ANY (v_parts);
	-- Pending rows are read only if a row is parked.
	IF EXISTS (SELECT FROM @@hapax_outbox WHERE held AND state = 2 AND part = ANY (v_parts)) THEN
		UPDATE @@hapax_outbox o SET state = 3, held = true
		FROM (SELECT ordering_key, min(seq) AS seq FROM @@hapax_outbox
			WHERE held AND state = 2 AND part = ANY (v_parts) GROUP BY ordering_key) b
		WHERE o.state = 0 AND o.part = ANY (v_parts) AND o.ordering_key = b.ordering_key AND o.seq > b.seq;
		GET DIAGNOSTICS v_moved = ROW_COUNT;
	END IF;
	UPDATE @@hapax_outbox o SET state = 0, held = o.next_ms > v_now
	WHERE o.held AND o.state = 3 AND NOT EXISTS (
		SELECT FROM @@hapax_outbox b WHERE b.held AND b.state = 2 AND b.ordering_key = o.ordering_key);
	GET DIAGNOSTICS v_more = ROW_COUNT;
	RETURN v_moved + v_more;
END
$$;

-- The relay stops: others need not wait for its leases.
CREATE OR REPLACE FUNCTION @@hapax_outbox_leave(p_relay text) RETURNS void LANGUAGE sql
BEGIN ATOMIC
	UPDATE @@hapax_outbox_part SET relay = NULL, until_ms = 0 WHERE relay = p_relay;
	DELETE FROM @@hapax_outbox_relay WHERE relay = p_relay;
END;

CREATE OR REPLACE FUNCTION @@hapax_outbox_set_idle(p_relay text, p_idle boolean) RETURNS void LANGUAGE sql
BEGIN ATOMIC
	UPDATE @@hapax_outbox_relay SET is_idle = p_idle WHERE relay = p_relay;
END;

-- The rows of a relay's partitions that may be published now, in order; at most p_limit rows, and
-- about p_bytes of payload. Statistics of a table that fills and empties are out of date, so the
-- plan does not depend on them: pending rows by their index, and for each row a lookup of rows that
-- block its key. The disabled plans count as so expensive that the server would compile the
-- statement each time (jit).
CREATE OR REPLACE FUNCTION @@hapax_outbox_fetch(p_relay text, p_limit integer, p_bytes bigint)
RETURNS TABLE (seq bigint, token bigint, attempts integer, created_ms bigint, id text, topic text, ordering_key text,
	type text, source text, subject text, content_type text, headers text, payload bytea)
LANGUAGE plpgsql SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_material = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_now bigint := @@hapax_outbox_now();
	v_parts smallint[];
	v_tokens bigint[];
	v_held bigint := 0;
BEGIN
	SELECT array_agg(p.part) FILTER (WHERE p.relay = p_relay AND p.until_ms > v_now), array_agg(p.token ORDER BY p.part)
	INTO v_parts, v_tokens FROM @@hapax_outbox_part p;
	FOR seq, token, attempts, created_ms, id, topic, ordering_key, type, source, subject, content_type, headers, payload IN
		SELECT o.seq, v_tokens[o.part + 1], o.attempts, o.created_ms, o.id, o.topic, o.ordering_key, o.type, o.source,
			o.subject, o.content_type, o.headers::text,
			CASE WHEN octet_length(o.payload) <= 16777216 THEN o.payload END -- NULL: too large
		FROM @@hapax_outbox o
		WHERE o.state = 0 AND o.part = ANY (v_parts) AND o.next_ms <= v_now AND NOT EXISTS (
			SELECT FROM @@hapax_outbox b WHERE b.held AND b.ordering_key = o.ordering_key AND b.seq < o.seq
				AND (b.state <> 0 OR b.next_ms > v_now))
		ORDER BY o.seq + 0 LIMIT p_limit
	LOOP
		v_held := v_held + coalesce(octet_length(payload), 0);
		RETURN NEXT;
		EXIT WHEN v_held >= p_bytes;
	END LOOP;
END
$$;

-- Record the outcomes of rows. A row that the broker has confirmed is sent, even if another relay
-- holds its partition by now. Any other outcome counts only with the partition's token, and once:
-- p_attempts are the attempts that were fetched.
CREATE OR REPLACE FUNCTION @@hapax_outbox_mark(
	p_sent bigint[], p_failed bigint[], p_tokens bigint[], p_attempts bigint[], p_parked boolean[], p_errors text[],
	p_pauses bigint[]
) RETURNS integer LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	v_now bigint := @@hapax_outbox_now();
	v_sent integer;
BEGIN
	UPDATE @@hapax_outbox SET state = 1, sent_ms = v_now, held = false, attempts = attempts + 1
	WHERE seq = ANY (p_sent) AND state <> 1;
	GET DIAGNOSTICS v_sent = ROW_COUNT;
	IF cardinality(p_failed) > 0 THEN
		UPDATE @@hapax_outbox o SET attempts = o.attempts + 1, error = f.error, held = true,
			state = CASE WHEN f.parked THEN 2 ELSE 0 END, next_ms = v_now + f.pause
		FROM unnest(p_failed, p_tokens, p_attempts, p_parked, p_errors, p_pauses)
				AS f (seq, token, attempts, parked, error, pause),
			@@hapax_outbox_part p
		WHERE o.seq = f.seq AND o.state = 0 AND o.attempts = f.attempts AND p.part = o.part AND p.token = f.token;
	END IF;
	RETURN v_sent;
END
$$;

-- Unsent rows and live relays. Called every two seconds: each count uses an index of such rows
-- only, and the oldest row is the one with the lowest number, which is close enough.
CREATE OR REPLACE FUNCTION @@hapax_outbox_backlog()
RETURNS TABLE (pending bigint, retrying bigint, waiting bigint, parked bigint, parked_keys bigint, oldest_ms bigint,
	relays bigint, partitions bigint) LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT (SELECT count(*) FROM @@hapax_outbox WHERE state = 0), h.retrying, h.waiting, h.parked, h.parked_keys,
		coalesce((SELECT greatest(@@hapax_outbox_now() - o.created_ms, 0) FROM @@hapax_outbox o WHERE o.state = 0
			ORDER BY o.seq + 0 LIMIT 1), 0),
		(SELECT count(*) FROM @@hapax_outbox_relay WHERE until_ms >= @@hapax_outbox_now()),
		(SELECT count(*) FROM @@hapax_outbox_part WHERE until_ms >= @@hapax_outbox_now())
	FROM (SELECT count(*) FILTER (WHERE state = 0) AS retrying, count(*) FILTER (WHERE state = 3) AS waiting,
			count(*) FILTER (WHERE state = 2) AS parked,
			count(DISTINCT coalesce(ordering_key, id)) FILTER (WHERE state = 2) AS parked_keys
		FROM @@hapax_outbox WHERE held) h;
END;

-- Allow a role to add events and, as a relay, to publish them.
CREATE OR REPLACE FUNCTION @@hapax_outbox_grant(p_role text, p_relay boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	v_schema text := (parse_ident('@@hapax_outbox'))[1];
BEGIN
	EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', v_schema, p_role);
	EXECUTE format('GRANT USAGE ON SEQUENCE %I.hapax_outbox_seq TO %I', v_schema, p_role);
	EXECUTE format('GRANT INSERT ON %I.hapax_outbox TO %I', v_schema, p_role);
	EXECUTE format('GRANT SELECT ON %I.hapax_outbox_relay, %I.hapax_outbox_meta TO %I', v_schema, v_schema, p_role);
	IF p_relay THEN
		EXECUTE format('GRANT USAGE ON SEQUENCE %I.hapax_outbox_token TO %I', v_schema, p_role);
		EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.hapax_outbox, %I.hapax_outbox_part,'
			' %I.hapax_outbox_relay TO %I', v_schema, v_schema, v_schema, p_role);
	END IF;
END
$$;

-- Manual changes. Each returns the number of changed rows.

-- Publish parked rows again, with their attempts reset; by ID, by ordering key, or all (both NULL).
CREATE OR REPLACE FUNCTION @@hapax_outbox_retry(p_id text DEFAULT NULL, p_key text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	v_count bigint;
BEGIN
	UPDATE @@hapax_outbox SET state = 0, held = false, attempts = 0, next_ms = 0
	WHERE held AND state = 2 AND (p_id IS NULL OR id = p_id) AND (p_key IS NULL OR ordering_key = p_key);
	GET DIAGNOSTICS v_count = ROW_COUNT;
	-- Rows that waited behind them, and behind no other row.
	UPDATE @@hapax_outbox o SET state = 0, held = o.next_ms > @@hapax_outbox_now()
	WHERE o.held AND o.state = 3 AND NOT EXISTS (
		SELECT FROM @@hapax_outbox b WHERE b.held AND b.state = 2 AND b.ordering_key = o.ordering_key);
	IF EXISTS (SELECT FROM @@hapax_outbox_relay WHERE is_idle) THEN
		PERFORM pg_notify('hapax_outbox', '');
	END IF;
	RETURN v_count;
END
$$;

-- Hold back a row that was not published; its ordering key waits. A row in progress may still be
-- published.
CREATE OR REPLACE FUNCTION @@hapax_outbox_park(p_id text, p_error text DEFAULT 'parked by hand') RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	v_count bigint;
BEGIN
	UPDATE @@hapax_outbox SET state = 2, held = true, error = p_error WHERE id = p_id AND state IN (0, 3);
	GET DIAGNOSTICS v_count = ROW_COUNT;
	RETURN v_count;
END
$$;

-- Delete some of the rows that were sent before that time.
CREATE OR REPLACE FUNCTION @@hapax_outbox_purge(p_age_ms bigint, p_limit integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	v_count bigint;
BEGIN
	DELETE FROM @@hapax_outbox WHERE seq IN (
		SELECT seq FROM @@hapax_outbox WHERE state = 1 AND sent_ms < @@hapax_outbox_now() - p_age_ms
		ORDER BY sent_ms LIMIT p_limit FOR UPDATE SKIP LOCKED);
	GET DIAGNOSTICS v_count = ROW_COUNT;
	RETURN v_count;
END
$$;

-- Take events from an existing table: a trigger copies each row into the outbox, in the transaction
-- that inserts it. If the table has a status, the row gets it when the event was sent. An event has
-- the ID of its row. If that is a number, the name of the table comes first, since other tables
-- have the same numbers. A payload that is NULL counts as empty: Debezium has such rows. Columns
-- that are NULL do not exist; p_existing includes the current rows. Returns their number.
CREATE OR REPLACE FUNCTION @@hapax_outbox_adopt(
	p_table text, p_id text, p_topic text, p_topic_prefix text, p_key text, p_type text, p_payload text,
	p_status text, p_pending text, p_processed text, p_existing boolean
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	v_oid oid;
	v_table text; -- with its schema: relays have another search_path
	v_column text;
	v_types text[] := '{}';
	v_id text;
	v_call text;
	v_name text;
	v_count bigint := 0;
BEGIN
	BEGIN
		v_oid := to_regclass(p_table);
	EXCEPTION WHEN invalid_name THEN
		v_oid := NULL;
	END;
	IF v_oid IS NULL THEN
		RAISE EXCEPTION 'table % does not exist', p_table USING ERRCODE = 'HX004',
			HINT = 'Name it with its schema, or choose another preset.';
	END IF;
	IF v_oid = '@@hapax_outbox'::regclass THEN
		RAISE EXCEPTION 'cannot adopt table %: it is the outbox itself', p_table USING ERRCODE = 'HX004';
	END IF;
	FOREACH v_column IN ARRAY array_remove(ARRAY[p_id, p_topic, p_key, p_type, p_payload, p_status], NULL) LOOP
		IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_oid AND attname = v_column AND attnum > 0
			AND NOT attisdropped) THEN
			RAISE EXCEPTION 'table % has no column %', p_table, v_column USING ERRCODE = 'HX004',
				HINT = 'Choose another preset, or name the column with --column FIELD=NAME.';
		END IF;
	END LOOP;
	SELECT format('%I.%I', n.nspname, c.relname) INTO v_table
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = v_oid;
	SELECT array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY n.n) INTO v_types
	FROM unnest(ARRAY[p_id, p_payload]) WITH ORDINALITY n (name, n)
	JOIN pg_attribute a ON a.attrelid = v_oid AND a.attname = n.name;
	v_name := 'hapax_outbox_take_' || substr(md5(v_oid::text), 1, 12);
	v_id := format(CASE WHEN v_types[1] ~ '^(smallint|integer|bigint|numeric)' THEN '%1$L || t.%2$I' ELSE 't.%2$I::text' END,
		(SELECT relname FROM pg_class WHERE oid = v_oid) || ':', p_id);
	v_call := format('@@hapax_outbox_add(%L || t.%I::text, %s, %s, %s, NULL, NULL, %L, NULL, %s, %L, t.%I::text)',
		p_topic_prefix, p_topic,
		format(CASE WHEN v_types[2] = 'bytea' THEN 'coalesce(t.%I, '''')'
			ELSE 'coalesce(convert_to(t.%I::text, ''UTF8''), '''')' END, p_payload),
		CASE WHEN p_key IS NULL THEN 'NULL' ELSE format('t.%I::text', p_key) END,
		CASE WHEN p_type IS NULL THEN 'NULL' ELSE format('t.%I::text', p_type) END,
		CASE WHEN v_types[2] IN ('json', 'jsonb') THEN 'application/json' END, v_id, v_table, p_id);
	EXECUTE format('CREATE OR REPLACE FUNCTION @@%I() RETURNS trigger LANGUAGE plpgsql AS %L', v_name,
		format('DECLARE t %s := NEW; BEGIN PERFORM %s; RETURN NULL; END', v_table, v_call));
	EXECUTE format('DROP TRIGGER IF EXISTS hapax_outbox_take ON %s', v_table);
	EXECUTE format('CREATE TRIGGER hapax_outbox_take AFTER INSERT ON %s FOR EACH ROW %s EXECUTE FUNCTION @@%I()', v_table,
		CASE WHEN p_status IS NULL THEN '' ELSE format('WHEN (NEW.%I::text = %L)', p_status, p_pending) END, v_name);
	IF p_status IS NOT NULL THEN
		EXECUTE format('CREATE OR REPLACE FUNCTION @@%I() RETURNS trigger LANGUAGE plpgsql AS %L', v_name || '_sent',
			-- A problem with that table must not stop the outbox from marking; a
			-- temporary one is retried.
			format('BEGIN UPDATE %s SET %I = %L WHERE %I = NEW.origin_id::%s; RETURN NULL;'
				' EXCEPTION WHEN OTHERS THEN'
				' IF substr(SQLSTATE, 1, 2) IN (''08'', ''40'', ''53'', ''55'', ''57'', ''58'', ''XX'') THEN RAISE; END IF;'
				' UPDATE @@hapax_outbox SET error = left(%L || SQLERRM, 230) WHERE seq = NEW.seq; RETURN NULL; END',
				v_table, p_status, p_processed, p_id, v_types[1], 'sent, but could not update its row in ' || v_table || ': '));
		EXECUTE format('DROP TRIGGER IF EXISTS %I ON @@hapax_outbox', v_name);
		EXECUTE format('CREATE TRIGGER %I AFTER UPDATE OF state ON @@hapax_outbox FOR EACH ROW WHEN (NEW.state = 1 AND'
			' OLD.state <> 1 AND NEW.origin = %L) EXECUTE FUNCTION @@%I()', v_name, v_table, v_name || '_sent');
	END IF;
	IF p_existing THEN
		-- The second condition matches the IDs that an earlier version gave to rows with
		-- numbers.
		EXECUTE format('SELECT count(%s) FROM %s t WHERE %s AND NOT EXISTS (SELECT FROM @@hapax_outbox o WHERE o.id = %s)'
				' AND NOT EXISTS (SELECT FROM @@hapax_outbox o WHERE o.id = t.%I::text AND o.origin = %L)',
			v_call, v_table,
			CASE WHEN p_status IS NULL THEN 'true' ELSE format('t.%I::text = %L', p_status, p_pending) END, v_id, p_id, v_table)
		INTO v_count;
	END IF;
	RETURN v_count;
END
$$;
