/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer_task.h - one consumer of the daemon; for consumers.c and consumer_state.c.
 *
 * Threads: the control loop's, except as its lock says.
 */
#ifndef HX_SERVE_TASK_CONSUMER_TASK_H
#define HX_SERVE_TASK_CONSUMER_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/source.h>

#include "api/pause.h"
#include "base/thread.h"
#include "serve/task/background.h"
#include "serve/trace/message_trace.h"

struct hx_config;
struct hx_config_consumer;
struct hx_consumers;

enum { HX_CONSUMER_LABEL_SIZE = 160 };

struct hx_consumer_task {
	struct hx_background background; /* first: its operations get this pointer */
	struct hx_background_ops ops;    /* with its own name */
	struct hx_consumers *consumers;
	char label[HX_CONSUMER_LABEL_SIZE];        /* "consumer orders" */
	const char *name;                          /* "orders", within label */
	struct hx_config *config;                  /* owner of settings; kept */
	const struct hx_config_consumer *settings; /* in use, or for the next start */
	struct hx_consumer_task *next;
	bool is_unread;   /* the store has not said whether it is paused */
	bool is_outdated; /* a change is newer than the question that the store has */

	struct hx_lock lock;
	/* Locks: lock. */
	struct hapax_consumer_stats before; /* sum of its earlier lives */
	uint64_t starts;
	struct hx_pause pause;
	bool is_paused;    /* the store is unavailable */
	bool is_halted;    /* a message has no ID */
	bool is_reached;   /* the broker has accepted it */
	int64_t failed_ns; /* last failure of the broker; 0: none, or it has recovered */
	bool is_news;      /* not read yet */
	uint64_t received; /* count of messages at that read */
	char why[HAPAX_ERROR_MESSAGE_SIZE]; /* reason of the latest of these */
	char halt[HAPAX_ERROR_MESSAGE_SIZE];
};

/* A running consumer: made by open, freed by close. */
struct hx_consumer_work {
	struct hx_consumer_task *task;
	struct hapax_consumer *consumer;
	struct hapax_run_options run;
	struct hx_message_trace trace;
	const char *argv[4];
};

/* What it does now, and what it has done with its earlier lives. */
struct hx_consumer_view {
	bool runs;
	struct hapax_consumer_stats now;
	struct hapax_consumer_stats sum; /* with its earlier lives */
};

void hx_consumer_task_look(struct hx_consumer_task *task, struct hx_consumer_view *ret_view);

/* Gauges are current values; counters are added up. */
void hx_consumer_task_add(
	struct hapax_consumer_stats *sum, const struct hapax_consumer_stats *stats);

#endif
