/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause.h - a consumer that an operator has paused, as a record of the store.
 *
 * The record is hapax/consumers/NAME, written by set; its value is who paused the consumer and why,
 * in two lines. No record: it is not paused. It therefore outlives the daemon, and applies to every
 * daemon that has a consumer of that name on the same store.
 *
 * Threads: any.
 */
#ifndef HX_API_PAUSE_H
#define HX_API_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

enum { HX_PAUSE_WHO_SIZE = 128 + 1, HX_PAUSE_REASON_SIZE = 256 + 1 };

struct hx_pause {
	bool is_known; /* the store has answered; false: nothing else is set */
	bool is_paused;
	int64_t at_ms;
	char who[HX_PAUSE_WHO_SIZE];
	char reason[HX_PAUSE_REASON_SIZE]; /* "": none given */
};

enum { HX_PAUSE_VALUE_SIZE = HX_PAUSE_WHO_SIZE + HX_PAUSE_REASON_SIZE };

/* Make op an operation on the record of that consumer. Borrowed: name. */
void hx_pause_name(struct hapax_op *op, enum hapax_op_type type, const char *name);

/* The value of a record, for set. */
struct hapax_bytes hx_pause_value(const struct hx_pause *pause, char out[HX_PAUSE_VALUE_SIZE]);

/* The answer to a lookup, which has a record. False: the store has not answered. */
bool hx_pause_read(const struct hapax_op *op, struct hx_pause *ret_pause);

#endif
