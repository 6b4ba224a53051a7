/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_fault.h - PostgreSQL's errors as statuses of error.h.
 *
 * A statement that ends with an ERROR was rolled back: nothing was done. After a FATAL error or a
 * lost connection the outcome is unknown.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_FAULT_H
#define HX_STORE_POSTGRES_POSTGRES_FAULT_H

#include <stdbool.h>

#include <libpq-fe.h>

#include <hapax/error.h>

enum hx_postgres_fault {
	HX_POSTGRES_FAULT_FENCED,
	HX_POSTGRES_FAULT_ENDED,   /* HX008: the claim was made in another transaction */
	HX_POSTGRES_FAULT_ROOM,    /* HX003: a record needs more room in the caller's memory */
	HX_POSTGRES_FAULT_LOCKED,  /* another transaction holds the record */
	HX_POSTGRES_FAULT_AGAIN,   /* deadlock, serialization failure: retry */
	HX_POSTGRES_FAULT_LIMIT,   /* disk, memory, tokens: full */
	HX_POSTGRES_FAULT_CORRUPT, /* stored bytes failed a check */
	HX_POSTGRES_FAULT_DENIED,  /* the role lacks permission; row level security */
	HX_POSTGRES_FAULT_GONE,    /* this session is unusable: read only, no ledger */
	HX_POSTGRES_FAULT_OTHER,   /* nothing was done */
	HX_POSTGRES_FAULT_LOST,    /* the connection ended; unknown outcome */
};

/* The fault of an SQLSTATE; NULL: lost. */
enum hx_postgres_fault hx_postgres_fault_of_code(const char *sqlstate);

/* The fault of an error result. */
enum hx_postgres_fault hx_postgres_fault(const PGresult *result);

/* The status when it is final. LOST is UNCERTAIN. */
enum hapax_status hx_postgres_fault_status(enum hx_postgres_fault fault);

/* Why a caller's connection cannot run a statement now. */
const char *hx_postgres_busy_text(const PGconn *conn);

/* Report a failed connection, with a hint. libpq's message contains no password or other secret. */
enum hapax_status hx_postgres_connect_error(const PGconn *conn, struct hapax_error *err);

/* Report a failed statement; what is past tense: "the ledger was not read". */
enum hapax_status hx_postgres_result_error(
	const PGresult *result, const char *what, struct hapax_error *err);

#endif
