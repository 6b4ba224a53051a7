/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/ticker.h"

#include <assert.h>

#include "base/clock.h"
#include "processor/processor.h"

void hx_ticker_init(struct hx_ticker *ticker)
{
	hx_mutex_init(&ticker->mutex);
	hx_cond_init(&ticker->changed);
}

/* Convert a time of the processor's clock to the clock that threads sleep by. */
static int64_t deadline_of(const struct hapax_processor *processor, int64_t at_ms)
{
	int64_t span_ms;
	int64_t span_ns;

	if (__builtin_sub_overflow(at_ms, hx_processor_now(processor), &span_ms) ||
	    __builtin_mul_overflow(span_ms, HX_NS_PER_MS, &span_ns))
		return at_ms > 0 ? INT64_MAX : 0;
	return hx_clock_mono_ns() + span_ns;
}

static void ticker_main(void *arg)
{
	struct hapax_processor *processor = arg;
	struct hx_ticker *ticker = &processor->ticker;

	hx_mutex_lock(&ticker->mutex);
	/* hx_ticker_start() holds the mutex until it has noted that the thread runs. */
	assert(ticker->runs);
	while (!ticker->stops) {
		int64_t next_ms;
		bool in_time = true;

		ticker->is_due = false;
		hx_mutex_unlock(&ticker->mutex);
		next_ms = hapax_processor_tick(processor);
		hx_mutex_lock(&ticker->mutex);
		while (!ticker->is_due && !ticker->stops && in_time) {
			if (next_ms == HAPAX_TIME_NEVER)
				hx_cond_wait(&ticker->changed, &ticker->mutex);
			else
				in_time = hx_cond_wait_until_ns(
					&ticker->changed, &ticker->mutex,
					deadline_of(processor, next_ms));
		}
	}
	hx_mutex_unlock(&ticker->mutex);
}

enum hapax_status hx_ticker_start(struct hapax_processor *processor, struct hapax_error *err)
{
	struct hx_ticker *ticker = &processor->ticker;
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&ticker->mutex);
	assert(!ticker->stops);
	if (!ticker->runs) {
		status = hx_thread_start(
			&ticker->thread, ticker_main, processor, "hapax-ticker", err);
		ticker->runs = status == HAPAX_OK;
	}
	hx_mutex_unlock(&ticker->mutex);
	return status;
}

void hx_ticker_wake(struct hx_ticker *ticker)
{
	hx_mutex_lock(&ticker->mutex);
	ticker->is_due = true;
	hx_cond_signal(&ticker->changed);
	hx_mutex_unlock(&ticker->mutex);
}

void hx_ticker_done(struct hx_ticker *ticker)
{
	bool runs;

	hx_mutex_lock(&ticker->mutex);
	assert(!ticker->stops);
	ticker->stops = true;
	runs = ticker->runs;
	hx_cond_signal(&ticker->changed);
	hx_mutex_unlock(&ticker->mutex);
	if (runs)
		hx_thread_join(&ticker->thread);
	hx_cond_done(&ticker->changed);
	hx_mutex_done(&ticker->mutex);
}
