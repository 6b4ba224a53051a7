/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/resp_job.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"

enum {
	/* A piece of the longest keys, each with its head. */
	FOUND_SIZE_MAX = 4 * 1024 * 1024,
};

static struct hapax_bytes part_or_default(struct hapax_bytes part)
{
	return part.size == 0 ? HX_BYTES_LIT("default") : part;
}

struct hx_resp_errand *hx_resp_errand_new(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	hx_resp_errand_fn *fn, size_t count_max)
{
	struct hx_resp_errand *errand = hx_alloc_zero(1, sizeof(*errand));

	if (errand == NULL)
		return NULL;
	errand->fn = fn;
	errand->store = store;
	errand->what = (struct hapax_scan)HAPAX_SCAN_INIT;
	errand->what.tenant = part_or_default(tenant);
	errand->what.group = part_or_default(group);
	errand->what.count_max = count_max;
	hx_buf_init(&errand->pattern, HX_RESULT_SIZE_LIMIT);
	hx_buf_init(&errand->found, FOUND_SIZE_MAX);
	hx_resp_batch_init(&errand->batch);
	return errand;
}

void hx_resp_errand_free(struct hx_resp_errand *errand)
{
	if (errand == NULL)
		return;
	hx_buf_done(&errand->pattern);
	hx_buf_done(&errand->found);
	hx_resp_batch_done(&errand->batch);
	hx_free(errand);
}

bool hx_resp_errand_run(struct hx_resp_errand *errand)
{
	if (atomic_load(&errand->is_dropped) != 0)
		return false;
	return errand->fn(errand) && errand->status == HAPAX_OK;
}

void hx_resp_errand_drop(struct hx_resp_errand *errand)
{
	if (!errand->is_whole)
		atomic_store(&errand->is_dropped, 1);
}
