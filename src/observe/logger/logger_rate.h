/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_rate.h - limit the lines of each msg per second.
 *
 * A msg's second begins with the first line after the previous second. Messages are constants,
 * identified by their address, so a table of fixed size is enough; those that do not fit share the
 * last place.
 *
 * Threads: any.
 */
#ifndef HX_LOGGER_RATE_H
#define HX_LOGGER_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"

enum { HX_LOGGER_RATE_MESSAGES_MAX = 128 };

struct hx_logger_rate_message {
	const char *msg; /* NULL: free */
	int64_t begin_ms;
	uint64_t lines;      /* since begin_ms */
	uint64_t suppressed; /* and not reported yet */
};

/* A struct of zeros is an empty one. */
struct hx_logger_rate {
	struct hx_lock lock;
	struct hx_logger_rate_message messages[HX_LOGGER_RATE_MESSAGES_MAX];
};

/*
 * May a line be written at now_ms with limit lines per second (0: no limit)? If so, *ret_suppressed
 * is the number it must report.
 */
bool hx_logger_rate_take(
	struct hx_logger_rate *rate, const char *msg, uint64_t limit, int64_t now_ms,
	uint64_t *ret_suppressed);

/* Count lines of msg that were left out without asking. */
void hx_logger_rate_skip(struct hx_logger_rate *rate, const char *msg, uint64_t count);

/* A msg whose second has passed and that has lines to report; false: there is none. */
bool hx_logger_rate_next(
	struct hx_logger_rate *rate, int64_t now_ms, const char **ret_msg,
	uint64_t *ret_suppressed);

#endif
