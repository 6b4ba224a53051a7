/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - from an event to what a claim needs of it: scope, key and fingerprint.
 *
 * A strategy says what makes two deliveries the same. It is made once, from text as
 * it stands in a configuration, and then asked for each event:
 *
 *	field:PATH                    one value
 *	composite:PATH,PATH...        several values, joined without ambiguity
 *	content                       SHA-256 of the canonical data
 *
 * and others, which hapax_key_strategy_syntax() and `hapax help key` list.
 *
 *	struct hapax_event event = HAPAX_EVENT_INIT;
 *	struct hapax_key key = HAPAX_KEY_INIT;
 *
 *	event.data = body;
 *	if (hapax_key_make(strategy, &event, scratch, &key, &err) != HAPAX_OK)
 *		return reject(err.message);
 *	claim.tenant = (struct hapax_bytes){key.tenant, key.tenant_size};
 *	claim.group = (struct hapax_bytes){key.group, key.group_size};
 *	claim.key = (struct hapax_bytes){key.key, key.key_size};
 *	claim.fingerprint = key.fingerprint;
 *
 * Paths name their part of the event: data.order.id or data/order/id (JSON Pointer),
 * attr.type, header.X-Tenant, meta.topic. Nothing falls through from one part to
 * another, and nothing stands in for what is missing: by default that is an error
 * which names the path.
 *
 * Keys made here are 1 to 255 bytes of UTF-8 without control characters. Two events
 * whose parts differ never get the same key, unless SHA-256 fails; the one exception
 * is stated at HAPAX_KEY_SEPARATOR.
 *
 * Caveats. A content key cannot tell a redelivery from a second, intended event with
 * the same content: it de-duplicates within the TTL, it does not identify. A list of
 * excluded fields breaks silently when a sender adds a new field that changes with
 * each delivery; a list of included ones does not.
 *
 * Threads: a strategy may be used by any number of threads at once; a scratch buffer
 * and a struct hapax_key by one.
 */
#ifndef HAPAX_KEY_H
#define HAPAX_KEY_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/error.h>
#include <hapax/record.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A time that is not known. */
#define HAPAX_TIME_UNKNOWN INT64_MIN

enum hapax_data_kind {
	HAPAX_DATA_JSON = 0,
	HAPAX_DATA_BYTES = 1, /* anything else: paths into it find nothing */
};

/* An attribute, a header, or a fact of the transport. */
struct hapax_field {
	struct hapax_bytes name;
	struct hapax_bytes value;
};

/* What came in. Everything is borrowed for the length of the call. */
struct hapax_event {
	size_t size; /* set by HAPAX_EVENT_INIT */
	struct hapax_bytes data;
	enum hapax_data_kind data_kind;
	const struct hapax_field *attributes; /* attr.: of a CloudEvent; by exact name */
	size_t attribute_count;
	const struct hapax_field *headers; /* header.: ASCII letters match in either case */
	size_t header_count;
	const struct hapax_field *meta; /* meta.: topic, partition, offset, key, origin, time */
	size_t meta_count;
	int64_t time_ms; /* of the event itself, or HAPAX_TIME_UNKNOWN */
};

#define HAPAX_EVENT_INIT                                                                           \
	{                                                                                          \
		sizeof(struct hapax_event), {NULL, 0}, HAPAX_DATA_JSON, NULL, 0, NULL, 0, NULL, 0, \
			HAPAX_TIME_UNKNOWN                                                         \
	}

/* What happens to an event whose key cannot be made because a part is missing. */
enum hapax_on_missing {
	HAPAX_ON_MISSING_REJECT = 0,  /* HAPAX_ERR_INVALID */
	HAPAX_ON_MISSING_PASS = 1,    /* no key: process it, marked as unprotected */
	HAPAX_ON_MISSING_CONTENT = 2, /* "content:" and a content key of what is there */
};

