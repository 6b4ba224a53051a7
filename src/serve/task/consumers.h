/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumers.h - the consumers of the daemon: messages of brokers to services and commands,
 * on the daemon's own store, so that a message and an event by HTTP of one key are one.
 *
 * Each is a background (background.h) of its own: its failures are its own, and a reload
 * touches only those that it changes. One that was taken out of the configuration finishes
 * what it runs, and gives the rest back.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_TASK_CONSUMERS_H
#define HX_SERVE_TASK_CONSUMERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/thread.h"

struct hx_config;
struct hx_consumer_facts;
struct hx_consumer_task;
struct hx_serve;

struct hx_consumers {
	struct hx_serve *serve;
	struct hx_consumer_task *tasks;   /* in the order in which they came */
	struct hx_consumer_task *leaving; /* not in the configuration any more */
	void (*ended)(void *context);     /* after drain, when the last has; on any thread */
	void *context;
	bool is_draining;
	struct hx_lock feed_lock; /* they are one writer of the feed */
	_Atomic size_t open;      /* those that have not ended, and 1 until drain */
};

/* consumers is zeros. Brokers are not waited for. Stopped by drain and join. */
enum hapax_status hx_consumers_start(
	struct hx_consumers *consumers, struct hx_serve *serve, struct hx_config *config,
	void (*ended)(void *context), void *context, struct hapax_error *err);

/* Another configuration is in force. What cannot be started is told in the log. */
void hx_consumers_reload(struct hx_consumers *consumers, struct hx_config *config);

/* Let go of those that have left, and believe again in those that work. Now and then. */
void hx_consumers_tidy(struct hx_consumers *consumers);

/* Take no more, finish what runs. ended is called when that is done, once. */
void hx_consumers_drain(struct hx_consumers *consumers);

/* After drain. False: some have not ended by deadline_ns; they still use the store. */
bool hx_consumers_join(struct hx_consumers *consumers, int64_t deadline_ns);

/*
 * Figures of each, for metrics. Owned: what is returned, by the caller (hx_free()); names are
 * borrowed until the next reload. NULL and 0: there are none, or no memory.
 */
struct hx_consumer_facts *hx_consumers_facts(struct hx_consumers *consumers, size_t *ret_count);

/*
 * How many are not well: not running, paused, or without their broker. reason, of size
 * bytes, then says which is the first of them and why; else how many run.
 */
size_t hx_consumers_troubled(struct hx_consumers *consumers, char *reason, size_t size);

/* Whether there are any. */
bool hx_consumers_exist(const struct hx_consumers *consumers);

#endif
