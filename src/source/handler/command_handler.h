/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_handler.h - a command as the handler of a message.
 *
 * It gets the data on its standard input and facts in its environment (HAPAX_KEY,
 * HAPAX_TOKEN, HAPAX_ATTEMPT, HAPAX_TOPIC, HAPAX_EVENT_TYPE, ...; HAPAX_DUPLICATE is empty but for a
 * duplicate that is tagged). What it writes to its standard output is
 * the result; its standard error is ours. Exit status 0 is ok, any other and death by a
 * signal are transient, as for `hapax run`; a command that was stopped because it took too
 * long is ambiguous.
 *
 * Threads: the function is called by workers, several at once.
 */
#ifndef HX_SOURCE_HANDLER_COMMAND_HANDLER_H
#define HX_SOURCE_HANDLER_COMMAND_HANDLER_H

#include <stdint.h>

#include <hapax/processor.h>

struct hx_command {
	const char *const *argv; /* ends with NULL */
	int64_t max_run_ms;
	uint64_t result_size_max;
};

/* The function of a route; context: struct hx_command. */
enum hapax_run_outcome hx_command_run_work(struct hapax_work *work, void *context);

#endif
