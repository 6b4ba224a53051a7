/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_rate.c - limit the lines of each msg per second.
 */
#include "observe/logger/logger_rate.h"

enum { SECOND_MS = 1000 };

/* Locks: rate->lock held. */
static struct hx_logger_rate_message *find(struct hx_logger_rate *rate, const char *msg)
{
	size_t i = 0;

	for (; i < HX_LOGGER_RATE_MESSAGES_MAX - 1; i++) {
		struct hx_logger_rate_message *message = &rate->messages[i];

		if (message->msg == NULL)
			message->msg = msg;
		if (message->msg == msg)
			return message;
	}
	rate->messages[i].msg = "other";
	return &rate->messages[i];
}

bool hx_logger_rate_take(
	struct hx_logger_rate *rate, const char *msg, uint64_t limit, int64_t now_ms,
	uint64_t *ret_suppressed)
{
	struct hx_logger_rate_message *message;
	bool is_taken;

	hx_lock_acquire(&rate->lock);
	message = find(rate, msg);
	if (now_ms - message->begin_ms >= SECOND_MS || message->lines == 0) {
		message->begin_ms = now_ms;
		message->lines = 0;
	}
	is_taken = limit == 0 || message->lines < limit;
	if (is_taken) {
		message->lines++;
		*ret_suppressed = message->suppressed;
		message->suppressed = 0;
	} else {
		message->suppressed++;
	}
	hx_lock_release(&rate->lock);
	return is_taken;
}

void hx_logger_rate_skip(struct hx_logger_rate *rate, const char *msg, uint64_t count)
{
	hx_lock_acquire(&rate->lock);
	find(rate, msg)->suppressed += count;
	hx_lock_release(&rate->lock);
}

bool hx_logger_rate_next(
	struct hx_logger_rate *rate, int64_t now_ms, const char **ret_msg, uint64_t *ret_suppressed)
{
	bool is_found = false;

	hx_lock_acquire(&rate->lock);
	for (size_t i = 0; i < HX_LOGGER_RATE_MESSAGES_MAX && !is_found; i++) {
		struct hx_logger_rate_message *message = &rate->messages[i];

		is_found = message->suppressed > 0 && now_ms - message->begin_ms >= SECOND_MS;
		if (is_found) {
			*ret_msg = message->msg;
			*ret_suppressed = message->suppressed;
			message->suppressed = 0;
		}
	}
	hx_lock_release(&rate->lock);
	return is_found;
}
