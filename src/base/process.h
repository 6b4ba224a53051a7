/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - the process seam: spawn, wait, and a lock that children inherit.
 *
 * Threads: any. The caller that spawned a child waits for it, once.
 */
#ifndef HX_PROCESS_H
#define HX_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hapax/error.h>

/* How a child ended: by exit with a code, or by a signal. */
struct hx_process_end {
	int exit_code; /* 0 .. 255, or -1 when a signal ended it */
	int signal;    /* 0 after an exit */
};

pid_t hx_process_id(void);

/*
 * Raise this process's limit of open descriptors as far as allowed, and return it. Children inherit
 * it.
 */
uint64_t hx_process_raise_descriptors(void);

/* How many bytes of addresses this process may map (ulimit -v, RLIMIT_AS); UINT64_MAX: no limit. */
uint64_t hx_process_address_bytes_max(void);

enum hx_process_flag {
	HX_PROCESS_GROUP = 1 << 0, /* the child leads its own process group */
};

/*
 * The number that a kept descriptor has in the child, or the highest that is allowed
 * there. Scripts open small numbers by name (exec 9>file), and would close it by that;
 * select(2) must be able to hold it.
 */
enum { HX_PROCESS_KEPT_FD = 1000 };

/* The program to start, and its setup. Begin with HX_PROCESS_PLAN_INIT. */
struct hx_process_plan {
	const char *const *argv; /* ends with NULL; argv[0] is found along PATH */
	const char *const *set;  /* NAME=VALUE, overriding our environment; ends with NULL */
	int stdin_fd;            /* the child's 0, 1 and 2; -1 leaves ours */
	int stdout_fd;
	int stderr_fd;
	int kept_fd;              /* stays open in the child, see HX_PROCESS_KEPT_FD; -1: none */
	unsigned flags;           /* enum hx_process_flag */
	const sigset_t *defaults; /* signals that the child must not ignore; NULL: as we do */
};

#define HX_PROCESS_PLAN_INIT                        \
	{                                           \
		NULL, NULL, -1, -1, -1, -1, 0, NULL \
	}

/*
 * Starts the program with no signal blocked. INVALID: there is no such program, and err->os_errno
 * is ENOENT, or it cannot be run; else see hx_error_status_of(). Nothing was started then.
 */
enum hapax_status hx_process_start(
	const struct hx_process_plan *plan, pid_t *ret_pid, struct hapax_error *err);

/*
 * Send a signal, 0 for none, to pid or, with HX_PROCESS_GROUP in flags, to its group. False: there
 * is no such process, or it is not permitted.
 */
bool hx_process_signal(pid_t pid, int number, unsigned flags);

/*
 * Has pid, our child, ended? Never blocks. *ret_end is set when it has, and then the
 * child was waited for.
 */
enum hapax_status hx_process_poll(
	pid_t pid, bool *ret_has_ended, struct hx_process_end *ret_end, struct hapax_error *err);

/* Has pid, our child, been stopped since the last call? Returns the signal, or 0. */
int hx_process_stopped(pid_t pid);

/*
 * Are we in the foreground of a terminal, whatever our descriptors are? Then a child that
 * is to use it must stay in our process group: another one would be stopped.
 */
bool hx_process_in_foreground(void);

/*
 * flock(2), exclusive, without waiting; true when we hold it now. Unlike the lock of hx_io_ops it
 * is shared with children that inherit the descriptor. False with errno EWOULDBLOCK: another
 * process holds it.
 */
bool hx_file_lock(int fd);

/*
 * Is that lock held? Concurrent callers do not disturb one another. On failure false with errno
 * set, else errno is 0.
 */
bool hx_file_is_locked(int fd);

#endif
