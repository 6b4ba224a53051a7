/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the record that a store keeps for a key.
 *
 * A record is CLAIMED while one caller holds the claim, DONE once the run has completed, and FAILED
 * after a release without success. It is PARKED while the outcome is unknown and a person or a
 * policy must decide. A key without a record, or with an expired one, is absent.
 *
 * The bytes of a record are borrowed: from the buffer given with the operation
 * that read it, or, during a scan, from the store until the callback returns.
 *
 * Times are milliseconds since 1970 UTC on the store's own clock (clock.h).
 */
#ifndef HAPAX_RECORD_H
#define HAPAX_RECORD_H

#include <stdint.h>

#include <hapax/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	HAPAX_FINGERPRINT_SIZE = 32,       /* SHA-256 of the payload */
	HAPAX_FINGERPRINT_SHORT_SIZE = 16, /* the part that a store in memory keeps */
	HAPAX_ATTEMPT_ID_SIZE = 16,        /* random, one per claim call */
	HAPAX_CAUSE_PART_SIZE_MAX = 255,   /* of each text of a cause; longer ones are cut */
	HAPAX_CAUSE_SIZE_MAX = 11 + 3 * HAPAX_CAUSE_PART_SIZE_MAX,
};

/* A time that never comes: the expiry of a record that is kept forever. */
#define HAPAX_TIME_NEVER INT64_MAX

enum hapax_state {
	HAPAX_STATE_ABSENT = 0,
	HAPAX_STATE_CLAIMED = 1,
	HAPAX_STATE_DONE = 2,
	HAPAX_STATE_FAILED = 3,
	HAPAX_STATE_PARKED = 4,
};

/* The operation that created the record. */
enum hapax_origin {
	HAPAX_ORIGIN_CLAIM = 0,
	HAPAX_ORIGIN_CHECK = 1, /* a mark: done in one step, without a claim */
	HAPAX_ORIGIN_SET = 2,
};

/* What happens to a claim whose lease lapsed, or whose outcome is ambiguous. */
enum hapax_on_lapse {
	HAPAX_ON_LAPSE_RETRY = 0, /* the next claim runs */
	HAPAX_ON_LAPSE_PARK = 1,  /* no claim runs until the key is resolved */
};

enum hapax_result_kind {
	HAPAX_RESULT_NONE = 0,
	HAPAX_RESULT_BYTES = 1,
	HAPAX_RESULT_HTTP = 2,
	HAPAX_RESULT_EXEC = 3,
};

enum hapax_result_class {
	HAPAX_RESULT_OK = 0,
	HAPAX_RESULT_DEFINITIVE = 1, /* a permanent failure: a retry would fail again */
};

/* The result of a run, stored for replay. */
struct hapax_result {
	enum hapax_result_kind kind;
	enum hapax_result_class result_class;
	int32_t status;             /* HTTP status, exit code, or 0 */
	uint64_t omitted_bytes;     /* size of a body that was too large to keep, else 0 */
	struct hapax_bytes headers; /* kind HTTP: serialized fields; kind EXEC: private */
	struct hapax_bytes body;
};

/*
 * The event that a key was claimed for: its attributes as the sender gave them, for people and for
 * reports. It decides nothing. Texts are UTF-8 without NUL.
 */
struct hapax_cause {
	struct hapax_bytes id;
	struct hapax_bytes type;
	struct hapax_bytes source;
	int64_t time_ms; /* when the sender says it happened; 0: not known */
};

struct hapax_record {
	enum hapax_state state;
	enum hapax_origin origin;
	enum hapax_on_lapse on_lapse;
	uint32_t attempt;      /* number of runs begun, including this one */
	uint64_t token;        /* the last fencing token issued */
	int64_t first_seen_ms; /* when the key was first claimed or marked */
	int64_t changed_ms;    /* when the record entered its state */
	int64_t lease_ends_ms; /* CLAIMED only, else 0 */
	int64_t expires_ms;    /* DONE and FAILED; else HAPAX_TIME_NEVER */
	int64_t ttl_ms;        /* or HAPAX_TTL_FOREVER */
	/*
	 * Number of leading fingerprint bytes that the store keeps: 0 (none, matches any), 16 or
	 * 32.
	 */
	uint32_t fingerprint_size;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE]; /* zero beyond fingerprint_size */
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];   /* CLAIMED and PARKED, else zero */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hapax_bytes owner; /* text for people: the holder; empty once DONE */
	struct hapax_bytes error; /* text for people: why the run failed or was parked */
	struct hapax_bytes cause; /* the event, as hapax_cause_write() packs it; empty: none kept */
	struct hapax_result result;
};

/*
 * Pack cause for struct hapax_op, whose cause then borrows buffer. Texts above 255 bytes are cut
 * between characters; a text that is not UTF-8, or has a NUL, is left out, as is a time beyond the
 * years 1 to 9999. Empty if nothing is left.
 */
HAPAX_API struct hapax_bytes hapax_cause_write(
	const struct hapax_cause *cause, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX]);

/* The parts of a packed cause, which they borrow. Returns 0 if there is none; *ret is then empty. */
HAPAX_API int hapax_cause_read(struct hapax_bytes packed, struct hapax_cause *ret_cause);

/* Lower-case words of the glossary: "claimed", "check", "retry", "http", "ok". */
HAPAX_API const char *hapax_state_name(enum hapax_state state);
HAPAX_API const char *hapax_origin_name(enum hapax_origin origin);
HAPAX_API const char *hapax_on_lapse_name(enum hapax_on_lapse on_lapse);
HAPAX_API const char *hapax_result_kind_name(enum hapax_result_kind kind);
HAPAX_API const char *hapax_result_class_name(enum hapax_result_class result_class);

#ifdef __cplusplus
}
#endif

#endif
