/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - the process seam: spawn, wait, and a lock that children inherit.
 *
 * Threads: any. Each child is waited for once, by whoever spawned it.
 */
#ifndef HX_PROCESS_H
#define HX_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <hapax/error.h>

/* How a child ended: by exit with a code, or by a signal. */
struct hx_process_end {
	int exit_code; /* 0 .. 255, or -1 when a signal ended it */
	int signal;    /* 0 after an exit */
};

pid_t hx_process_id(void);

/*
 * Run argv[0], found along PATH, with our environment and no signal blocked. argv
 * ends with NULL. stdout_fd and stderr_fd become the child's 1 and 2; -1 leaves
 * ours. INVALID when there is no such program, else by hx_status_from_errno();
 * nothing was started then.
 */
enum hapax_status hx_process_spawn(
	const char *const argv[], int stdout_fd, int stderr_fd, pid_t *ret_pid,
	struct hapax_error *err);

/* Blocks until pid, our child, has ended. */
enum hapax_status hx_process_wait(
	pid_t pid, struct hx_process_end *ret_end, struct hapax_error *err);

/*
 * flock(2), exclusive, without waiting; true when we hold it now. Unlike the lock
 * of hx_io_ops it is shared with children that inherit the descriptor. False with
 * errno EWOULDBLOCK: somebody else holds it.
 */
bool hx_file_lock(int fd);

#endif
