/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - a row of hapax_record as struct hapax_record, and back.
 *
 * due_ms is the one column that the struct does not have: when the sweep must check the record.
 * It is the expiry for DONE and FAILED, and the lease's end plus the ttl for CLAIMED; NULL means
 * never. One small index thus serves the sweep.
 *
 * NULL stands for: no fingerprint, no attempt id, an empty text, a ttl without end.
 */
#ifndef HX_STORE_SQLITE_ROW_H
#define HX_STORE_SQLITE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <hapax/record.h>

#define HX_SQLITE_ROW_HEAD                                                        \
	"id, state, origin, on_lapse, attempt, token, first_seen_ms, changed_ms," \
	" lease_ends_ms, due_ms, ttl_ms, fingerprint, attempt_id, owner, error,"  \
	" result_kind, result_class, result_status, result_omitted"

/*
 * The columns of every statement that reads records. Without the result, which may be large, DONE
 * has no cause either: its column is behind the body, and reading it would walk over all of that.
 */
#define HX_SQLITE_ROW_WHOLE HX_SQLITE_ROW_HEAD ", result_headers, result_body, cause"
#define HX_SQLITE_ROW_WITHOUT_RESULT \
	HX_SQLITE_ROW_HEAD ", NULL, NULL, CASE state WHEN 2 THEN NULL ELSE cause END"

enum { HX_SQLITE_ROW_COUNT = 22 };

/*
 * Read statement's current row into *ret_record, whose tenant, group and key the caller has set.
 * Its bytes are valid until the next step or reset. *ret_valid is false if stored bytes failed a
 * check.
 */
int hx_sqlite_row_read(
	sqlite3_stmt *statement, int64_t *ret_id, struct hapax_record *ret_record, bool *ret_valid);

/* Bind parameters 1 to 21 of insert and update. */
int hx_sqlite_row_bind(sqlite3_stmt *statement, const struct hapax_record *record);

#endif
