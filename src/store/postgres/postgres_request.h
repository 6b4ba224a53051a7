/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_request.h - one submit, or one call, on its way to the server and back.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_REQUEST_H
#define HX_STORE_POSTGRES_POSTGRES_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#include <hapax/store.h>

#include "base/thread.h"

enum { HX_POSTGRES_CALL_ARGUMENTS_MAX = 8 };

/* A statement whose caller waits for the rows. */
struct hx_postgres_call {
	const char *sql;
	int argument_count;
	Oid types[HX_POSTGRES_CALL_ARGUMENTS_MAX];
	const char *values[HX_POSTGRES_CALL_ARGUMENTS_MAX];
	int lengths[HX_POSTGRES_CALL_ARGUMENTS_MAX];
	PGresult *result; /* rows, in binary, or an error; NULL: see status */
	enum hapax_status status;
	struct hx_event done;
};

struct hx_postgres_request {
	struct hx_postgres_request *next;
	/* Either a call or operations. */
	struct hx_postgres_call *call;
	struct hapax_op *ops;
	size_t count; /* 1 for a call */
	struct hapax_completion completion;
	int64_t deadline_ns;
	bool has_group; /* some operations are linked */
	/* Used by the I/O thread only. */
	size_t sent;     /* decided operations */
	size_t sent_end; /* the same, and those of the transaction in progress */
};

#endif