enum hapax_canonical {
	HAPAX_CANONICAL_LOSSLESS = 0, /* numbers keep their value, whatever their size */
	HAPAX_CANONICAL_PYTHON = 1,   /* as json.dumps(x, sort_keys=True), for keys made by it */
};

enum hapax_key_flags {
	/* Paths begin within the data: order.id, not data.order.id. So do source and id. */
	HAPAX_KEY_RELATIVE = 1 << 0,
	/* Allow strategies that make a new key each time. Never for what receives. */
	HAPAX_KEY_PRODUCER = 1 << 1,
	/* Do not make the fingerprint. */
	HAPAX_KEY_NO_FINGERPRINT = 1 << 2,
};

/* Zero means the default in every field. Texts are copied. */
struct hapax_key_options {
	size_t size;    /* set by HAPAX_KEY_OPTIONS_INIT */
	unsigned flags; /* enum hapax_key_flags */
	enum hapax_on_missing on_missing;
	enum hapax_canonical canonical;
	const char *const *include; /* content: only these paths; each must be there */
	size_t include_count;
	const char *const *exclude; /* what does not matter: to content, to the fingerprint */
	size_t exclude_count;
	const char *tenant;      /* without a slash. NULL and no tenant_from: "default" */
	const char *tenant_from; /* a path; with nothing or null there, tenant, else an error */
	const char *group;       /* as tenant */
	const char *group_from;
	const struct hapax_clock *clock; /* for run ids; NULL: the system's. Must outlive it */
};

#define HAPAX_KEY_OPTIONS_INIT                                                                   \
	{                                                                                        \
		sizeof(struct hapax_key_options), 0, HAPAX_ON_MISSING_REJECT,                    \
			HAPAX_CANONICAL_LOSSLESS, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL \
	}

struct hapax_key_strategy;

/*
 * Make a strategy from its text. INVALID: the text or an option is wrong, and the
 * message says where. options may be NULL.
 *
 * Owned: *ret_strategy, by the caller; see hapax_key_strategy_free().
 */
HAPAX_API enum hapax_status hapax_key_strategy_new(
	const char *text, const struct hapax_key_options *options,
	struct hapax_key_strategy **ret_strategy, struct hapax_error *err);

/* NULL is allowed. */
HAPAX_API void hapax_key_strategy_free(struct hapax_key_strategy *strategy);

/* As given to new. Borrowed from strategy. */
HAPAX_API const char *hapax_key_strategy_text(const struct hapax_key_strategy *strategy);

/*
 * What a strategy asks of an event, or-ed. Without DATA an event may be given without
 * its data: neither key nor scope are made of it, and the fingerprint, which always
 * is, is not wanted (HAPAX_KEY_NO_FINGERPRINT).
 */
enum hapax_key_need {
	HAPAX_KEY_NEEDS_DATA = 1 << 0,
	HAPAX_KEY_NEEDS_TIME = 1 << 1,
};
HAPAX_API unsigned hapax_key_strategy_needs(const struct hapax_key_strategy *strategy);

/* Whether include means something to it: to others it is refused. */
HAPAX_API int hapax_key_strategy_takes_include(const struct hapax_key_strategy *strategy);

/* The strategies by index from 0 on, for help and documentation; NULL after the last. */
HAPAX_API const char *hapax_key_strategy_syntax(size_t index);
HAPAX_API const char *hapax_key_strategy_summary(size_t index);

enum {
	HAPAX_KEY_SIZE_MAX = 255,   /* of a key made by a strategy */
	HAPAX_SCOPE_SIZE_MAX = 128, /* of a tenant or group */
	HAPAX_RUN_ID_SIZE = 16,
};

enum hapax_key_kind {
	HAPAX_KEY_NONE = 0,    /* a part was missing, policy pass: process it unprotected */
	HAPAX_KEY_MADE = 1,    /* as the strategy says */
	HAPAX_KEY_CONTENT = 2, /* a part was missing, policy content */
};

