/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - derive scope, key and fingerprint of a claim from an event.
 *
 * A strategy defines when two deliveries are the same. It is created once, from its text in a
 * configuration, and then used for each event:
 *
 *	field:PATH                    one value
 *	composite:PATH,PATH...        several values, joined without ambiguity
 *	content                       SHA-256 of the canonical data
 *
 * hapax_key_strategy_syntax() and `hapax help key` list the others.
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
 * Paths name their part of the event: data.order.id or data/order/id (JSON Pointer), attr.type,
 * header.X-Tenant, meta.topic. A path never falls through to another part, and a missing value has
 * no substitute: by default it is an error that names the path. data.body|json.id reads the JSON
 * document in the string data.body, up to four documents deep.
 *
 * Keys made here are 1 to 255 bytes of UTF-8 without control characters. Two events whose parts
 * differ never get the same key, unless SHA-256 fails. HAPAX_KEY_SEPARATOR describes the one
 * exception.
 *
 * Caveats. A content key cannot tell a redelivery from a second, intended event with the same
 * content: it deduplicates within the TTL, but it is not an identity. A list of excluded fields breaks
 * silently when a sender adds a field that changes with each delivery; a list of included fields
 * does not.
 *
 * Threads: any number of threads may use a strategy at once; a scratch buffer and a struct
 * hapax_key belong to one.
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

/* An unknown time. */
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

/* An incoming event. Everything is borrowed for the length of the call. */
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

/* What happens to an event with a missing part of the key. */
enum hapax_on_missing {
	HAPAX_ON_MISSING_REJECT = 0,  /* HAPAX_ERR_INVALID */
	HAPAX_ON_MISSING_PASS = 1,    /* no key: process it, marked as unprotected */
	HAPAX_ON_MISSING_CONTENT = 2, /* "content:" and a content key of the existing data */
};

enum hapax_canonical {
	HAPAX_CANONICAL_LOSSLESS = 0, /* numbers keep their value, at any size */
	HAPAX_CANONICAL_PYTHON = 1,   /* as json.dumps(x, sort_keys=True), for keys made with it */
};

enum hapax_key_flags {
	/* Paths begin within the data: order.id, not data.order.id. So do source and id. */
	HAPAX_KEY_RELATIVE = 1 << 0,
	/* Allow strategies that make a new key each time. Never use it on the receiving side. */
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
	const char *const *include; /* content: only these paths; each must exist */
	size_t include_count;
	const char *const *exclude; /* paths ignored by content and fingerprint */
	size_t exclude_count;
	const char *tenant;      /* without a slash. NULL and no tenant_from: "default" */
	const char *tenant_from; /* a path; if absent or null: tenant, else an error */
	const char *group;       /* like tenant */
	const char *group_from;
	/* For run IDs and also_until_ms; NULL: the system clock. Must outlive the strategy. */
	const struct hapax_clock *clock;
	/*
	 * While a strategy changes: the old one, with the same options, which makes hapax_key.also
	 * until this time. An event that lacks the new key has the old one as its only key;
	 * on_missing decides about those that lack both. include is for those of the two that
	 * accept it. NULL: none.
	 */
	const char *also;
	int64_t also_until_ms; /* on clock's wall_ms */
};

#define HAPAX_KEY_OPTIONS_INIT                                                                    \
	{                                                                                         \
		sizeof(struct hapax_key_options), 0, HAPAX_ON_MISSING_REJECT,                     \
			HAPAX_CANONICAL_LOSSLESS, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, \
			NULL, 0                                                                   \
	}

struct hapax_key_strategy;

/*
 * Create a strategy from its text. INVALID: the text or an option is wrong; the message says where.
 * options may be NULL.
 *
 * Owned: *ret_strategy, by the caller; see hapax_key_strategy_free().
 */
HAPAX_API enum hapax_status hapax_key_strategy_new(
	const char *text, const struct hapax_key_options *options,
	struct hapax_key_strategy **ret_strategy, struct hapax_error *err);

/* NULL is allowed. */
HAPAX_API void hapax_key_strategy_free(struct hapax_key_strategy *strategy);

/* The text given to new. Borrowed from strategy. */
HAPAX_API const char *hapax_key_strategy_text(const struct hapax_key_strategy *strategy);

/*
 * The parts of an event that a strategy needs, ORed. Without DATA an event may omit its data:
 * neither key nor scope use it, and the fingerprint, which always does, is not wanted
 * (HAPAX_KEY_NO_FINGERPRINT).
 */
enum hapax_key_need {
	HAPAX_KEY_NEEDS_DATA = 1 << 0,
	HAPAX_KEY_NEEDS_TIME = 1 << 1,
};
HAPAX_API unsigned hapax_key_strategy_needs(const struct hapax_key_strategy *strategy);

/* Does the strategy accept include? Other strategies refuse it. */
HAPAX_API int hapax_key_strategy_takes_include(const struct hapax_key_strategy *strategy);

/* The strategies by index from 0, for help and documentation; NULL after the last. */
HAPAX_API const char *hapax_key_strategy_syntax(size_t index);
HAPAX_API const char *hapax_key_strategy_summary(size_t index);

