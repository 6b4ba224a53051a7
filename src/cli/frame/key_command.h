/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_command.h - commands that do one operation on the key they are given.
 *
 * claim, check, lookup, explain, forget, resolve and the verbs with a token have this in common:
 * the first operand is a key, the store answers one operation on it, and the answer is printed.
 * What differs is a function that prints the answer:
 *
 *	static int print(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op);
 *
 *	struct hapax_op op;
 *	int code = hx_key_command_init(inv, HAPAX_OP_LOOKUP, &op);
 *
 *	if (code == HX_EXIT_OK)
 *		code = hx_key_command_run(inv, HX_OPEN_EXISTING, &op, print);
 *
 * Two steps, because a command judges its own options between them: nothing is opened before
 * the whole command line is known to be right.
 *
 * Threads: the main thread.
 */
#ifndef HX_CLI_FRAME_KEY_COMMAND_H
#define HX_CLI_FRAME_KEY_COMMAND_H

#include <hapax/store.h>

#include "cli/frame/command.h"

/*
 * Print what the store answered and return the exit code. op->status is HAPAX_OK, or
 * HAPAX_ERR_FENCED for an operation with a token; every other status has been reported.
 * op->record is set, also when there is none: it is absent then.
 */
typedef int hx_key_command_fn(
	struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op);

/* Begin op: its type, the key, the scope and the TTL. HX_EXIT_OK, or HX_EXIT_USAGE after saying why. */
int hx_key_command_init(
	struct hx_invocation *inv, enum hapax_op_type type, struct hapax_op *ret_op);

/* Open the store of the settings, hx_key_command_apply(), close it. Returns the exit code. */
int hx_key_command_run(
	struct hx_invocation *inv, enum hx_open mode, struct hapax_op *op,
	hx_key_command_fn *answer);

/*
 * Run op, which needs no room of its own for the record, and call answer. A claim whose answer
 * was lost is settled first, by the very same call. Returns the exit code.
 */
int hx_key_command_apply(
	struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op,
	hx_key_command_fn *answer);

#endif
