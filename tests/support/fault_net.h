/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_net.h - the operating system's network, with the faults that a test asks for.
 *
 * Sends and receives can be cut into pieces, refused for a while, or made to fail;
 * time can be moved ahead. Everything else is the kernel's.
 */
#ifndef TEST_SUPPORT_FAULT_NET_H
#define TEST_SUPPORT_FAULT_NET_H

#include <stdatomic.h>
#include <stdbool.h>

#include "net/system.h"

struct fault_net {
	struct hx_net net; /* give this to a reactor */
	struct hx_net_ops ops;
	_Atomic int64_t ahead_ns; /* added to the time */
	size_t send_size_max;     /* 0: no limit; bytes in one call */
	size_t recv_size_max;
	bool refuses_every_second; /* -EAGAIN between two calls */
	unsigned calls;
	/*
	 * So many bytes go through, then one call fails with -ECONNRESET and all is well
	 * again; negative: never.
	 */
	_Atomic int64_t send_bytes_left;
	_Atomic int64_t recv_bytes_left;
	/* What is received instead of what the other side says; see fault_net_lie(). */
	_Atomic bool lies;
	struct hapax_bytes lie;
	size_t lie_at;
	bool lie_has_begun;
	bool lie_is_endless;
	int send_errno; /* 0, or what every send fails with */
	int recv_errno;
	int accept_errno;
	unsigned sends;
};

void fault_net_init(struct fault_net *fault);

/* Time passes. */
void fault_net_advance(struct fault_net *fault, int64_t ms);

/*
 * What comes next from the other side is exchanged for this, once or again and again until
 * fault_net_be_honest().
 */
void fault_net_lie(struct fault_net *fault, struct hapax_bytes lie, bool is_endless);
void fault_net_be_honest(struct fault_net *fault);

/* Two connected sockets. */
void fault_net_pair(int ret_fds[2]);

#endif
