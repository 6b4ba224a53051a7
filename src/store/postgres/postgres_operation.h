/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_operation.h - operations as the arguments of hapax_operate(), and its rows as answers.
 *
 * Arguments and rows are binary. An argument is an array with one element for each operation. If
 * no operation has a value, the array is NULL.
 *
 * Room for records (store/room.h) is reserved before the arguments are encoded.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_OPERATION_H
#define HX_STORE_POSTGRES_POSTGRES_OPERATION_H

#include <stdbool.h>

#include <libpq-fe.h>

#include <hapax/store.h>

#include "base/buf.h"

enum {
	HX_POSTGRES_SCALARS = 4,
	HX_POSTGRES_ARGUMENTS = 31,
	HX_POSTGRES_COLUMNS = 32, /* of hapax_answer */
	HX_POSTGRES_OPS_MAX = 1024,
};

/* Type numbers, the same in every PostgreSQL. */
enum {
	HX_POSTGRES_BOOL = 16,
	HX_POSTGRES_BYTEA = 17,
	HX_POSTGRES_INT8 = 20,
	HX_POSTGRES_INT2 = 21,
	HX_POSTGRES_INT4 = 23,
	HX_POSTGRES_BYTEA_ARRAY = 1001,
	HX_POSTGRES_INT2_ARRAY = 1005,
	HX_POSTGRES_INT4_ARRAY = 1007,
	HX_POSTGRES_INT8_ARRAY = 1016,
};

enum hx_postgres_group {
	HX_POSTGRES_APART,          /* each on its own */
	HX_POSTGRES_TOGETHER,       /* linked: they take effect together */
	HX_POSTGRES_ALL_OR_NOTHING, /* ... or not at all */
};

/* The rules of a transaction, beside its operations. */
struct hx_postgres_rules {
	int64_t now_ms; /* negative: the server's clock */
	uint64_t parked_max;
	uint64_t result_size_max;
	bool is_joined;    /* claims have no lease */
	bool is_listening; /* answering IN_PROGRESS marks the record, so that its end is reported */
};

struct hx_postgres_arguments {
	struct hapax_buf bytes;
	size_t offsets[HX_POSTGRES_ARGUMENTS]; /* SIZE_MAX: NULL */
	const char *values[HX_POSTGRES_ARGUMENTS];
	int lengths[HX_POSTGRES_ARGUMENTS];
	int formats[HX_POSTGRES_ARGUMENTS];
};

void hx_postgres_arguments_init(struct hx_postgres_arguments *arguments);
void hx_postgres_arguments_done(struct hx_postgres_arguments *arguments);

/* The result that op carries; NULL: none. */
static inline const struct hapax_result *hx_postgres_op_result(const struct hapax_op *op)
{
	if (op->type == HAPAX_OP_LOAD)
		return &op->load->result;
	return op->type == HAPAX_OP_COMPLETE || op->type == HAPAX_OP_SET ? op->result : NULL;
}

/* Sort by tenant, group and key. Stable. */
void hx_postgres_ops_sort(struct hapax_op **ops, size_t count);

/* Encode the arguments of ops. LIMIT, NO_MEMORY: there are none. */
enum hapax_status hx_postgres_arguments_encode(
	struct hx_postgres_arguments *arguments, struct hapax_op *const *ops, size_t count,
	enum hx_postgres_group kind, const struct hx_postgres_rules *rules);

/* The arguments of hapax_tx_take() and hapax_tx_finish(): one operation, nothing is copied. */
enum {
	HX_POSTGRES_CLAIM_SCALARS = 13,
	HX_POSTGRES_COMPLETE_SCALARS = 11,
	HX_POSTGRES_TX_SCALARS_MAX = 13,
};

struct hx_postgres_scalars {
	int count;
	const char *values[HX_POSTGRES_TX_SCALARS_MAX];
	int lengths[HX_POSTGRES_TX_SCALARS_MAX];
	int formats[HX_POSTGRES_TX_SCALARS_MAX];
	unsigned char numbers[HX_POSTGRES_TX_SCALARS_MAX][8];
};

void hx_postgres_scalars_claim(
	struct hx_postgres_scalars *scalars, const struct hapax_op *op,
	const struct hx_postgres_rules *rules, int64_t wait_ms);
void hx_postgres_scalars_complete(
	struct hx_postgres_scalars *scalars, const struct hapax_op *op,
	const struct hx_postgres_rules *rules);

/* The types of the arguments, for PREPARE. */
extern const Oid hx_postgres_argument_types[HX_POSTGRES_ARGUMENTS];

/* "SELECT * FROM function($1 ... $count)", with the schema. NUL at the end. */
enum hapax_status hx_postgres_call_append(
	struct hapax_buf *buf, const char *schema, const char *function, unsigned count);

/* Decode rows into answers. False: the reply is malformed, and no operation has an answer. */
bool hx_postgres_answers_decode(const PGresult *result, struct hapax_op *const *ops, size_t count);

/*
 * For a readable row: the token of the claim that caused IN_PROGRESS, else 0, and the number of
 * the operation that it answers, from 1.
 */
uint64_t hx_postgres_answer_holder(const PGresult *result, int row, size_t *ret_place);

/*
 * The same for one claim: the bytes of hapax_tx_take(), or the answer of hapax_tx_claim() beside
 * them; and for hapax_tx_finish().
 */
bool hx_postgres_taken_decode(const PGresult *result, struct hapax_op *op);
bool hx_postgres_finished_decode(const PGresult *result, struct hapax_op *op);

/* Reserve the room that HX003 asks for ("place room"). False: the text is malformed. */
bool hx_postgres_op_make_room(struct hapax_op *const *ops, size_t count, const char *detail);

/* True if no operation writes. */
bool hx_postgres_ops_only_read(struct hapax_op *const *ops, size_t count);

/* Read a record of hapax_show(), from column on. False: malformed. Borrows from result. */
bool hx_postgres_record_read(
	const PGresult *result, int row, int column, const struct hapax_op *own,
	struct hapax_record *ret_record);

/* Read one value. False: it is NULL or has a different size. */
bool hx_postgres_get_number(const PGresult *result, int row, int column, int64_t *ret_number);
struct hapax_bytes hx_postgres_get_bytes(const PGresult *result, int row, int column);

/* The same; 0 for NULL. */
int64_t hx_postgres_number(const PGresult *result, int row, int column);

/* Big-endian, as PostgreSQL sends numbers. */
void hx_postgres_put_i64(unsigned char out[8], int64_t number);

/* Append bytes with their size; the head of an array. */
enum hapax_status hx_postgres_append_bytes(struct hapax_buf *buf, struct hapax_bytes bytes);
enum hapax_status hx_postgres_append_array(struct hapax_buf *buf, Oid element, size_t count);

/*
 * The end of the operations from first on that share a transaction: one group, or at most
 * count_max between two.
 */
size_t hx_postgres_segment_end(
	const struct hapax_op *ops, size_t count, size_t first, size_t count_max,
	enum hx_postgres_group *ret_kind);

/*
 * Another transaction has held the key for longer than ours may wait: it is in progress. False:
 * op has no such answer.
 */
bool hx_postgres_op_answer_locked(struct hapax_op *op);

#endif
