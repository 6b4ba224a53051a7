/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/log_subject.h"

#include "store/log/log_store.h"

static enum hapax_status open_log(
	const struct hx_io *io, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options small = *options;

	if (small.segment_bytes == 0)
		small.segment_bytes = LOG_SEGMENT_BYTES;
	return hx_log_open_on(io, "file:/store", path, &small, ret_store, err);
}

const struct crash_subject log_subject = {
	.name = "file:",
	.keeps_pages_apart = true,
	.commits_whole = false,
	.open = open_log,
};
