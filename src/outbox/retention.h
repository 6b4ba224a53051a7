/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.h - deletes rows that were sent long ago, as part of a relay.
 *
 * Rows that are pending, waiting or parked stay, however old they are. The relay that holds
 * partition 0 deletes for all. A step is a short transaction of at most HX_RETENTION_ROWS rows; a
 * round is the steps from the first due row to the last. Steps use at most a tenth of the relay's
 * time, so that publishing goes on.
 *
 * Threads: the relay's.
 */
#ifndef HX_OUTBOX_RETENTION_H
#define HX_OUTBOX_RETENTION_H

#include "outbox/outbox.h"

enum { HX_RETENTION_ROWS = 1000 };

struct hx_retention {
	int64_t age_ms;   /* HAPAX_TTL_FOREVER: rows stay */
	int64_t due_ns;   /* of the next step */
	uint64_t deleted; /* in the current round */
	bool is_unfinished;
	bool has_failed; /* the last step */
};

/* Delete the next rows if a step is due; *ret_count is their number. An error changes no row. */
enum hapax_status hx_retention_step(
	struct hx_retention *retention, struct hapax_outbox *outbox, const char *relay,
	uint64_t *ret_count, struct hapax_error *err);

#endif
