/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.h - how full the ledger may get: keys, bytes, parked records of a scope.
 */
#ifndef HX_STORE_SQLITE_LIMIT_H
#define HX_STORE_SQLITE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/transition.h"
#include "store/sqlite/transaction.h"

/* Decided but unwritten additions of a group. */
struct hx_sqlite_growth {
	uint64_t rows;
	uint64_t bytes;
};

/*
 * Does writing transition->next exceed a limit? If not, add it to growth. has_row: it replaces a
 * row, perhaps an expired one. A completion never exceeds it: a body that does not fit is left
 * out of next.
 */
int hx_sqlite_limit_check(
	struct hx_sqlite_transaction *transaction, const struct hapax_op *op,
	struct hx_transition *transition, bool has_row, struct hx_sqlite_growth *growth,
	bool *ret_over);

/* If count more records would not fit, remove some expired ones. */
int hx_sqlite_limit_make_room(struct hx_sqlite_transaction *transaction, size_t count);

#endif
