/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_case.h - a new outbox for one test, and a business table beside it, in either kind of
 * database. Whatever fails ends the program with a message.
 */
#ifndef TEST_OUTBOX_OUTBOX_CASE_H
#define TEST_OUTBOX_OUTBOX_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/outbox.h>

#include "support/temp_dir.h"

struct outbox_case {
	bool is_postgres;
	char url[512];
	struct temp_dir dir;
	void *db;                    /* the test's own connection */
	struct hapax_outbox *joined; /* to it */
};

/* kind: "sqlite:" or "postgres:". */
void outbox_case_init(struct outbox_case *c, const char *kind);
void outbox_case_done(struct outbox_case *c);

/* Another connection to the same, for a thread of its own. */
void outbox_case_join(const struct outbox_case *c, struct outbox_case *other);
void outbox_case_leave(struct outbox_case *c);

/* Run SQL; "{}" stands for the schema of the outbox and a dot. False: it failed. */
bool outbox_case_try(struct outbox_case *c, const char *sql);
void outbox_case_run(struct outbox_case *c, const char *sql);

/* The first column of the first row. */
int64_t outbox_case_number(struct outbox_case *c, const char *sql);
void outbox_case_text(struct outbox_case *c, const char *sql, char *out, size_t size);

/* Add an event by the joined connection; "" is absent. */
void outbox_case_add(
	struct outbox_case *c, const char *topic, const char *key, const char *id,
	const char *payload);

#endif
