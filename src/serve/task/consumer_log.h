/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer_log.h - logs the events of a consumer of the daemon.
 *
 * Threads: the background's own.
 */
#ifndef HX_SERVE_TASK_CONSUMER_LOG_H
#define HX_SERVE_TASK_CONSUMER_LOG_H

struct hapax_consumer_event;
struct hx_background;

void hx_consumer_log(
	struct hx_background *background, const char *name,
	const struct hapax_consumer_event *event);

#endif
