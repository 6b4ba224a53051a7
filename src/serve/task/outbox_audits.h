/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_audits.h - the audits of the outbox, by `outbox.audits` of the configuration: whether the
 * rows of a query have events.
 *
 * On a thread and a connection of their own (background.h), one after the other: neither the relay
 * nor the control loop waits for a query. Each runs at the start, then `every` after its last run.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_TASK_OUTBOX_AUDITS_H
#define HX_SERVE_TASK_OUTBOX_AUDITS_H

#include "serve/task/background.h"

struct hx_audit_facts;

struct hx_outbox_audits {
	struct hx_background background;
};

extern const struct hx_background_ops hx_outbox_audits_ops;

/*
 * The last result of each. Owned: what is returned, by the caller (hx_free()). NULL and 0: there
 * are none, or no memory.
 */
struct hx_audit_facts *hx_outbox_audits_facts(struct hx_outbox_audits *audits, size_t *ret_count);

#endif
