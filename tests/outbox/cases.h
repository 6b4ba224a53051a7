/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.h - the lists of cases of an outbox, and what they share: an outbox of their own in the
 * database in question, and relays to a sink in memory.
 */
#ifndef TEST_OUTBOX_CASES_H
#define TEST_OUTBOX_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "outbox/memory_sink.h"
#include "outbox/outbox_case.h"

/* state is a struct outbox_case, but of message_cases. */
struct outbox_test {
	const char *name; /* NULL: the end of the list */
	void (*run)(void **state);
};

extern const struct outbox_test add_cases[];
extern const struct outbox_test backlog_cases[];
extern const struct outbox_test crowd_cases[];
extern const struct outbox_test manage_cases[];
extern const struct outbox_test message_cases[];
extern const struct outbox_test relay_cases[];
extern const struct outbox_test retention_cases[];
extern const struct outbox_test trouble_cases[];

/* End the case, and say why, where the database is SQLite. */
static inline void needs_postgres(const struct outbox_case *c, const char *why)
{
	if (c->is_postgres)
		return;
	printf("# skip: %s\n", why);
	skip();
}

/* What was published in this case. */
extern struct memory_log sunk;

/* What a relay has said. */
struct reports {
	size_t counts[HAPAX_RELAY_CONFIRMED + 1];
	char last[HAPAX_RELAY_CONFIRMED + 1][512];
};

/* Of a relay that ends when nothing is pending. reports may be NULL. */
struct hapax_relay_options relay_options(struct reports *reports);

/* Publish until nothing is pending. */
struct hapax_relay_stats drain_with(
	struct outbox_case *c, const struct hapax_relay_options *options);
struct hapax_relay_stats drain(struct outbox_case *c);

#endif
