/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault_net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int64_t fault_now_ns(void *context)
{
	struct fault_net *fault = context;

	return hx_net_system()->ops->now_ns(NULL) + atomic_load(&fault->ahead_ns);
}

static ssize_t tell_lie(struct fault_net *fault, int fd, void *data, size_t size)
{
	char truth[65536];
	size_t given = 0;

	/* Not before it was asked; and the truth is never heard. */
	if (!fault->lie_has_begun) {
		ssize_t count = hx_net_system()->ops->recv(NULL, fd, truth, sizeof(truth));

		if (count <= 0)
			return count;
	}
	fault->lie_has_begun = true;
	/* An endless one fills whatever there is: no callback follows for what was not sent. */
	for (; given < size; given++) {
		((char *)data)[given] = ((const char *)fault->lie.data)[fault->lie_at];
		if (++fault->lie_at < fault->lie.size)
			continue;
		fault->lie_at = 0;
		if (!fault->lie_is_endless) {
			fault_net_be_honest(fault);
			return (ssize_t)given + 1;
		}
	}
	return (ssize_t)given;
}

static ssize_t fault_recv(void *context, int fd, void *data, size_t size)
{
	struct fault_net *fault = context;
	int64_t left = atomic_load(&fault->recv_bytes_left);

	if (fault->recv_errno)
		return -fault->recv_errno;
	if (atomic_load(&fault->lies))
		return tell_lie(fault, fd, data, size);
	if (left == 0) {
		atomic_store(&fault->recv_bytes_left, -1);
		return -ECONNRESET;
	}
	if (fault->refuses_every_second && ++fault->calls % 2)
		return -EAGAIN;
	if (fault->recv_size_max && size > fault->recv_size_max)
		size = fault->recv_size_max;
	if (left > 0 && (int64_t)size > left)
		size = (size_t)left;
	ssize_t count = hx_net_system()->ops->recv(NULL, fd, data, size);
	if (left > 0 && count > 0)
		atomic_store(&fault->recv_bytes_left, left - count);
	return count;
}

static ssize_t fault_send(void *context, int fd, const void *data, size_t size)
{
	struct fault_net *fault = context;
	int64_t left = atomic_load(&fault->send_bytes_left);

	fault->sends++;
	if (fault->send_errno)
		return -fault->send_errno;
	if (left == 0) {
		atomic_store(&fault->send_bytes_left, -1);
		return -ECONNRESET;
	}
	if (fault->refuses_every_second && ++fault->calls % 2)
		return -EAGAIN;
	if (fault->send_size_max && size > fault->send_size_max)
		size = fault->send_size_max;
	if (left > 0 && (int64_t)size > left)
		size = (size_t)left;
	ssize_t count = hx_net_system()->ops->send(NULL, fd, data, size);
	if (left > 0 && count > 0)
		atomic_store(&fault->send_bytes_left, left - count);
	return count;
}

static int fault_accept(void *context, int fd, struct hx_address *ret_peer)
{
	struct fault_net *fault = context;

	if (fault->accept_errno)
		return -fault->accept_errno;
	return hx_net_system()->ops->accept(NULL, fd, ret_peer);
}

void fault_net_init(struct fault_net *fault)
{
	*fault = (struct fault_net){.ops = *hx_net_system()->ops};
	atomic_store(&fault->send_bytes_left, -1);
	atomic_store(&fault->recv_bytes_left, -1);
	fault->ops.now_ns = fault_now_ns;
	fault->ops.recv = fault_recv;
	fault->ops.send = fault_send;
	fault->ops.accept = fault_accept;
	fault->net = (struct hx_net){&fault->ops, fault};
}

void fault_net_advance(struct fault_net *fault, int64_t ms)
{
	atomic_fetch_add(&fault->ahead_ns, ms * 1000000);
}

void fault_net_lie(struct fault_net *fault, struct hapax_bytes lie, bool is_endless)
{
	fault->lie = lie;
	fault->lie_at = 0;
	fault->lie_has_begun = false;
	fault->lie_is_endless = is_endless;
	atomic_store(&fault->lies, true);
}

void fault_net_be_honest(struct fault_net *fault)
{
	atomic_store(&fault->lies, false);
}

void fault_net_pair(int ret_fds[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_fds) != 0) {
		perror("socketpair");
		abort();
	}
}
