/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.h - records and results as JSON, both ways: the words of the API, which a
 * server writes and reads as does the store that asks it, and which the program prints.
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
	struct hx_result_json result;
};

/* Their rows stand in every use. */
extern const struct hx_json_section hx_result_json_section;
extern const struct hx_json_section hx_record_json_section;

/* What was read; it points where that points. A record's names may be missing. */
void hx_record_result_from_json(const struct hx_result_json *json, struct hapax_result *ret_result);
void hx_record_from_json(const struct hx_record_json *json, struct hapax_record *ret_record);

enum hx_record_json_flag {
	HX_RECORD_JSON_WITH_RESULT = 1 << 0,
	/* And attempt_id, with which the claim could be had again: for whoever may write. */
	HX_RECORD_JSON_WITH_SECRETS = 1 << 1,
	/*
	 * For people, and not to be read back: no names, which the caller writes; no result of kind
	 * none; of a result's headers only those of HTTP, since others are private to who made them.
	 */
	HX_RECORD_JSON_BRIEF = 1 << 2,
};

/* Its members, within an object that the caller has begun. */
void hx_record_write_json(
	struct hx_json_write *json, const struct hapax_record *record, unsigned flags);

/* As the member "result"; null where there is none. flags: BRIEF counts. */
void hx_record_result_write_json(
	struct hx_json_write *json, const struct hapax_result *result, unsigned flags);

#endif
