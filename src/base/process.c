/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - children, and a lock that they inherit.
 */
#include "base/process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"

pid_t hx_process_id(void)
{
	return getpid();
}

uint64_t hx_process_raise_descriptors(void)
{
	/* The system's own limit is far below, even if it reports none. */
	enum { DESCRIPTORS_MAX = 1 << 30 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return DESCRIPTORS_MAX;
	if (limit.rlim_cur != limit.rlim_max) {
		struct rlimit raised = {limit.rlim_max, limit.rlim_max};

		/* If a sandbox forbids it, the current limit must do. */
		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			limit = raised;
	}
	return limit.rlim_cur < DESCRIPTORS_MAX ? limit.rlim_cur : DESCRIPTORS_MAX;
}

uint64_t hx_process_address_bytes_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static int add_descriptor(posix_spawn_file_actions_t *actions, int fd, int child_fd)
{
	return fd < 0 ? 0 : posix_spawn_file_actions_adddup2(actions, fd, child_fd);
}

static int add_outputs(posix_spawn_file_actions_t *actions, int stdout_fd, int stderr_fd)
{
	int failed;

	/* The copies are made one after the other; a swap would need a third place. */
	assert(stdout_fd != STDERR_FILENO || stderr_fd != STDOUT_FILENO);
	if (stderr_fd == STDOUT_FILENO) {
		failed = add_descriptor(actions, stderr_fd, STDERR_FILENO);
		return failed ? failed : add_descriptor(actions, stdout_fd, STDOUT_FILENO);
	}
	failed = add_descriptor(actions, stdout_fd, STDOUT_FILENO);
	return failed ? failed : add_descriptor(actions, stderr_fd, STDERR_FILENO);
}

static int kept_number(int fd)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= (rlim_t)STDERR_FILENO + 1)
		return fd;
	return limit.rlim_cur > HX_PROCESS_KEPT_FD ? HX_PROCESS_KEPT_FD : (int)limit.rlim_cur - 1;
}

static int add_descriptors(posix_spawn_file_actions_t *actions, const struct hx_process_plan *plan)
{
	int failed = add_outputs(actions, plan->stdout_fd, plan->stderr_fd);

	if (!failed)
		failed = add_descriptor(actions, plan->stdin_fd, STDIN_FILENO);
	/* A copy onto itself tells spawn "do not close this one". */
	if (!failed)
		failed = add_descriptor(actions, plan->kept_fd, kept_number(plan->kept_fd));
	return failed;
}

/* Our threads block signals; a child that inherited that could not be stopped. */
static int set_attributes(posix_spawnattr_t *attributes, const struct hx_process_plan *plan)
{
	unsigned flags = POSIX_SPAWN_SETSIGMASK;
	sigset_t none;
	int failed;

	(void)sigemptyset(&none);
	failed = posix_spawnattr_setsigmask(attributes, &none);
	if (!failed && plan->defaults != NULL) {
		flags |= POSIX_SPAWN_SETSIGDEF;
		failed = posix_spawnattr_setsigdefault(attributes, plan->defaults);
	}
	if (!failed && (plan->flags & HX_PROCESS_GROUP)) {
		flags |= POSIX_SPAWN_SETPGROUP;
		failed = posix_spawnattr_setpgroup(attributes, 0);
	}
	return failed ? failed : posix_spawnattr_setflags(attributes, (short)flags);
}

static int spawn(const struct hx_process_plan *plan, const char *const *env, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int failed;

	failed = posix_spawn_file_actions_init(&actions);
	if (failed)
		return failed;
	failed = posix_spawnattr_init(&attributes);
	if (failed)
		goto out_actions;
	failed = set_attributes(&attributes, plan);
	if (!failed)
		failed = add_descriptors(&actions, plan);
	/* POSIX promises that neither array is written, but its types cannot say so. */
	if (!failed)
		failed = posix_spawnp(
			ret_pid, plan->argv[0], &actions, &attributes,
			(char *const *)(uintptr_t)plan->argv, (char *const *)(uintptr_t)env);
	(void)posix_spawnattr_destroy(&attributes);
out_actions:
	(void)posix_spawn_file_actions_destroy(&actions);
	return failed;
}

