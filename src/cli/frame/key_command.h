/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_command.h - commands that apply one operation to the given key.
 *
 * In claim, check, lookup, explain, forget, resolve and the verbs with a token, the first operand
 * is a key. The store answers one operation on it, and the command prints the answer. Only the
 * function that prints it differs:
 *
 *	static int print(struct hx_invocation *inv, struct hapax_store *store,
 *			 struct hapax_op *op);
 *
 *	struct hapax_op op;
 *	int code = hx_key_command_init(inv, HAPAX_OP_LOOKUP, &op);
 *
 *	if (code == HX_EXIT_OK)
 *		code = hx_key_command_run(inv, HX_OPEN_EXISTING, &op, print);
 *
 * There are two steps because a command checks its own options between them: nothing is opened
 * before the whole command line is valid.
 *
 * Threads: the main thread.
 */
#ifndef HX_CLI_FRAME_KEY_COMMAND_H
#define HX_CLI_FRAME_KEY_COMMAND_H

#include <hapax/store.h>

#include "cli/frame/command.h"

/*
 * Print the store's answer and return the exit code. op->status is HAPAX_OK, or HAPAX_ERR_FENCED
 * for an operation with a token; any other status has been reported. op->record is always set; its
 * state is absent if there is none.
 */
typedef int hx_key_command_fn(
	struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op);

/* The row of --idempotency-key, for commands whose only operand is a key. */
/* clang-format off */
#define HX_IDEMPOTENCY_KEY_ROW \
	{HX_OPTION_IDEMPOTENCY_KEY, "idempotency-key", 0, HX_OPTION_FLAG, NULL, \
	 "KEY is the Idempotency-Key of a request to the proxy", NULL}
/* clang-format on */

/*
 * Begin op: type, key, scope and TTL. HX_EXIT_OK, or another code after a message. With
 * --idempotency-key the store is searched for the record of the proxy, in --scope or in all scopes;
 * there must be one.
 */
int hx_key_command_init(
	struct hx_invocation *inv, enum hapax_op_type type, struct hapax_op *ret_op);

/*
 * Report that op failed with err, with the hint for its cause: an unknown outcome, a full store, an
 * API token without the role. Returns the exit code.
 */
int hx_key_command_report(
	struct hx_invocation *inv, struct hapax_store *store, const struct hapax_op *op,
	const struct hapax_error *err);

/* Open the store of the settings, call hx_key_command_apply(), close it. Returns the exit code. */
int hx_key_command_run(
	struct hx_invocation *inv, enum hx_open mode, struct hapax_op *op,
	hx_key_command_fn *answer);

/*
 * The same for each operand, which are all keys: op is for the first of them. A key that is invalid
 * is refused before the store is opened; a failure of the store ends it. Returns the highest exit
 * code.
 */
int hx_key_command_each(
	struct hx_invocation *inv, enum hx_open mode, const struct hapax_op *op,
	hx_key_command_fn *answer);

/* With several keys, begin the line of text for op's key with the key. */
void hx_key_command_name(struct hx_invocation *inv, const struct hapax_op *op);

/* All of it for a lookup of the given key. */
int hx_key_command_look(struct hx_invocation *inv, hx_key_command_fn *answer);

/*
 * Run op, which needs no buffer for the record, and call answer. A claim with a lost answer is
 * first settled by the same call again. Returns the exit code.
 */
int hx_key_command_apply(
	struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op,
	hx_key_command_fn *answer);

#endif
