/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subject.h - a store that keeps its files behind the seam, to be crashed.
 */
#ifndef TEST_CRASH_SUBJECT_H
#define TEST_CRASH_SUBJECT_H

#include <stdbool.h>

#include <hapax/hapax.h>

#include "base/io.h"

struct crash_subject {
	const char *name;
	/* No write touches a page that holds something acknowledged: neighbors may suffer. */
	bool keeps_pages_apart;
	/* A whole submit is durable or nothing of it; else a beginning of it may be. */
	bool commits_whole;
	enum hapax_status (*open)(
		const struct hx_io *io, const char *path, const struct hapax_store_options *options,
		struct hapax_store **ret_store, struct hapax_error *err);
};

#endif