enum {
	HAPAX_KEY_SIZE_MAX = 255,   /* of a key made by a strategy */
	HAPAX_SCOPE_SIZE_MAX = 128, /* of a tenant or group */
	HAPAX_RUN_ID_SIZE = 16,
};

enum hapax_key_kind {
	HAPAX_KEY_NONE = 0,    /* a part was missing, policy pass: process it unprotected */
	HAPAX_KEY_MADE = 1,    /* made by the strategy */
	HAPAX_KEY_CONTENT = 2, /* a part was missing, policy content */
};

/* The parts of a claim. */
struct hapax_key {
	size_t size; /* set by HAPAX_KEY_INIT */
	enum hapax_key_kind kind;
	size_t key_size;
	char key[HAPAX_KEY_SIZE_MAX + 1]; /* with a NUL */
	size_t tenant_size;
	char tenant[HAPAX_SCOPE_SIZE_MAX + 1];
	size_t group_size;
	char group[HAPAX_SCOPE_SIZE_MAX + 1];
	int has_fingerprint;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	int is_fingerprint; /* the key is the fingerprint in hexadecimal: do not store both */
	int has_run_id;     /* hybrid, uuid7 */
	unsigned char run_id[HAPAX_RUN_ID_SIZE];
	char missing[HAPAX_ERROR_MESSAGE_SIZE]; /* kinds NONE and CONTENT: the missing part */
	/*
	 * The key by options.also, in the same scope. Claim both keys for one run (hapax_request.keys):
	 * the event is a duplicate if either is known. 0: there is none, or it is the same key.
	 */
	size_t also_size;
	char also[HAPAX_KEY_SIZE_MAX + 1];
	int has_also_fingerprint;
	unsigned char also_fingerprint[HAPAX_FINGERPRINT_SIZE];
};

#define HAPAX_KEY_INIT                                                                          \
	{                                                                                       \
		sizeof(struct hapax_key), HAPAX_KEY_NONE, 0, {0}, 0, {0}, 0, {0}, 0, {0}, 0, 0, \
			{0}, {0}, 0, {0}, 0,                                                    \
		{                                                                               \
			0                                                                       \
		}                                                                               \
	}

/*
 * Derive scope, key and fingerprint from an event. ret_key->size must be set.
 *
 * scratch is working memory, up to its own maximum; a reused buffer does not grow again. 16 times
 * the size of the data plus 8 KiB is usually enough, 27 times plus 8 KiB always. composite and
 * template need another 4 times the text of all their values; a field that is named twice counts
 * twice. Each string that a path reads as JSON counts as data plus 8 KiB. A path with |json also
 * allocates five times the size of the data for the call.
 *
 * INVALID: a part of the key (policy reject), or the tenant or group, was missing or unusable, or
 * the data was not valid JSON; the message names the path, or line and column. LIMIT: scratch was
 * too small. Owned: nothing; the key is a copy.
 */
HAPAX_API enum hapax_status hapax_key_make(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_key *ret_key, struct hapax_error *err);

/*
 * SHA-256 of an event's data: of its lossless canonical form if it is JSON that has one, else of
 * its bytes. It never includes attributes, headers or meta. hapax_key_make() also leaves out the
 * fields that its strategy excludes. HAPAX_ERR_LIMIT: scratch was too small.
 */
HAPAX_API enum hapax_status hapax_event_fingerprint(
	const struct hapax_event *event, struct hapax_buf *scratch,
	unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err);

/*
 * Append the canonical text of a JSON document to out: the input of a content key's hash. The
 * strategy (content or hybrid) selects the fields and the form.
 */
HAPAX_API enum hapax_status hapax_key_canonical_text(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_buf *out, struct hapax_error *err);

/*
 * Separates the parts of a composite key. Within a part it is written as %3A and a percent sign as
 * %25; control characters and bytes that are not UTF-8 have the same form. Numbers and booleans are
 * written as in canonical JSON, and strings unchanged, so the string "1" and the number 1 are the
 * same part. A key of more than 255 bytes becomes sha256: and 64 digits.
 */
#define HAPAX_KEY_SEPARATOR ':'

/*
 * Split a composite key into its parts, which point into buf; buf is cleared first. INVALID: not a
 * composite key. UNSUPPORTED: it was hashed. LIMIT: more than part_max parts.
 */
HAPAX_API enum hapax_status hapax_key_split(
	struct hapax_bytes key, struct hapax_buf *buf, struct hapax_bytes *parts, size_t part_max,
	size_t *ret_count, struct hapax_error *err);

/*
 * May people type and read these bytes as a key? They must be 1 to size_max bytes of UTF-8 without
 * control characters. INVALID: the message says what is wrong, and where.
 */
HAPAX_API enum hapax_status hapax_key_check_text(
	struct hapax_bytes key, size_t size_max, struct hapax_error *err);

/* The words of the configuration: "reject", "lossless", ... Never NULL. */
HAPAX_API const char *hapax_on_missing_name(enum hapax_on_missing on_missing);
HAPAX_API const char *hapax_canonical_name(enum hapax_canonical canonical);

#ifdef __cplusplus
}
#endif

#endif
