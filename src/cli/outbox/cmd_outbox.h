/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox.h - shared by the actions of hapax outbox.
 */
#ifndef HX_CLI_OUTBOX_CMD_OUTBOX_H
#define HX_CLI_OUTBOX_CMD_OUTBOX_H

#include <stdbool.h>

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
	HX_OUTBOX_UNTIL_EMPTY,
	HX_OUTBOX_OUTPUT,
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

/* The text of an option, or NULL. */
const char *hx_outbox_text(const struct hx_invocation *inv, enum hx_outbox_option option);

/* A duration in ms; 0: not given. HX_EXIT_USAGE after a message. */
int hx_outbox_duration(
	const struct hx_invocation *inv, enum hx_outbox_option option, int64_t *ret_ms);

bool hx_outbox_is_json(const struct hx_invocation *inv);

/* --db, or HAPAX_DB. NULL after reporting that it is missing. */
const char *hx_outbox_url(const struct hx_invocation *inv);

/* Open it. HX_EXIT_OK, or another code after a message. */
int hx_outbox_open(const struct hx_invocation *inv, struct hapax_outbox **ret_outbox);

/* The actions. */
int hx_outbox_add(struct hx_invocation *inv, char **operands, size_t count);
int hx_outbox_audit(struct hx_invocation *inv, char **operands, size_t count);
int hx_outbox_init(struct hx_invocation *inv, char **operands, size_t count);
int hx_outbox_park(struct hx_invocation *inv, char **operands, size_t count);
int hx_outbox_purge(struct hx_invocation *inv, char **operands, size_t count);
int hx_outbox_rebuild(struct hx_invocation *inv, char **operands, size_t count);
int hx_outbox_retry(struct hx_invocation *inv, char **operands, size_t count);

/* status --parked */
int hx_outbox_parked(struct hx_invocation *inv);

int hx_outbox_relay(struct hx_invocation *inv, char **operands, size_t count);

#endif
