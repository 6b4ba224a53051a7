/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_operation.h - operations as the API is told of them, and what they are answered.
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

/* Uses of hx_operation_section: what may be said to which path. */
enum hx_operation_use {
	HX_USE_CLAIM = 1 << 0,
	HX_USE_RENEW = 1 << 1,
	HX_USE_COMPLETE = 1 << 2,
	HX_USE_RELEASE = 1 << 3,
	HX_USE_PARK = 1 << 4,
	HX_USE_CHECK = 1 << 5,
	HX_USE_RESOLVE = 1 << 6,
	HX_USE_ANY = 1 << 7, /* /operations: the operation is a member, too */
};

enum hx_operation_as { HX_RESOLVE_DONE, HX_RESOLVE_RETRY };

/* One operation, as it was said. */
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
	bool record;        /* the whole record is wanted */
	int64_t record_max; /* of so many bytes at most, or nothing is done */
	struct hx_result_json result;
	struct hx_record_json load;
};

extern const struct hx_json_section hx_operation_section;

/* An operation with everything that it points at. */
struct hx_api_item {
	struct hx_operation said;
	struct hapax_result result;
	struct hapax_record load;
	struct hapax_record record; /* that it is answered */
	struct hapax_buf buf;
};

/* Operations on their way to the store and back. */
struct hx_api_batch {
	size_t count;
	bool is_array; /* and so is the reply */
	struct hapax_op *ops;
	struct hx_api_item *items;
	size_t *indexes; /* of a second submit: which of them each is; or NULL */
	struct hapax_op *second;
	size_t second_count;
};

/* Records that are read take their memory from budget; NULL: from none. NULL: no memory. */
struct hx_api_batch *hx_api_batch_new(size_t count, bool is_array, struct hx_budget *budget);
void hx_api_batch_free(struct hx_api_batch *batch);

/*
 * Read a body: one operation, or an array. use: one of enum hx_operation_use. Settings that
 * are not given are those of the scope in config, if that is not NULL. On failure nothing is
 * left behind: INVALID, LIMIT (more than HX_API_BATCH_MAX), NO_MEMORY.
 */
enum hapax_status hx_api_batch_read(
	struct hx_json_reader *reader, enum hx_operation_use use, const struct hx_config *config,
	struct hx_api_batch **ret_batch, struct hapax_error *err);

/* The answer to an operation, as an object. use decides how much of it; of a whole record, with
 attempt_id if it has secrets. */
void hx_api_answer_write(
	struct hx_json_write *json, const struct hx_api_item *item, const struct hapax_op *op,
	enum hx_operation_use use, bool has_secrets);

#endif
