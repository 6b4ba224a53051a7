/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.h - connect to an endpoint: resolve, try each address, give up in time.
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_NET_DIAL_H
#define HX_NET_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "net/address.h"
#include "net/reactor.h"
#include "net/resolver.h"

struct hx_dial;

/*
 * fd is a connected socket, which the callee now owns; or -1 with the error of the last address.
 * Runs once, never from within hx_dial_begin(). The dial may be reused.
 */
typedef void hx_dialed_fn(struct hx_dial *dial, int fd, const struct hapax_error *err);

struct hx_dial {
	struct hx_reactor *reactor;
	struct hx_resolver *resolver;
	struct hx_endpoint endpoint;
	hx_dialed_fn *fn;
	void *context;
	struct hx_resolver_job *job;
	struct hx_watch watch;
	struct hx_timer deadline;
	struct hx_task report;
	struct hx_address addresses[HX_RESOLVED_MAX];
	size_t address_count;
	size_t address_next;
	int64_t deadline_ns;
	int fd; /* connected, waits to be reported */
	bool is_busy;
	struct hapax_error err;
};

/* resolver may be NULL if only unix sockets and hosts in digits are dialed. */
enum hapax_status hx_dial_init(
	struct hx_dial *dial, struct hx_reactor *reactor, struct hx_resolver *resolver,
	hx_dialed_fn *fn, void *context);

/* Allowed while busy: fn will not run. Does nothing for zeros. */
void hx_dial_done(struct hx_dial *dial);

/* Cancel the attempt in progress, if any: fn will not run. It may begin again. */
void hx_dial_cancel(struct hx_dial *dial);

/* Begin; it must not be busy. At deadline_ns it fails with UNAVAILABLE. */
void hx_dial_begin(struct hx_dial *dial, const struct hx_endpoint *endpoint, int64_t deadline_ns);

#endif
