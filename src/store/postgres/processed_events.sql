-- processed_events.sql - done keys with their events and results, for people, reports and programs.
--
--	SELECT 1 FROM hapax_processed_events
--	WHERE key_bytes = convert_to('order-1', 'UTF8') AND group_bytes = convert_to('shop', 'UTF8')
--	AND tenant_bytes = convert_to('acme', 'UTF8');
--
-- The _bytes are the primary key. idempotency_key, consumer_group and tenant_id are texts for
-- reading and for reports: a comparison with them reads the whole table.
--
-- Nothing in a record makes the view fail: bytes that are not text are escaped, a result that is
-- not JSON is NULL, and so is a time that PostgreSQL does not have.

CREATE OR REPLACE FUNCTION @@hapax_text_of(p_bytes bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN convert_from(p_bytes, 'UTF8');
EXCEPTION WHEN others THEN
	RETURN encode(p_bytes, 'escape');
END
$$;

-- Bytes as text. Escaping leaves ASCII as it is, without the subtransaction of hapax_text_of().
CREATE OR REPLACE FUNCTION @@hapax_text(p_bytes bytea) RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE WHEN strpos(encode(p_bytes, 'escape'), E'\\') = 0 THEN encode(p_bytes, 'escape')
	ELSE @@hapax_text_of(p_bytes) END;

CREATE OR REPLACE FUNCTION @@hapax_json(p_bytes bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	RETURN convert_from(p_bytes, 'UTF8')::jsonb;
EXCEPTION WHEN others THEN
	RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_time(p_ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_ms BETWEEN -210866803200000 AND 9224318015999999
	THEN to_timestamp(p_ms / 1000.0) END;

-- The texts of an event: 0 id, 1 type, 2 source. src/record/cause.c has the layout.
CREATE OR REPLACE FUNCTION @@hapax_cause_part(p_cause bytea, p_part integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	v_first integer := 12;
BEGIN
	IF length(p_cause) < v_first THEN
		RETURN NULL;
	END IF;
	FOR i IN 0..p_part - 1 LOOP
		v_first := v_first + get_byte(p_cause, i);
	END LOOP;
	RETURN nullif(
		@@hapax_text(substring(p_cause FROM v_first FOR get_byte(p_cause, p_part))), '');
END
$$;

CREATE OR REPLACE FUNCTION @@hapax_cause_time(p_cause bytea) RETURNS timestamptz
LANGUAGE sql IMMUTABLE
RETURN @@hapax_time(nullif(
	('x' || encode(@@hapax_reverse(substring(p_cause FROM 4 FOR 8)), 'hex'))::bit(64)::bigint,
	0));

-- Row level security is that of the tables, for the caller. PostgreSQL 14 would apply it for the
-- owner of the view, so the condition is repeated here: a superuser may be that owner.
-- security_barrier: a function in the caller's WHERE does not see the rows of other tenants.
CREATE OR REPLACE VIEW @@hapax_processed_events WITH (security_barrier = true) AS
SELECT @@hapax_text(r.key) AS idempotency_key, @@hapax_cause_part(r.cause, 1) AS event_type,
	@@hapax_text(r.grp) AS consumer_group, @@hapax_text(r.tenant) AS tenant_id,
	@@hapax_cause_part(r.cause, 0) AS event_id, @@hapax_cause_time(r.cause) AS event_timestamp,
	@@hapax_time(r.changed) AS processed_at,
	CASE r.result_class WHEN 0 THEN 'success' ELSE 'failed' END AS result_status,
	@@hapax_json(CASE WHEN r.result_apart THEN (SELECT p.body FROM @@hapax_result p
		WHERE p.tenant = r.tenant AND p.grp = r.grp AND p.key = r.key AND p.token = r.token
		AND p.expires = coalesce(r.expires, 9223372036854775807)) ELSE r.body END)
		AS result_payload,
	@@hapax_cause_part(r.cause, 2) AS event_source, r.tenant AS tenant_bytes,
	r.grp AS group_bytes, r.key AS key_bytes
FROM @@hapax_record r
WHERE r.state = 2 AND (r.expires IS NULL OR r.expires > (SELECT @@hapax_now()))
	AND (@@hapax_sees(r.tenant)
		OR (SELECT NOT row_security_active('@@hapax_record'::regclass)));

DO $do$
BEGIN
	IF current_setting('server_version_num')::integer >= 150000 THEN
		ALTER VIEW @@hapax_processed_events SET (security_invoker = true);
	END IF;
END
$do$;
