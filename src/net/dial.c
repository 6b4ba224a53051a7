/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.c - connect to an endpoint.
 *
 * Addresses are tried one after the other. Each gets its share of the remaining time, the last one
 * all of it, so that an address that drops packets does not use up everything.
 */
#include "net/dial.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

static void try_next(struct hx_dial *dial);

static void finish(struct hx_dial *dial)
{
	hx_timer_clear(&dial->reactor->timers, &dial->deadline);
	hx_reactor_defer(dial->reactor, &dial->report);
}

static void on_report(struct hx_task *task)
{
	struct hx_dial *dial = task->context;
	int fd = dial->fd;
	struct hapax_error err = dial->err;

	dial->fd = -1;
	dial->is_busy = false;
	dial->fn(dial, fd, &err);
}

static void drop_socket(struct hx_dial *dial)
{
	const struct hx_net *net = dial->reactor->net;

	if (dial->watch.fd < 0)
		return;
	hx_reactor_unwatch(dial->reactor, &dial->watch);
	net->ops->close(net->context, dial->watch.fd);
	dial->watch.fd = -1;
}

static void note_failure(struct hx_dial *dial, int code)
{
	char text[HX_ADDRESS_TEXT_SIZE];

	hx_address_format(&dial->addresses[dial->address_next - 1], text);
	(void)hx_error_set(
		&dial->err, HAPAX_ERR_UNAVAILABLE, -code, "could not connect to %s", text);
}

static void succeed(struct hx_dial *dial)
{
	const struct hx_net *net = dial->reactor->net;

	dial->fd = dial->watch.fd;
	hx_reactor_unwatch(dial->reactor, &dial->watch);
	dial->watch.fd = -1;
	if (!dial->endpoint.is_unix)
		(void)net->ops->set_option(net->context, dial->fd, HX_NET_NODELAY, 1);
	finish(dial);
}

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	struct hx_dial *dial = watch->context;
	const struct hx_net *net = dial->reactor->net;
	int code = net->ops->connect_result(net->context, watch->fd);

	(void)ready;
	if (code == 0) {
		succeed(dial);
		return;
	}
	drop_socket(dial);
	note_failure(dial, code);
	try_next(dial);
}

static void on_deadline(struct hx_timer *timer)
{
	struct hx_dial *dial = timer->context;

	if (dial->job != NULL) {
		hx_resolver_forget(dial->resolver, dial->job);
		dial->job = NULL;
		(void)hx_error_set(
			&dial->err, HAPAX_ERR_UNAVAILABLE, 0,
			"could not resolve the host '%s' in time", dial->endpoint.host);
		finish(dial);
		return;
	}
	drop_socket(dial);
	note_failure(dial, -ETIMEDOUT);
	try_next(dial);
}

/* Begin with the address at address_next. A negative errno: it cannot be used. */
static int begin_one(struct hx_dial *dial, const struct hx_address *address)
{
	const struct hx_net *net = dial->reactor->net;
	int64_t now_ns = hx_reactor_now_ns(dial->reactor);
	int64_t left_ns = dial->deadline_ns - now_ns;
	int64_t rest = (int64_t)(dial->address_count - dial->address_next + 1);
	int fd = net->ops->socket(net->context, address->storage.ss_family);
	int code;

	if (fd < 0)
		return fd;
	code = net->ops->connect(net->context, fd, address);
	if (code != 0 && code != -EINPROGRESS) {
		net->ops->close(net->context, fd);
		/* A unix socket with a full queue fails at once. */
		return code == -EAGAIN ? -ECONNREFUSED : code;
	}
	dial->watch = (struct hx_watch){.fd = fd, .fn = on_ready, .context = dial};
	if (hx_reactor_watch(dial->reactor, &dial->watch, HX_READY_OUT, NULL) != HAPAX_OK) {
		net->ops->close(net->context, fd);
		dial->watch.fd = -1;
		return -ENOMEM;
	}
	if (code == 0) {
		succeed(dial);
		return 0;
	}
	if (left_ns < 0)
		left_ns = 0;
	hx_timer_set(&dial->reactor->timers, &dial->deadline, now_ns + left_ns / rest);
	return 0;
}

static void try_next(struct hx_dial *dial)
{
	while (dial->address_next < dial->address_count) {
		int code = begin_one(dial, &dial->addresses[dial->address_next++]);

		if (code == 0)
			return;
		note_failure(dial, code);
	}
	finish(dial);
}

static void on_resolved(
	void *context, const struct hx_address *addresses, size_t count,
	const struct hapax_error *err)
{
	struct hx_dial *dial = context;

	dial->job = NULL;
	if (count == 0) {
		dial->err = *err;
		finish(dial);
		return;
	}
	memcpy(dial->addresses, addresses, count * sizeof(*addresses));
	dial->address_count = count;
	try_next(dial);
}

enum hapax_status hx_dial_init(
	struct hx_dial *dial, struct hx_reactor *reactor, struct hx_resolver *resolver,
	hx_dialed_fn *fn, void *context)
{
	memset(dial, 0, sizeof(*dial));
	dial->resolver = resolver;
	dial->fn = fn;
	dial->context = context;
	dial->watch.fd = -1;
	dial->fd = -1;
	dial->report = (struct hx_task){.fn = on_report, .context = dial};
	if (hx_timer_introduce(&reactor->timers, &dial->deadline, on_deadline, dial) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	dial->reactor = reactor;
	return HAPAX_OK;
}

void hx_dial_cancel(struct hx_dial *dial)
{
	const struct hx_net *net = dial->reactor->net;

	if (dial->job != NULL)
		hx_resolver_forget(dial->resolver, dial->job);
	dial->job = NULL;
	drop_socket(dial);
	if (dial->fd >= 0)
		net->ops->close(net->context, dial->fd);
	dial->fd = -1;
	hx_reactor_cancel(dial->reactor, &dial->report);
	hx_timer_clear(&dial->reactor->timers, &dial->deadline);
	dial->is_busy = false;
}

void hx_dial_done(struct hx_dial *dial)
{
	if (dial->reactor == NULL)
		return;
	hx_dial_cancel(dial);
	hx_timer_retire(&dial->reactor->timers, &dial->deadline);
	memset(dial, 0, sizeof(*dial));
}

void hx_dial_begin(struct hx_dial *dial, const struct hx_endpoint *endpoint, int64_t deadline_ns)
{
	enum hapax_status status;

	assert(!dial->is_busy);
	dial->is_busy = true;
	dial->endpoint = *endpoint;
	dial->deadline_ns = deadline_ns;
	dial->address_next = 0;
	dial->address_count = 0;
	memset(&dial->err, 0, sizeof(dial->err));
	if (hx_endpoint_address(endpoint, &dial->addresses[0])) {
		dial->address_count = 1;
		try_next(dial);
		return;
	}
	if (dial->resolver == NULL) {
		(void)hx_error_set(
			&dial->err, HAPAX_ERR_UNSUPPORTED, 0,
			"cannot resolve the host '%s' here; use an IP address", endpoint->host);
		finish(dial);
		return;
	}
	hx_timer_set(&dial->reactor->timers, &dial->deadline, deadline_ns);
	status = hx_resolver_ask(
		dial->resolver, dial->reactor, endpoint->host, endpoint->port, on_resolved, dial,
		&dial->job, &dial->err);
	if (status != HAPAX_OK)
		finish(dial);
}
