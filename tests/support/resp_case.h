/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_case.h - a Redis door without sockets: one client, a store in memory, virtual time.
 *
 * Threads: one.
 */
#ifndef TEST_SUPPORT_RESP_CASE_H
#define TEST_SUPPORT_RESP_CASE_H

#include "base/buf.h"
#include "resp/resp_session.h"
#include "support/virtual_clock.h"

struct resp_case {
	struct hx_virtual_clock clock;
	struct hapax_store *store;
	struct hx_resp_service service;
	struct hx_resp_session session;
	struct hx_resp_batch batches[2];
	struct hapax_buf input;
	struct hapax_buf out;
	size_t submits;      /* batches that went to the store */
	size_t largest;      /* operations of the largest one */
	unsigned last_flags; /* of the first operation of the last one */
};

/* options may be NULL; its store and clock are those of the case. False: no memory. */
bool resp_case_begin(struct resp_case *c, const struct hx_resp_service_options *options);
void resp_case_end(struct resp_case *c);

/* Send bytes as the door would; the replies are in out. */
void resp_case_feed(struct resp_case *c, const void *data, size_t size);

/* The same for text, inline commands say; its replies alone, ended by NUL, until the next call. */
const char *resp_case_ask(struct resp_case *c, const char *text);

/* A command as libraries send it. Ended by NULL. */
const char *resp_case_command(struct resp_case *c, const char *word, ...);

#endif