/* What a claim needs. */
struct hapax_key {
	size_t size; /* set by HAPAX_KEY_INIT */
	enum hapax_key_kind kind;
	size_t key_size;
	char key[HAPAX_KEY_SIZE_MAX + 1]; /* and a NUL */
	size_t tenant_size;
	char tenant[HAPAX_SCOPE_SIZE_MAX + 1];
	size_t group_size;
	char group[HAPAX_SCOPE_SIZE_MAX + 1];
	int has_fingerprint;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	int is_fingerprint; /* the key is the fingerprint in hexadecimal: no need to keep both */
	int has_run_id;     /* hybrid, uuid7 */
	unsigned char run_id[HAPAX_RUN_ID_SIZE];
	char missing[HAPAX_ERROR_MESSAGE_SIZE]; /* kinds NONE and CONTENT: what was */
};

#define HAPAX_KEY_INIT                                                                          \
	{                                                                                       \
		sizeof(struct hapax_key), HAPAX_KEY_NONE, 0, {0}, 0, {0}, 0, {0}, 0, {0}, 0, 0, \
			{0},                                                                    \
		{                                                                               \
			0                                                                       \
		}                                                                               \
	}

/*
 * Make scope, key and fingerprint of an event. ret_key->size must be set.
 *
 * scratch holds what is needed on the way, up to its own maximum; used again, it is
 * not grown again. 16 times the size of the data and 8 KiB is enough as a rule, 27
 * times and 8 KiB always; composite and template need 4 times the text of all their
 * values on top, and a field that is named twice counts twice.
 *
 * INVALID: a part of the key (policy reject), or the tenant or group, was missing or
 * not usable, or the data was not JSON as it should be; the message names the path,
 * or line and column. LIMIT: scratch was too small. Owned: nothing; the key is a copy.
 */
HAPAX_API enum hapax_status hapax_key_make(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_key *ret_key, struct hapax_error *err);

/*
 * SHA-256 of an event's data: of its lossless canonical form if it is JSON that has
 * one, else of its bytes. Attributes, headers and meta never enter it. What
 * hapax_key_make() gives leaves out what its strategy excludes.
 * HAPAX_ERR_LIMIT: scratch was too small.
 */
HAPAX_API enum hapax_status hapax_event_fingerprint(
	const struct hapax_event *event, struct hapax_buf *scratch,
	unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

/*
 * Append the canonical text of a JSON document to out: what a content key hashes.
 * strategy, a content or hybrid one, says what of it and how.
 */
HAPAX_API enum hapax_status hapax_key_canonical_text(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_buf *out, struct hapax_error *err);

/*
 * What stands between the parts of a composite key. Within a part it is written as
 * %3A, a percent sign as %25, control characters and bytes that are not UTF-8 as
 * their bytes in the same form. Numbers and booleans are written as canonical JSON
 * writes them and strings as they are, so that the string "1" and the number 1 are
 * the same part. A key of more than 255 bytes becomes sha256: and 64 digits.
 */
#define HAPAX_KEY_SEPARATOR ':'

/*
 * Take a composite key apart again. parts point into buf, which is cleared first.
 * INVALID: it is not one; UNSUPPORTED: it is one that was hashed. LIMIT: more than
 * part_max parts.
 */
HAPAX_API enum hapax_status hapax_key_split(
	struct hapax_bytes key, struct hapax_buf *buf, struct hapax_bytes *parts, size_t part_max,
	size_t *ret_count, struct hapax_error *err);

/*
 * Whether bytes may be a key where people type and read them: 1 to size_max bytes of
 * UTF-8 without control characters. INVALID: the message says what and where.
 */
HAPAX_API enum hapax_status hapax_key_check_text(
	struct hapax_bytes key, size_t size_max, struct hapax_error *err);

/* "reject", "lossless", ...: the words of the configuration. Never NULL. */
HAPAX_API const char *hapax_on_missing_name(enum hapax_on_missing on_missing);
HAPAX_API const char *hapax_canonical_name(enum hapax_canonical canonical);

#ifdef __cplusplus
}
#endif

#endif
