/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition_watch.c - looks once a second for conditions that nothing reports.
 *
 * Parts that notice a condition themselves begin and end it (observe/condition.h). The state of
 * the store, of the clocks and of the process is looked at here, without a request or a probe.
 */
#include "base/clock.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/probe.h"

enum {
	/* The store is asked this often without probes and scrapes; a failed operation asks at once. */
	ASK_SECONDS = 10,
};

static void ask_store(struct hx_serve *serve, const struct hx_store_facts *facts)
{
	int64_t now_ns = hx_clock_mono_ns();

	if (facts->asked_ns == INT64_MAX &&
	    (facts->answered == 0 || now_ns - facts->answered_ns >= ASK_SECONDS * HX_NS_PER_S))
		(void)hx_store_view_ask(&serve->view);
}

void hx_serve_watch_conditions(struct hx_serve *serve)
{
	struct hx_probe probe = {.count = 0};
	struct hx_store_facts facts;

	hx_store_view_look(&serve->view, &facts);
	ask_store(serve, &facts);
	hx_probe_ready(&probe, serve, &facts);
	hx_conditions_tick(&serve->conditions);
}
