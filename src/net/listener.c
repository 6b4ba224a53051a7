/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.c - accepts connections on one reactor.
 */
#include "net/listener.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"

enum {
	BACKLOG = 1024,

	/* Connections accepted per turn, so that open connections are served as well. */
	ACCEPTS_PER_TURN = 64,

	/* Out of descriptors: a connection must close first. */
	RETRY_MS = 50,
};

static bool is_full(const struct hx_listener *listener)
{
	return listener->open_max != 0 && listener->open_count >= listener->open_max;
}

static void update_watch(struct hx_listener *listener)
{
	bool waits = is_full(listener) || hx_timer_is_set(&listener->retry) || listener->is_shut;

	hx_reactor_rewatch(listener->reactor, &listener->watch, waits ? 0 : HX_READY_IN);
}

static void on_retry(struct hx_timer *timer)
{
	update_watch(timer->context);
}

/* Accept one connection. Returns 0, or the error of accept. The function may close the listener. */
static int accept_one(struct hx_listener *listener)
{
	const struct hx_net *net = listener->reactor->net;
	struct hx_address peer;
	int fd = net->ops->accept(net->context, listener->watch.fd, &peer);

	if (fd < 0)
		return fd;
	if (peer.storage.ss_family != AF_UNIX)
		(void)net->ops->set_option(net->context, fd, HX_NET_NODELAY, 1);
	listener->accepted++;
	listener->open_count++;
	listener->fn(listener, fd, &peer);
	return 0;
}

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	struct hx_listener *listener = watch->context;
	int code = 0;

	(void)ready;
	for (int i = 0; i < ACCEPTS_PER_TURN && code == 0 && !is_full(listener); i++) {
		code = accept_one(listener);
		if (listener->watch.fd < 0)
			return;
	}
	if (code != 0 && code != -EAGAIN) {
		listener->refused++;
		hx_timer_set(
			&listener->reactor->timers, &listener->retry,
			hx_reactor_now_ns(listener->reactor) + RETRY_MS * HX_NS_PER_MS);
	}
	update_watch(listener);
}

/*
 * Is it a leftover of a dead process, on which no process listens? A file that is not a socket
 * looks the same; unlink tells them apart.
 */
static bool is_abandoned(const struct hx_net *net, const struct hx_address *address)
{
	int fd = net->ops->socket(net->context, AF_UNIX);
	int code;

	if (fd < 0)
		return false;
	code = net->ops->connect(net->context, fd, address);
	net->ops->close(net->context, fd);
	return code == -ECONNREFUSED;
}

static int bind_to(
	const struct hx_net *net, int fd, const struct hx_address *address, bool shares_port)
{
	bool is_unix = address->storage.ss_family == AF_UNIX;
	int code = 0;

	if (!is_unix)
		code = net->ops->set_option(net->context, fd, HX_NET_REUSE_ADDRESS, 1);
	if (code == 0 && shares_port && !is_unix)
		code = net->ops->set_option(net->context, fd, HX_NET_REUSE_PORT, 1);
	if (code == 0 && address->storage.ss_family == AF_INET6)
		code = net->ops->set_option(net->context, fd, HX_NET_IPV6_ONLY, 1);
	if (code == 0)
		code = net->ops->bind(net->context, fd, address);
	return code;
}

static enum hapax_status listener_refuse(
	struct hapax_error *err, int code, const struct hx_address *address)
{
	char text[HX_ADDRESS_TEXT_SIZE];

	hx_address_format(address, text);
	if (code == -EADDRINUSE)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"could not listen on %s: address already in use; stop the other "
			"process, or choose another address",
			text);
	if (code == -ENOTSOCK)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"could not listen on %s: the file is not a socket; remove it, or choose "
			"another path",
			text);
	return hx_error_set(err, hx_error_status_of(-code), -code, "could not listen on %s", text);
}

enum hapax_status hx_listener_check_free(
	const struct hx_net *net, const struct hx_address *address, struct hapax_error *err)
{
	int fd;
	int code;

	if (address->storage.ss_family == AF_UNIX)
		return HAPAX_OK; /* is never shared */
	fd = net->ops->socket(net->context, address->storage.ss_family);
	if (fd < 0)
		return listener_refuse(err, fd, address);
	code = bind_to(net, fd, address, false);
	net->ops->close(net->context, fd);
	return code == 0 ? HAPAX_OK : listener_refuse(err, code, address);
}

