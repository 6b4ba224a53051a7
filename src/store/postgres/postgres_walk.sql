-- postgres_walk.sql - operations on the whole store, in bounded steps.

-- Create the partitions of the coming months for results, and drop those that are over. For the
-- owner of the tables only. If another session holds a lock, skip it until the next call: waiting
-- for the lock would block all later sessions.
CREATE OR REPLACE FUNCTION @@hapax_months(p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_first timestamp := date_trunc('month', to_timestamp(p_now / 1000.0) AT TIME ZONE 'UTC');
	v_begin timestamp;
	v_name text;
BEGIN
	IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = '@@hapax_result'::regclass),
		'USAGE') THEN
		RETURN;
	END IF;
	FOR i IN 0..2 LOOP
		v_begin := v_first + make_interval(months => i);
		v_name := 'hapax_result_' || to_char(v_begin, 'YYYYMM');
		CONTINUE WHEN to_regclass('@@' || v_name) IS NOT NULL;
		BEGIN
			LOCK TABLE @@hapax_result IN ACCESS EXCLUSIVE MODE NOWAIT;
			EXECUTE format('CREATE TABLE @@%I PARTITION OF @@hapax_result'
				' FOR VALUES FROM (%s) TO (%s)', v_name,
				(extract(epoch FROM v_begin) * 1000)::bigint,
				(extract(epoch FROM v_begin + interval '1 month') * 1000)::bigint);
			EXECUTE format('ALTER TABLE @@%I ENABLE ROW LEVEL SECURITY', v_name);
			EXECUTE format('ALTER TABLE @@%I FORCE ROW LEVEL SECURITY', v_name);
			EXECUTE format('CREATE POLICY hapax_tenant ON @@%I'
				' USING (@@hapax_sees(tenant))', v_name);
		EXCEPTION WHEN lock_not_available OR check_violation OR duplicate_table
			OR unique_violation THEN
			NULL;
		END;
	END LOOP;
	FOR v_name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = '@@hapax_result'::regclass
			AND c.relname ~ '^hapax_result_[0-9]{6}$'
		AND c.relname < 'hapax_result_' || to_char(v_first, 'YYYYMM') LOOP
		BEGIN
			LOCK TABLE @@hapax_result IN ACCESS EXCLUSIVE MODE NOWAIT;
			EXECUTE format('DROP TABLE @@%I', v_name);
		EXCEPTION WHEN lock_not_available OR undefined_table THEN
			NULL;
		END;
	END LOOP;
END
$$;

-- One step of housekeeping: remove expired records, and settle claims that were not taken over.
-- Locked rows are skipped until the next call. One sweep at a time: looked is NULL while another
-- session sweeps.
CREATE OR REPLACE FUNCTION @@hapax_sweep(p_now bigint, p_limit bigint, OUT looked bigint,
	OUT removed bigint, OUT lapsed bigint) LANGUAGE plpgsql AS $$
DECLARE
	r @@hapax_record;
	nxt @@hapax_record;
	v_now bigint := coalesce(p_now, @@hapax_now());
BEGIN
	removed := 0;
	lapsed := 0;
	IF NOT pg_try_advisory_xact_lock(
		(1751478388::bigint << 32) | '@@hapax_meta'::regclass::oid::bigint) THEN
		RETURN;
	END IF;
	looked := 0;
	FOR r IN SELECT * FROM @@hapax_record d WHERE d.bucket <= v_now / 300000
		AND CASE WHEN d.state = 1 THEN d.lease_ends <= v_now - d.ttl
		ELSE d.expires <= v_now END
		ORDER BY d.bucket LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
		looked := looked + 1;
		IF r.state <> 1 THEN
			DELETE FROM @@hapax_record d WHERE d.tenant = r.tenant AND d.grp = r.grp
				AND d.key = r.key;
			removed := removed + 1;
			CONTINUE;
		END IF;
		nxt := r;
		nxt.changed := v_now;
		nxt.lease_ends := 0;
		nxt.error := 'the lease lapsed and no run followed'::bytea;
		IF r.on_lapse = 1 THEN
			nxt.state := 4;
			nxt.bucket := NULL;
			PERFORM @@hapax_count_parked(r.tenant, r.grp, 1);
		ELSE
			nxt.state := 3;
			nxt.attempt_id := NULL;
			nxt.expires := CASE WHEN r.ttl < 9223372036854775807 - v_now
				THEN v_now + r.ttl END;
			nxt.bucket := nxt.expires / 300000;
		END IF;
		PERFORM @@hapax_put(r, nxt);
		IF r.awaited THEN
			PERFORM @@hapax_tell(r.token);
		END IF;
		lapsed := lapsed + 1;
	END LOOP;
	DELETE FROM @@hapax_result_rest t WHERE t.ctid = ANY (ARRAY(
		SELECT d.ctid FROM @@hapax_result_rest d WHERE d.expires <= v_now LIMIT p_limit));
END
$$;

-- Number of records: counted if that is cheap, else the estimate of the planner. Sweeps call it
-- often.
CREATE OR REPLACE FUNCTION @@hapax_left() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	v_bytes bigint;
	v_estimate double precision;
