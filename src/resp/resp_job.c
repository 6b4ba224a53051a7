/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/resp_job.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"

enum {
	/* One piece with the longest keys, each with its header. */
	FOUND_SIZE_MAX = 4 * 1024 * 1024,
};

static struct hapax_bytes part_or_default(struct hapax_bytes part)
{
	return part.size == 0 ? HX_BYTES_LIT("default") : part;
}

struct hx_resp_job *hx_resp_job_new(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	hx_resp_job_fn *fn, size_t count_max)
{
	struct hx_resp_job *job = hx_alloc_zero(1, sizeof(*job));

	if (job == NULL)
		return NULL;
	job->fn = fn;
	job->store = store;
	job->what = (struct hapax_scan)HAPAX_SCAN_INIT;
	job->what.tenant = part_or_default(tenant);
	job->what.group = part_or_default(group);
	job->what.count_max = count_max;
	hx_buf_init(&job->pattern, HX_RESULT_SIZE_LIMIT);
	hx_buf_init(&job->found, FOUND_SIZE_MAX);
	hx_resp_batch_init(&job->batch);
	return job;
}

void hx_resp_job_free(struct hx_resp_job *job)
{
	if (job == NULL)
		return;
	hx_buf_done(&job->pattern);
	hx_buf_done(&job->found);
	hx_resp_batch_done(&job->batch);
	hx_free(job);
}

bool hx_resp_job_run(struct hx_resp_job *job)
{
	if (atomic_load(&job->is_dropped) != 0)
		return false;
	return job->fn(job) && job->status == HAPAX_OK;
}

void hx_resp_job_drop(struct hx_resp_job *job)
{
	if (!job->is_whole)
		atomic_store(&job->is_dropped, 1);
}