static int open_socket(
	struct hx_listener *listener, const struct hx_address *address, bool shares_port,
	int *ret_fd)
{
	const struct hx_net *net = listener->reactor->net;
	struct hx_address unnamed;
	int fd = net->ops->socket(net->context, address->storage.ss_family);
	int code;

	if (fd < 0)
		return fd;
	code = bind_to(net, fd, address, shares_port);
	if (code == -EADDRINUSE && listener->path[0] != '\0' && is_abandoned(net, address)) {
		code = net->ops->unlink(net->context, listener->path);
		if (code == 0)
			code = net->ops->bind(net->context, fd, address);
	}
	if (code == 0)
		code = net->ops->listen(net->context, fd, BACKLOG);
	if (code == 0)
		code = net->ops->local_address(net->context, fd, &unnamed);
	if (code != 0) {
		net->ops->close(net->context, fd);
		return code;
	}
	listener->address = listener->path[0] == '\0' ? unnamed : *address;
	*ret_fd = fd;
	return 0;
}

/* Connections in its queue count as accepted. */
static int take_over(struct hx_listener *listener, int *ret_fd)
{
	const struct hx_net *net = listener->reactor->net;
	int code =
		net->ops->local_address(net->context, listener->inherited_fd, &listener->address);

	if (code != 0)
		net->ops->close(net->context, listener->inherited_fd);
	*ret_fd = listener->inherited_fd;
	return code;
}

enum hapax_status hx_listener_open(
	struct hx_listener *listener, struct hx_reactor *reactor, const struct hx_address *address,
	bool shares_port, hx_accept_fn *fn, void *context, struct hapax_error *err)
{
	size_t open_max = listener->open_max;
	int inherited_fd = listener->inherited_fd;
	enum hapax_status status;
	int fd = -1;
	int code;

	memset(listener, 0, sizeof(*listener));
	listener->reactor = reactor;
	listener->open_max = open_max;
	listener->inherited_fd = inherited_fd;
	listener->fn = fn;
	listener->context = context;
	listener->watch.fd = -1;
	if (inherited_fd == 0 && address->storage.ss_family == AF_UNIX) {
		char text[HX_ADDRESS_TEXT_SIZE];

		hx_address_format(address, text);
		memcpy(listener->path, text + strlen("unix:"), strlen(text + strlen("unix:")));
	}
	code = inherited_fd != 0 ? take_over(listener, &fd)
				 : open_socket(listener, address, shares_port, &fd);
	if (code != 0) {
		listener->reactor = NULL;
		return listener_refuse(err, code, address);
	}
	listener->watch = (struct hx_watch){.fd = fd, .fn = on_ready, .context = listener};
	status = hx_timer_introduce(&reactor->timers, &listener->retry, on_retry, listener);
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, 0, "not enough memory for a listener");
	else
		status = hx_reactor_watch(reactor, &listener->watch, HX_READY_IN, err);
	if (status != HAPAX_OK) {
		hx_timer_retire(&reactor->timers, &listener->retry);
		reactor->net->ops->close(reactor->net->context, fd);
		listener->reactor = NULL;
	}
	return status;
}

void hx_listener_close(struct hx_listener *listener)
{
	const struct hx_net *net;

	if (listener->reactor == NULL || listener->watch.fd < 0)
		return;
	net = listener->reactor->net;
	hx_reactor_unwatch(listener->reactor, &listener->watch);
	hx_timer_retire(&listener->reactor->timers, &listener->retry);
	if (listener->path[0] != '\0')
		(void)net->ops->unlink(net->context, listener->path);
	net->ops->close(net->context, listener->watch.fd);
	listener->watch.fd = -1;
}

void hx_listener_shut(struct hx_listener *listener)
{
	const struct hx_net *net;

	if (!hx_listener_is_open(listener))
		return;
	net = listener->reactor->net;
	/* Changes to an inherited socket would affect its other owners, which continue. */
	if (listener->inherited_fd != 0) {
		listener->is_shut = true;
		update_watch(listener);
		return;
	}
	/* Closing it would reset waiting connections, so new ones are stopped first. */
	if (listener->path[0] != '\0') {
		(void)net->ops->unlink(net->context, listener->path);
		/* From now on, another process may own the name. */
		listener->path[0] = '\0';
	} else
		(void)net->ops->set_option(net->context, listener->watch.fd, HX_NET_SHUT, 1);
}

void hx_listener_finish(struct hx_listener *listener)
{
	while (listener->inherited_fd == 0 && hx_listener_is_open(listener) &&
	       accept_one(listener) == 0)
		;
	hx_listener_close(listener);
}

void hx_listener_limit(struct hx_listener *listener, size_t open_max)
{
	listener->open_max = open_max;
	if (hx_listener_is_open(listener))
		update_watch(listener);
}

void hx_listener_ended(struct hx_listener *listener)
{
	listener->open_count--;
	if (listener->watch.fd >= 0)
		update_watch(listener);
}
