/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holder.h - what whoever holds a claim may do with it, by its token.
 *
 * renew, complete, release and park differ in one operation; the rest is here.
 */
#ifndef HX_CLI_KEY_HOLDER_H
#define HX_CLI_KEY_HOLDER_H

#include <hapax/store.h>

#include "cli/frame/command.h"

enum hx_holder_option { HX_HOLDER_OPTION_TOKEN = 200 };

/* The row of a command's table of options that names the token. */
/* clang-format off */
#define HX_HOLDER_OPTION_ROW \
	{HX_HOLDER_OPTION_TOKEN, "token", 0, HX_OPTION_TEXT, "N", \
	 "the token that claim gave; without it HAPAX_TOKEN", NULL}
/* clang-format on */

/*
 * Complete op, whose type and own members are set, with key, scope and token from the
 * command line; apply it, and print what became of the record. Returns the exit code.
 */
int hx_holder_run(struct hx_invocation *inv, struct hapax_op *op);

/* Apply op, which is complete, to store and print what became of the record. */
int hx_holder_apply(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op);

#endif
