/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_codec.h - operations and answers in the format of a daemon's API.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_SERVER_SERVER_CODEC_H
#define HX_STORE_SERVER_SERVER_CODEC_H

#include <stdbool.h>

#include <hapax/store.h>

#include "wire/json/json_object.h"

/* The group bits that an operation is sent with; a group may have lost members. */
struct hx_server_group {
	bool is_linked;
	bool is_all_or_nothing;
};

/* Append an operation as an object; json records whether it fits. */
void hx_server_write_op(
	struct hx_json_write *json, const struct hapax_op *op, struct hx_server_group group);

/*
 * Read the answer into op. False: it is malformed, the outcome is unknown, and op is unchanged. A
 * record that does not fit op->buf gives NO_MEMORY or LIMIT in op->status.
 */
bool hx_server_read_answer(
	struct hx_json_reader *reader, const struct hx_json_node *node, struct hapax_op *op);

/* End op without an answer. A lookup is never UNCERTAIN, but UNAVAILABLE. */
void hx_server_refuse(struct hapax_op *op, enum hapax_status status);

/* The status of "urn:hapax:problem:NAME" or NAME; UNCERTAIN for an unknown name. */
enum hapax_status hx_server_status_of(struct hapax_bytes name);

/* Read a record of a listing, whose cause borrows buffer. False: it is malformed. */
bool hx_server_read_record(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX], struct hapax_record *ret_record);

#endif
