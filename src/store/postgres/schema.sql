-- schema.sql - the tables of the store, version 1. "@@" stands for its schema and a dot.
--
-- Names, keys and texts are bytea: a key may have any bytes. States and kinds are numbered as in
-- include/hapax/record.h. Times are milliseconds since 1970; NULL means never, forever or none.
--
-- (1) hapax_record is narrow and has one unique index. Results of more than 512 bytes are in
--     hapax_result.
-- (2) `bucket` is the time from which the sweep examines a record, in steps of five minutes: its
--     expiry, or for a claim the expiry that it would have if completed at once. A claim and its
--     completion nearly always share it, so that no index entry changes and the update stays on its
--     page (HOT).
-- (3) A row of hapax_result belongs to the record with its token. It is dropped with its month, so
--     it may outlive a record that the sweep removed.
-- (4) Every table with data of a tenant has FORCE ROW LEVEL SECURITY; see hapax_sees().

CREATE TABLE @@hapax_meta (
	id smallint PRIMARY KEY CHECK (id = 1),
	version integer NOT NULL,
	epoch_ms bigint -- of a clock that tests drive
);
INSERT INTO @@hapax_meta VALUES (1, 1, NULL);

CREATE SEQUENCE @@hapax_token AS bigint MINVALUE 1 MAXVALUE 9007199254740991;

CREATE TABLE @@hapax_record (
	tenant bytea NOT NULL,
	grp bytea NOT NULL,
	key bytea NOT NULL,
	state smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
	origin smallint NOT NULL,
	on_lapse smallint NOT NULL,
	result_kind smallint NOT NULL,
	result_class smallint NOT NULL,
	result_apart boolean NOT NULL, -- headers and body lie in hapax_result
	attempt bigint NOT NULL,
	token bigint NOT NULL,
	first_seen bigint NOT NULL,
	changed bigint NOT NULL,
	lease_ends bigint NOT NULL,    -- 0 unless CLAIMED
	expires bigint,
	ttl bigint,
	bucket integer,
	result_status integer NOT NULL,
	result_omitted bigint NOT NULL,
	fingerprint bytea,
	attempt_id bytea,
	owner bytea,
	error bytea,
	headers bytea,
	body bytea,
	PRIMARY KEY (tenant, grp, key)
) PARTITION BY HASH (tenant, grp, key);

CREATE INDEX hapax_record_bucket ON @@hapax_record (bucket) WHERE bucket IS NOT NULL;

CREATE TABLE @@hapax_result (
	tenant bytea NOT NULL,
	grp bytea NOT NULL,
	key bytea NOT NULL,
	token bigint NOT NULL,
	expires bigint NOT NULL, -- of its record; 9223372036854775807: never
	headers bytea,
	body bytea,
	PRIMARY KEY (tenant, grp, key, token, expires)
) PARTITION BY RANGE (expires);

-- Results without a month: kept forever, or beyond the months that have partitions.
CREATE TABLE @@hapax_result_rest PARTITION OF @@hapax_result DEFAULT;
CREATE INDEX hapax_result_rest_expires ON @@hapax_result_rest (expires);

CREATE TABLE @@hapax_scope (
	tenant bytea NOT NULL,
	grp bytea NOT NULL,
	parked bigint NOT NULL,
	PRIMARY KEY (tenant, grp)
);

CREATE TABLE @@hapax_counter (
	hour bigint NOT NULL,
	tenant bytea NOT NULL,
	grp bytea NOT NULL,
	counts bigint[] NOT NULL, -- as enum hapax_decision
	PRIMARY KEY (hour, tenant, grp)
);

-- Which rows the session sees: those of the tenant in hapax.tenant. '*' means all tenants, and is
-- only for the owner of the tables (a stored procedure of the server, a backup). Superusers and
-- roles with BYPASSRLS see everything anyway.
DO $do$
DECLARE
	name text;
BEGIN
	EXECUTE format($sql$
		CREATE FUNCTION @@hapax_sees(p_tenant bytea) RETURNS boolean
			LANGUAGE sql STABLE PARALLEL SAFE
		RETURN p_tenant = convert_to(current_setting('hapax.tenant', true), 'UTF8')
			OR (current_setting('hapax.tenant', true) = '*'
				AND pg_has_role(%L, 'USAGE'))
	$sql$, current_user);
	FOR i IN 0..7 LOOP
		EXECUTE format('CREATE TABLE @@hapax_record_%s PARTITION OF @@hapax_record
			FOR VALUES WITH (MODULUS 8, REMAINDER %s) WITH (fillfactor = 80)', i, i);
	END LOOP;
	FOREACH name IN ARRAY ARRAY['hapax_record', 'hapax_record_0', 'hapax_record_1',
		'hapax_record_2', 'hapax_record_3', 'hapax_record_4', 'hapax_record_5',
		'hapax_record_6', 'hapax_record_7', 'hapax_result', 'hapax_result_rest',
		'hapax_scope', 'hapax_counter'] LOOP
		EXECUTE format('ALTER TABLE @@%I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE @@%I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY hapax_tenant ON @@%I USING (@@hapax_sees(tenant))',
			name);
	END LOOP;
END
$do$;

-- One operation, the argument of hapax_operate(). Flags: 1 return the record, 2 on_lapse park, 4
-- force, 8 set only, 16 keep ttl, 32 if absent, 64 if present, 128 if equal, 256 the value exceeds
-- the limit, 512 the room is final, 1024 the caller listens, 2048 ttl is the time of expiry.
CREATE TYPE @@hapax_op AS (
	place integer, -- its number in the call
	type smallint, -- as enum hapax_op_type
	flags integer,
	room bigint,   -- bytes for the texts of the record
	tenant bytea,
	grp bytea,
	key bytea,
	print bytea,
	attempt_id bytea,
	owner bytea,
	error bytea,
	expected bytea,
	lease bigint,
	ttl bigint,
	token bigint,
	kind smallint,
	class smallint,
	status integer,
	omitted bigint,
	headers bytea,
	body bytea,
	-- Load only.
	state smallint,
	origin smallint,
	attempt bigint,
	first_seen bigint,
	changed bigint,
	expires bigint
);

-- Its answer. outcome: as in enum hapax_outcome or, if negative, as in enum hapax_status.
CREATE TYPE @@hapax_answer AS (
	place integer,
	outcome smallint,
	unverified boolean,
	token bigint,
	attempt bigint,
	first_seen bigint,
	expires bigint,
	lease_left bigint,
	-- The record, if it was requested and exists; then state is not NULL.
	state smallint,
	origin smallint,
	on_lapse smallint,
	result_kind smallint,
	result_class smallint,
	result_own boolean, -- the result is the operation's own
	changed bigint,
	lease_ends bigint,
	ttl bigint,
	result_status integer,
	result_omitted bigint,
	fingerprint bytea,
	attempt_id bytea,
	owner bytea,
	error bytea,
	headers bytea,
	body bytea,
	record_token bigint,
	record_attempt bigint,
	record_first_seen bigint,
	record_expires bigint,
	-- For hapax_operate() itself.
	took_token boolean,
	changes boolean
);
