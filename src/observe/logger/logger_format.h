/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_format.h - one line of a log as text.
 *
 * Threads: any.
 */
#ifndef HX_LOGGER_FORMAT_H
#define HX_LOGGER_FORMAT_H

#include "observe/logger/logger.h"

struct hx_logger_line {
	enum hx_logger_format format;
	enum hx_logger_keys keys;
	const unsigned char *hmac_key; /* HX_HMAC_KEY_SIZE bytes */
	bool has_priority;
	enum hx_logger_level level;
	int64_t wall_ms;
	const char *msg;
	const struct hx_logger_field *fields;
	size_t field_count;
	uint64_t suppressed; /* suppressed lines of this msg before it; 0: none */
};

/* Write it with its newline; returns its size. Fields that do not fit are left out and marked. */
size_t hx_logger_line_format(const struct hx_logger_line *line, char out[HX_LOGGER_LINE_MAX]);

#endif
