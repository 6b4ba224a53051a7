/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox.h - shared by the actions of hapax outbox.
 */
#ifndef HX_CLI_OUTBOX_CMD_OUTBOX_H
#define HX_CLI_OUTBOX_CMD_OUTBOX_H

#include <hapax/outbox.h>

#include "cli/frame/command.h"

enum hx_outbox_option {
	HX_OUTBOX_DB = 1,
	HX_OUTBOX_TOPIC,
	HX_OUTBOX_KEY,
	HX_OUTBOX_ID,
	HX_OUTBOX_TYPE,
	HX_OUTBOX_SOURCE,
	HX_OUTBOX_SUBJECT,
	HX_OUTBOX_CONTENT_TYPE,
	HX_OUTBOX_HEADER,
	HX_OUTBOX_TO,
	HX_OUTBOX_BATCH,
	HX_OUTBOX_ATTEMPTS,
	HX_OUTBOX_LEASE,
	HX_OUTBOX_BACKOFF,
	HX_OUTBOX_HEADERS,
	HX_OUTBOX_RETENTION,
	HX_OUTBOX_UNTIL_EMPTY,
	HX_OUTBOX_ALL,
	HX_OUTBOX_OLDER,
	HX_OUTBOX_QUERY,
	HX_OUTBOX_BY,
	HX_OUTBOX_PARKED,
	HX_OUTBOX_PRESET,
	HX_OUTBOX_TABLE,
	HX_OUTBOX_COLUMN,
	HX_OUTBOX_EXISTING,
};

/* --db, or HAPAX_DB. NULL after reporting that it is missing. */
const char *hx_outbox_url(const struct hx_invocation *inv);

/* Open it. HX_EXIT_OK, or another code after a message. */
int hx_outbox_open(const struct hx_invocation *inv, struct hapax_outbox **ret_outbox);

/* The actions, and status --parked. */
command_run_fn hx_outbox_add;
command_run_fn hx_outbox_audit;
command_run_fn hx_outbox_init;
command_run_fn hx_outbox_park;
command_run_fn hx_outbox_purge;
command_run_fn hx_outbox_rebuild;
command_run_fn hx_outbox_retry;
command_run_fn hx_outbox_relay;
command_run_fn hx_outbox_parked;

#endif
