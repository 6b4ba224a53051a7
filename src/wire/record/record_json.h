/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.h - records and results as JSON, both ways: the names of the API, which a server and
 * its client store write and read, and which the program prints.
 *
 * Threads: any.
 */
#ifndef HX_RECORD_JSON_H
#define HX_RECORD_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/record.h>

#include "wire/json/json_object.h"

struct hx_result_json {
	uint64_t given;
	int kind;
	int result_class;
	int64_t status;
	int64_t omitted_bytes;
	struct hapax_bytes headers;
	struct hapax_bytes body;
};

/* The event of a record: its cause. */
struct hx_event_json {
	uint64_t given;
	struct hapax_bytes id;
	struct hapax_bytes type;
	struct hapax_bytes source;
	int64_t time_ms;
};

struct hx_record_json {
	uint64_t given;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	int state;
	int origin;
	int on_lapse;
	int64_t token;
	int64_t attempt;
	int64_t first_seen_ms;
	int64_t changed_ms;
	int64_t lease_ends_ms;
	int64_t expires_ms;
	int64_t ttl_ms;
	uint32_t fingerprint_size;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_bytes owner;
	struct hapax_bytes error;
	struct hx_event_json event;
	struct hx_result_json result;
};

/* Their rows stand in every use. */
extern const struct hx_json_section hx_result_json_section;
extern const struct hx_json_section hx_event_json_section;
extern const struct hx_json_section hx_record_json_section;

/*
 * Convert what was read. A result and a record borrow the same bytes, a cause borrows buffer. A
 * record's names may be missing.
 */
void hx_record_result_from_json(const struct hx_result_json *json, struct hapax_result *ret_result);
struct hapax_bytes hx_record_cause_from_json(
	const struct hx_event_json *json, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX]);
void hx_record_from_json(
	const struct hx_record_json *json, unsigned char buffer[HAPAX_CAUSE_SIZE_MAX],
	struct hapax_record *ret_record);

enum hx_record_json_flag {
	HX_RECORD_JSON_WITH_RESULT = 1 << 0,
	/* Also attempt_id, which can repeat the claim: only for callers that may write. */
	HX_RECORD_JSON_WITH_SECRETS = 1 << 1,
	/*
	 * For people, not to be read back: no names, which the caller writes; no result of kind
	 * none; only HTTP headers of a result, since others are private to their writer.
	 */
	HX_RECORD_JSON_BRIEF = 1 << 2,
};

/* An event as a member of that name, with its known parts; nothing if all are unknown. */
void hx_record_event_write_json(
	struct hx_json_write *json, const char *name, const struct hapax_cause *event);

/* Its members, within an object that the caller has begun. */
void hx_record_write_json(
	struct hx_json_write *json, const struct hapax_record *record, unsigned flags);

/* As the member "event"; nothing if there is no cause. */
void hx_record_cause_write_json(struct hx_json_write *json, struct hapax_bytes cause);

/* As the member "result"; null if there is none. flags: BRIEF counts. */
void hx_record_result_write_json(
	struct hx_json_write *json, const struct hapax_result *result, unsigned flags);

#endif
