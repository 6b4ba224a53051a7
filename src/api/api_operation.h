/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_operation.h - operations and their answers as JSON.
 *
 * Threads: one at a time.
 */
#ifndef HX_API_API_OPERATION_H
#define HX_API_API_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "wire/record/record_json.h"
#include "wire/json/json_object.h"

struct hx_config;

/* Uses of hx_operation_section: the members that each path accepts. */
enum hx_operation_use {
	HX_USE_CLAIM = 1 << 0,
	HX_USE_RENEW = 1 << 1,
	HX_USE_COMPLETE = 1 << 2,
	HX_USE_RELEASE = 1 << 3,
	HX_USE_PARK = 1 << 4,
	HX_USE_CHECK = 1 << 5,
	HX_USE_RESOLVE = 1 << 6,
	HX_USE_ANY = 1 << 7, /* /operations: also the member "operation" */
};

enum hx_operation_as { HX_RESOLVE_DONE, HX_RESOLVE_RETRY };

/* One operation, as received. */
struct hx_operation {
	uint64_t given;
	int type; /* enum hapax_op_type */
	int as;   /* enum hx_operation_as */
	int on_lapse;
	int set_if;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hapax_bytes owner;
	struct hapax_bytes error;
	struct hapax_bytes expected;
	struct hx_event_json event;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	int64_t lease_ms;
	int64_t ttl_ms;
	int64_t expires_ms;
	int64_t token;
	bool force;
	bool linked;
	bool all_or_nothing;
	bool set_only;
	bool keep_ttl;
	bool record;        /* return the whole record */
	int64_t record_max; /* of at most this many bytes, or nothing is done */
	struct hx_result_json result;
	struct hx_record_json load;
};

extern const struct hx_json_section hx_operation_section;

/* An operation with everything that it points at. */
struct hx_api_item {
	struct hx_operation said;
	struct hapax_result result;
	struct hapax_record load;
	unsigned char *cause;       /* of the claim, or of the record to load; NULL: none */
	struct hapax_record record; /* the record in the answer */
	struct hapax_buf buf;
};

/* Operations for one submit to the store. */
struct hx_api_batch {
	size_t count;
	bool is_array; /* the request was an array, and so is the reply */
	struct hapax_op *ops;
	struct hx_api_item *items;
	size_t *indexes; /* for a second submit: the index of each item; or NULL */
	struct hapax_op *second;
	size_t second_count;
};

/* budget limits the memory of records; NULL: no limit. Returns NULL: out of memory. */
struct hx_api_batch *hx_api_batch_new(size_t count, bool is_array, struct hx_budget *budget);
void hx_api_batch_free(struct hx_api_batch *batch);

/*
 * Read a body: one operation, or an array. use: one of enum hx_operation_use. Missing settings come
 * from the scope in config, unless config is NULL. On failure nothing is left behind: INVALID,
 * LIMIT (more than HX_API_BATCH_MAX), NO_MEMORY.
 */
enum hapax_status hx_api_batch_read(
	struct hx_json_reader *reader, enum hx_operation_use use, const struct hx_config *config,
	struct hx_api_batch **ret_batch, struct hapax_error *err);

/*
 * Write the answer to an operation as an object: api_batch.c. use selects its members; a whole
 * record includes attempt_id if it has secrets.
 */
void hx_api_answer_write(
	struct hx_json_write *json, const struct hx_api_item *item, const struct hapax_op *op,
	enum hx_operation_use use, bool has_secrets);

#endif
