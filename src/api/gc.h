/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - the body of POST /gc.
 */
#ifndef HX_API_GC_H
#define HX_API_GC_H

#include "wire/json/json_object.h"

struct hx_gc_json {
	uint64_t given;
	int64_t count_max;
};

extern const struct hx_json_section hx_gc_json_section;

#endif
