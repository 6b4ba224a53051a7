/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.h - resolve host names on a thread that may block.
 *
 * getaddrinfo() blocks without a limit; a loop must not. One worker answers queries in order; each
 * answer is a task on the reactor that asked.
 *
 * Threads: hx_resolver_ask() and hx_resolver_forget() on the reactor's thread; a
 * resolver serves several reactors.
 */
#ifndef HX_NET_RESOLVER_H
#define HX_NET_RESOLVER_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/thread.h"
#include "base/worker.h"
#include "net/address.h"
#include "net/reactor.h"

enum { HX_RESOLVED_MAX = 8, HX_RESOLVER_QUEUE_MAX = 1024 };

struct hx_resolver_job;

/* addresses are borrowed for the call. If count is 0, err says why. */
typedef void hx_resolved_fn(
	void *context, const struct hx_address *addresses, size_t count,
	const struct hapax_error *err);

struct hx_resolver {
	const struct hx_net *net;
	struct hx_worker worker;
	struct hx_lock lock;
	struct hx_resolver_job *answered; /* Locks: lock. Posted to their reactors */
};

void hx_resolver_init(struct hx_resolver *resolver, const struct hx_net *net);

/*
 * Waits for the query in progress, and frees queries that were dropped. Their reactors still exist,
 * and none of them runs.
 */
void hx_resolver_done(struct hx_resolver *resolver);

/*
 * Ask; fn runs later, on reactor's thread. *ret_job is valid until then. LIMIT: too many queries
 * wait. NO_MEMORY: nothing was asked.
 */
enum hapax_status hx_resolver_ask(
	struct hx_resolver *resolver, struct hx_reactor *reactor, const char *host, uint16_t port,
	hx_resolved_fn *fn, void *context, struct hx_resolver_job **ret_job,
	struct hapax_error *err);

/* Drop a query: fn will not run. */
void hx_resolver_forget(struct hx_resolver *resolver, struct hx_resolver_job *job);

#endif