/* Is variable, NAME=VALUE, one of those that are replaced? */
static bool is_replaced(const char *variable, const char *const *set)
{
	size_t size = strcspn(variable, "=");

	for (; *set != NULL; set++)
		if (strncmp(variable, *set, size) == 0 && (*set)[size] == '=')
			return true;
	return false;
}

/* Our environment with set in it, to be freed; NULL: out of memory. */
static const char **make_environment(const char *const *set)
{
	size_t count = 0, used = 0;
	const char **env;

	while (environ[count] != NULL)
		count++;
	for (size_t i = 0; set[i] != NULL; i++)
		count++;
	env = hx_alloc_zero(count + 1, sizeof(*env));
	if (env == NULL)
		return NULL;
	for (char **at = environ; *at != NULL; at++)
		if (!is_replaced(*at, set))
			env[used++] = *at;
	for (; *set != NULL; set++)
		env[used++] = *set;
	assert(used <= count);
	return env;
}

enum hapax_status hx_process_start(
	const struct hx_process_plan *plan, pid_t *ret_pid, struct hapax_error *err)
{
	const char *const *env = (const char *const *)(uintptr_t)environ;
	const char **made = NULL;
	enum hapax_status status;
	pid_t pid;
	int failed;

	assert(plan->argv[0] != NULL);
	if (plan->set != NULL) {
		made = make_environment(plan->set);
		env = made;
	}
	failed = env != NULL ? spawn(plan, env, &pid) : ENOMEM;
	hx_free(made);
	if (!failed) {
		*ret_pid = pid;
		return HAPAX_OK;
	}
	status = failed == ENOENT || failed == EACCES || failed == ENOEXEC
		? HAPAX_ERR_INVALID
		: hx_error_status_of(failed);
	return hx_error_set(err, status, failed, "could not start program '%s'", plan->argv[0]);
}

bool hx_process_signal(pid_t pid, int number, unsigned flags)
{
	assert(pid > 1);
	return kill(flags & HX_PROCESS_GROUP ? -pid : pid, number) == 0;
}

static struct hx_process_end end_of(int wait_status)
{
	if (WIFEXITED(wait_status))
		return (struct hx_process_end){.exit_code = WEXITSTATUS(wait_status)};
	return (struct hx_process_end){.exit_code = -1, .signal = WTERMSIG(wait_status)};
}

enum hapax_status hx_process_poll(
	pid_t pid, bool *ret_has_ended, struct hx_process_end *ret_end, struct hapax_error *err)
{
	int wait_status;
	pid_t waited;

	assert(pid > 0);
	do
		waited = waitpid(pid, &wait_status, WNOHANG);
	while (waited < 0 && errno == EINTR);
	if (waited < 0)
		return hx_error_set(
			err, hx_error_status_of(errno), errno, "could not wait for process %d",
			(int)pid);
	*ret_has_ended = waited == pid;
	if (waited == pid)
		*ret_end = end_of(wait_status);
	return HAPAX_OK;
}

int hx_process_stopped(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};
	int failed;

	do
		failed = waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG);
	while (failed && errno == EINTR);
	return !failed && info.si_pid == pid ? info.si_status : 0;
}

bool hx_process_in_foreground(void)
{
	const struct hx_io *io = hx_io_system();
	int file = io->ops->open(io->context, "/dev/tty", HX_IO_READ, 0);
	bool is_foreground = file >= 0 && tcgetpgrp(file) == getpgrp();

	if (file >= 0)
		(void)io->ops->close(io->context, file);
	return is_foreground;
}

/* flock() without waiting; 0, or -1 with errno set. */
static int try_lock(int fd, int kind)
{
	int failed;

	do
		failed = flock(fd, kind | LOCK_NB);
	while (failed && errno == EINTR);
	return failed;
}

bool hx_file_lock(int fd)
{
	return try_lock(fd, LOCK_EX) == 0;
}

bool hx_file_is_locked(int fd)
{
	if (try_lock(fd, LOCK_SH) == 0) {
		(void)flock(fd, LOCK_UN);
		errno = 0;
		return false;
	}
	if (errno != EWOULDBLOCK)
		return false;
	errno = 0;
	return true;
}