BEGIN
	SELECT sum(pg_relation_size(c.oid)), sum(greatest(c.reltuples, 0)) INTO v_bytes, v_estimate
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = '@@hapax_record'::regclass;
	IF v_bytes > 16 * 1048576 AND v_estimate > 0 THEN
		RETURN v_estimate::bigint;
	END IF;
	RETURN (SELECT count(*) FROM @@hapax_record);
END
$$;

-- Totals of the store. Up to a million records are counted; above that, the number of done records
-- is estimated.
CREATE OR REPLACE FUNCTION @@hapax_stats(p_now bigint, OUT now bigint, OUT token bigint,
	OUT bytes bigint, OUT claimed bigint, OUT done bigint, OUT failed bigint, OUT parked bigint,
	OUT expired bigint)
LANGUAGE plpgsql AS $$
DECLARE
	v_estimate double precision;
BEGIN
	now := coalesce(p_now, @@hapax_now());
	SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END INTO token FROM @@hapax_token s;
	SELECT sum(pg_total_relation_size(i.inhrelid)), sum(greatest(c.reltuples, 0))
		FILTER (WHERE i.inhparent = '@@hapax_record'::regclass)
		INTO bytes, v_estimate FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent IN ('@@hapax_record'::regclass, '@@hapax_result'::regclass);
	IF v_estimate > 1000000 THEN
		SELECT count(*) FILTER (WHERE r.state = 1), count(*) FILTER (WHERE r.state = 3),
			count(*) FILTER (WHERE r.state = 4) INTO claimed, failed, parked
			FROM @@hapax_record r WHERE r.state <> 2;
		done := greatest(v_estimate::bigint - claimed - failed - parked, 0);
	ELSE
		SELECT count(*) FILTER (WHERE r.state = 1), count(*) FILTER (WHERE r.state = 2),
			count(*) FILTER (WHERE r.state = 3), count(*) FILTER (WHERE r.state = 4)
			INTO claimed, done, failed, parked FROM @@hapax_record r;
	END IF;
	SELECT count(*) INTO expired
		FROM (SELECT 1 FROM @@hapax_record r WHERE r.bucket <= hapax_stats.now / 300000
		AND r.state IN (2, 3) AND r.expires <= hapax_stats.now LIMIT 100000) e;
END
$$;

-- Records in the order of their names, after a given one: at most p_count, and about p_bytes of
-- results.
CREATE OR REPLACE FUNCTION @@hapax_scan(p_from_tenant bytea, p_from_group bytea, p_from_key bytea,
	p_inclusive boolean, p_tenant bytea, p_group bytea, p_count bigint, p_bytes bigint)
RETURNS TABLE (tenant bytea, grp bytea, key bytea, record @@hapax_answer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	r @@hapax_record;
	v_bytes bigint := 0;
BEGIN
	FOR r IN SELECT * FROM @@hapax_record d
		WHERE (d.tenant, d.grp, d.key) >= (p_from_tenant, p_from_group, p_from_key)
		AND (p_inclusive OR (d.tenant, d.grp, d.key) <>
			(p_from_tenant, p_from_group, p_from_key))
		AND (p_tenant IS NULL OR d.tenant = p_tenant)
		AND (p_group IS NULL OR d.grp = p_group)
		ORDER BY d.tenant, d.grp, d.key LIMIT p_count LOOP
		tenant := r.tenant;
		grp := r.grp;
		key := r.key;
		record := @@hapax_show(NULL, r, false);
		RETURN NEXT;
		v_bytes := v_bytes + coalesce(length(record.headers), 0)
			+ coalesce(length(record.body), 0);
		EXIT WHEN v_bytes >= p_bytes;
	END LOOP;
END
$$;

-- Add decisions to the current hour; p_counts has the same number of counts for each scope. Not
-- worth a sync.
CREATE OR REPLACE FUNCTION @@hapax_count(p_now bigint, p_tenants bytea[], p_groups bytea[],
	p_counts bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_hour bigint := coalesce(p_now, @@hapax_now()) / 3600000 * 3600000;
	v_width integer := cardinality(p_counts) / greatest(cardinality(p_tenants), 1);
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	INSERT INTO @@hapax_counter AS c
		SELECT v_hour, p_tenants[i], p_groups[i],
			p_counts[(i - 1) * v_width + 1 : i * v_width]
		FROM generate_series(1, cardinality(p_tenants)) i ORDER BY p_tenants[i], p_groups[i]
	ON CONFLICT (hour, tenant, grp) DO UPDATE SET counts =
		(SELECT array_agg(coalesce(x, 0) + coalesce(y, 0))
			FROM unnest(c.counts, excluded.counts) AS u (x, y));
	DELETE FROM @@hapax_counter WHERE hour < v_hour - 30 * 86400000::bigint;
END
$$;

-- The rights of a role that is not the owner: SELECT hapax_grant('app'). It then sees the tenant in
-- hapax.tenant.
CREATE OR REPLACE FUNCTION @@hapax_grant(p_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', rtrim('@@', '.'), p_role);
	EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON @@hapax_record, @@hapax_result,
		@@hapax_result_rest, @@hapax_scope, @@hapax_counter, @@hapax_offset TO %I', p_role);
	EXECUTE format('GRANT SELECT ON @@hapax_meta, @@hapax_processed_events TO %I', p_role);
	EXECUTE format('GRANT USAGE, SELECT, UPDATE ON SEQUENCE @@hapax_token TO %I', p_role);
END
$$;
