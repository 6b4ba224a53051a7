/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_fault.h - faults of a config, each with its place.
 *
 * The first fault becomes the error of the call. A person who checks a file wants to see all of
 * them, so they are collected, up to a readable number.
 *
 * Threads: one at a time.
 */
#ifndef HX_CONFIG_CONFIG_FAULT_H
#define HX_CONFIG_CONFIG_FAULT_H

#include <stdint.h>

#include <hapax/error.h>

struct hapax_buf;

enum { HX_FAULTS_MAX = 20 };

/* The place of a setting: in a file, or a variable or option if line is 0. */
struct hx_place {
	const char *name; /* of the file, variable or option */
	uint32_t line;    /* from 1 on */
	uint32_t column;
};

struct hx_faults {
	struct hapax_buf *lines; /* NULL: only the first is needed */
	struct hapax_error *err; /* NULL: not needed */
	unsigned count;
	enum hapax_status status; /* of the first; OK if there is none */
};

/* Add "FILE:LINE:COLUMN: " and the formatted text. */
__attribute__((format(printf, 4, 5))) void hx_fault(
	struct hx_faults *faults, enum hapax_status status, const struct hx_place *place,
	const char *format, ...);
void hx_fault_no_memory(struct hx_faults *faults, const struct hx_place *place);

#endif
