/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_act.h - what a known script does, as store operations.
 *
 * Threads: as resp_command.h.
 */
#ifndef HX_RESP_SCRIPT_ACT_H
#define HX_RESP_SCRIPT_ACT_H

#include "resp/resp_command.h"
#include "resp/resp_script.h"

/* The keys of a script call, and the arguments behind them. */
struct hx_resp_script_keys {
	const struct hapax_bytes *first;
	size_t count;
	const struct hapax_bytes *args;
};

/* There are as many keys and arguments as the script has. */
void hx_resp_script_act(
	struct hx_resp_call *call, const struct hx_resp_script *script,
	const struct hx_resp_script_keys *keys);

/* Adds the removal of a key if it has this value, a copy of the batch. False: refused. */
bool hx_resp_add_remove_equal(
	struct hx_resp_call *call, struct hapax_bytes key, struct hapax_bytes kept,
	hx_resp_finish_fn *finish);

#endif
