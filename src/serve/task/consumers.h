/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumers.h - the consumers of the daemon: from brokers to services and commands. They use the
 * daemon's store, so a message and an HTTP event with the same key are duplicates.
 *
 * Each consumer is a separate background (background.h): its failures affect no other, and a reload
 * touches only the consumers that it changes. A consumer that is not enabled does not run. A consumer removed from the configuration finishes
 * its runs, and returns the other messages.
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

#include "api/api.h"
#include "base/thread.h"
#include "observe/decision.h"
#include "serve/task/pauses.h"

struct hx_config;
struct hx_consumer_facts;
struct hx_consumer_task;
struct hx_serve;

struct hx_consumers {
	struct hx_serve *serve;
	struct hx_consumer_task *tasks;   /* in order of creation */
	struct hx_consumer_task *leaving; /* removed from the configuration */
	void (*ended)(void *context);     /* after drain, when the last has ended; on any thread */
	void *context;
	bool is_draining;
	struct hx_lock observer_lock; /* they share one: */
	struct hx_observer observer;
	_Atomic size_t open;     /* those not ended, plus 1 until drain, plus 1 for a question */
	struct hx_pauses pauses; /* asked by tidy */
};

/* consumers is zeros. Does not wait for brokers. Stopped by drain and join. */
enum hapax_status hx_consumers_start(
	struct hx_consumers *consumers, struct hx_serve *serve, struct hx_config *config,
	void (*ended)(void *context), void *context, struct hapax_error *err);

/* A new configuration is in force. Consumers that cannot start are logged. */
void hx_consumers_reload(struct hx_consumers *consumers, struct hx_config *config);

/*
 * Asks the store which are paused, frees removed consumers that have ended, and clears old failures
 * of working ones. Call it once a second.
 */
void hx_consumers_tidy(struct hx_consumers *consumers);

/* Pause or resume one, as the store has it; pause NULL: change nothing. False: there is none. */
bool hx_consumers_pause(
	struct hx_consumers *consumers, const char *name, const struct hx_pause *pause);

/* Calls each with every consumer. */
void hx_consumers_list(struct hx_consumers *consumers, hx_api_consumer_fn *each, void *context);

/* Takes no more messages and finishes the runs; then calls ended, once. */
void hx_consumers_drain(struct hx_consumers *consumers);

/* After drain. False: some have not ended by deadline_ns; they still use the store. */
bool hx_consumers_join(struct hx_consumers *consumers, int64_t deadline_ns);

/*
 * Figures of each, for metrics. Owned: what is returned, by the caller (hx_free()); names are
 * borrowed until the next reload. NULL and 0: there are none, or no memory.
 */
struct hx_consumer_facts *hx_consumers_facts(struct hx_consumers *consumers, size_t *ret_count);

/*
 * The number of unhealthy ones: not running, paused, or without their broker. reason, of size
 * bytes, then names the first of them and why; else the number running. Begins and ends the
 * condition of those without their broker.
 */
size_t hx_consumers_troubled(struct hx_consumers *consumers, char *reason, size_t size);

/* Whether there are any. */
bool hx_consumers_exist(const struct hx_consumers *consumers);

#endif
