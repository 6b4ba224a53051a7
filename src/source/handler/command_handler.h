/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_handler.h - a command as the handler of a message.
 *
 * The command gets the data on standard input and variables in its environment (HAPAX_KEY,
 * HAPAX_TOKEN, HAPAX_ATTEMPT, HAPAX_TOPIC, HAPAX_EVENT_TYPE, ...; HAPAX_DUPLICATE is empty except
 * for a tagged duplicate). Its standard output is the result; it inherits our standard error. Exit
 * status 0 is ok. Any other status, or a signal, is transient, as for `hapax run`. A command that
 * was stopped by its timeout is ambiguous.
 *
 * Threads: workers call the function, several at once.
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
