-- sqlite_schema_1.sql - the ledger's tables in a SQLite database, version 1.
--
-- Every table is STRICT: a column holds its declared type, or the row is refused. Names, keys and
-- texts are BLOBs, because a key is bytes of any value.
--
--	hapax_meta     one row: version, last token, number of records by state, clock mark
--	hapax_record   one row per key; see row.h for due_ms
--	hapax_scope    parked records per scope, so that no claim has to count them
--	hapax_counter  decisions per hour and scope
--
-- hapax_record keeps its rowid: a primary key WITHOUT ROWID would move large results around in
-- the tree of the keys, and repeat the key in the index of due_ms. This way rows are appended,
-- and only the index of the keys is random.

CREATE TABLE main.hapax_meta (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	version INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	token INTEGER NOT NULL,
	claimed INTEGER NOT NULL CHECK (claimed >= 0),
	done INTEGER NOT NULL CHECK (done >= 0),
	failed INTEGER NOT NULL CHECK (failed >= 0),
	parked INTEGER NOT NULL CHECK (parked >= 0),
	store_ms INTEGER NOT NULL,
	boot_ms INTEGER NOT NULL,
	owed_ms INTEGER NOT NULL,
	boot_id BLOB NOT NULL CHECK (length(boot_id) = 16)
) STRICT;

CREATE TABLE main.hapax_record (
	id INTEGER PRIMARY KEY,
	tenant BLOB NOT NULL,
	grp BLOB NOT NULL,
	key BLOB NOT NULL,
	state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4),
	origin INTEGER NOT NULL,
	on_lapse INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	token INTEGER NOT NULL,
	first_seen_ms INTEGER NOT NULL,
	changed_ms INTEGER NOT NULL,
	lease_ends_ms INTEGER NOT NULL,
	due_ms INTEGER,
	ttl_ms INTEGER,
	fingerprint BLOB,
	attempt_id BLOB,
	owner BLOB,
	error BLOB,
	result_kind INTEGER NOT NULL,
	result_class INTEGER NOT NULL,
	result_status INTEGER NOT NULL,
	result_omitted INTEGER NOT NULL,
	result_headers BLOB,
	result_body BLOB,
	UNIQUE (tenant, grp, key)
) STRICT;

CREATE INDEX main.hapax_record_due ON hapax_record (due_ms, state) WHERE due_ms IS NOT NULL;

CREATE TABLE main.hapax_scope (
	tenant BLOB NOT NULL,
	grp BLOB NOT NULL,
	parked INTEGER NOT NULL CHECK (parked >= 0),
	PRIMARY KEY (tenant, grp)
) STRICT, WITHOUT ROWID;

CREATE TABLE main.hapax_counter (
	hour_ms INTEGER NOT NULL,
	tenant BLOB NOT NULL,
	grp BLOB NOT NULL,
	acquired INTEGER NOT NULL,
	replay INTEGER NOT NULL,
	in_progress INTEGER NOT NULL,
	mismatch INTEGER NOT NULL,
	parked INTEGER NOT NULL,
	fenced INTEGER NOT NULL,
	completed INTEGER NOT NULL,
	released INTEGER NOT NULL,
	unverified INTEGER NOT NULL,
	limited INTEGER NOT NULL,
	forgotten INTEGER NOT NULL,
	PRIMARY KEY (hour_ms, tenant, grp)
) STRICT, WITHOUT ROWID;
