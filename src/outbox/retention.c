/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/retention.h"

#include <assert.h>

#include "base/clock.h"

enum {
	ROUND_MS = 60 * 1000, /* pause between rounds; with a short retention, that */
	ROUND_MS_MIN = 1000,
	STEP_SHARE = 10, /* of the time, for steps of an unfinished round */
};

static int64_t round_ms(int64_t age_ms)
{
	if (age_ms < ROUND_MS_MIN)
		return ROUND_MS_MIN;
	return age_ms < ROUND_MS ? age_ms : ROUND_MS;
}

enum hapax_status hx_retention_step(
	struct hx_retention *retention, struct hapax_outbox *outbox, const char *relay,
	uint64_t *ret_count, struct hapax_error *err)
{
	int64_t begin_ns = hx_clock_mono_ns();
	int64_t end_ns;
	enum hapax_status status;

	assert(retention->age_ms > 0);
	*ret_count = 0;
	if (retention->age_ms == HAPAX_TTL_FOREVER || begin_ns < retention->due_ns)
		return HAPAX_OK;
	if (!retention->is_unfinished)
		retention->deleted = 0;
	status = outbox->ops->purge(
		outbox, relay, retention->age_ms, HX_RETENTION_ROWS, ret_count, err);
	end_ns = hx_clock_mono_ns();
	if (status != HAPAX_OK)
		*ret_count = 0;
	/* A server may claim more. */
	if (*ret_count > HX_RETENTION_ROWS)
		*ret_count = HX_RETENTION_ROWS;
	retention->deleted += *ret_count;
	retention->is_unfinished = *ret_count == HX_RETENTION_ROWS;
	retention->due_ns = end_ns +
		(retention->is_unfinished ? (end_ns - begin_ns) * (STEP_SHARE - 1)
					  : round_ms(retention->age_ms) * HX_NS_PER_MS);
	return status;
}
