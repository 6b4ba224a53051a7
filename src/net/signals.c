/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - signals as events of a reactor.
 */
#include "net/signals.h"

#include <string.h>

#include "base/error.h"

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	struct hx_signals *signals = watch->context;
	const struct hx_net *net = signals->reactor->net;
	int number;

	(void)ready;
	while (watch->fd >= 0 && (number = net->ops->signals_read(net->context, watch->fd)) > 0)
		signals->fn(signals, number);
}

enum hapax_status hx_signals_open(
	struct hx_signals *signals, struct hx_reactor *reactor, const int *wanted,
	hx_signals_fn *fn, void *context, struct hapax_error *err)
{
	enum hapax_status status;
	int fd = reactor->net->ops->signals_open(reactor->net->context, wanted);

	memset(signals, 0, sizeof(*signals));
	if (fd < 0)
		return hx_error_set(err, hx_error_status_of(-fd), -fd, "could not handle signals");
	signals->fn = fn;
	signals->context = context;
	signals->watch = (struct hx_watch){.fd = fd, .fn = on_ready, .context = signals};
	status = hx_reactor_watch(reactor, &signals->watch, HX_READY_IN, err);
	if (status == HAPAX_OK)
		signals->reactor = reactor;
	else
		reactor->net->ops->close(reactor->net->context, fd);
	return status;
}

void hx_signals_close(struct hx_signals *signals)
{
	if (signals->reactor == NULL || signals->watch.fd < 0)
		return;
	hx_reactor_unwatch(signals->reactor, &signals->watch);
	signals->reactor->net->ops->close(signals->reactor->net->context, signals->watch.fd);
	signals->watch.fd = -1;
}
