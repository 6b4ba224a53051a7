/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_format.h - one line of a log as text.
 *
 * Threads: any.
 */
#ifndef HX_LOG_FORMAT_H
#define HX_LOG_FORMAT_H

#include "observe/logger/logger.h"

struct hx_log_line {
	enum hx_log_format format;
	enum hx_log_keys keys;
	bool has_priority;
	enum hx_log_level level;
	int64_t wall_ms;
	const char *msg;
	const struct hx_log_field *fields;
	size_t field_count;
	uint64_t suppressed; /* lines of this msg that were left out before; 0: none */
};

/* Write it with its newline; returns its size. Fields that do not fit are left out, which it says. */
size_t hx_log_line_format(const struct hx_log_line *line, char out[HX_LOG_LINE_MAX]);

/* "23h14m", "6d23h", "14s", "350ms": the two largest units; HAPAX_TIME_NEVER: "forever". */
enum { HX_LOG_DURATION_SIZE = 48 };
void hx_log_duration_format(int64_t ms, char out[HX_LOG_DURATION_SIZE]);

#endif
