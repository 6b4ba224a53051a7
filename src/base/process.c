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
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

pid_t hx_process_id(void)
{
	return getpid();
}

static int add_descriptor(posix_spawn_file_actions_t *actions, int fd, int child_fd)
{
	return fd < 0 ? 0 : posix_spawn_file_actions_adddup2(actions, fd, child_fd);
}

static int add_descriptors(posix_spawn_file_actions_t *actions, int stdout_fd, int stderr_fd)
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

/* Our threads block signals; a child that inherited that could not be stopped. */
static int unblock_signals(posix_spawnattr_t *attributes)
{
	sigset_t none;
	int failed;

	(void)sigemptyset(&none);
	failed = posix_spawnattr_setsigmask(attributes, &none);
	return failed ? failed : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
}

static int spawn(const char *const argv[], int stdout_fd, int stderr_fd, pid_t *ret_pid)
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
	failed = unblock_signals(&attributes);
	if (!failed)
		failed = add_descriptors(&actions, stdout_fd, stderr_fd);
	/* POSIX promises that argv is not written, but its type cannot say so. */
	if (!failed)
		failed = posix_spawnp(
			ret_pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv,
			environ);
	(void)posix_spawnattr_destroy(&attributes);
out_actions:
	(void)posix_spawn_file_actions_destroy(&actions);
	return failed;
}

enum hapax_status hx_process_spawn(
	const char *const argv[], int stdout_fd, int stderr_fd, pid_t *ret_pid,
	struct hapax_error *err)
{
	enum hapax_status status;
	pid_t pid;
	int failed;

	assert(argv[0] != NULL);
	failed = spawn(argv, stdout_fd, stderr_fd, &pid);
	if (!failed) {
		*ret_pid = pid;
		return HAPAX_OK;
	}
	status = failed == ENOENT || failed == EACCES || failed == ENOEXEC
		? HAPAX_ERR_INVALID
		: hx_status_from_errno(failed);
	return hx_error_set(err, status, failed, "program \"%s\" did not start", argv[0]);
}

enum hapax_status hx_process_wait(
	pid_t pid, struct hx_process_end *ret_end, struct hapax_error *err)
{
	int wait_status;
	pid_t waited;

	assert(pid > 0);
	do
		waited = waitpid(pid, &wait_status, 0);
	while (waited < 0 && errno == EINTR);
	if (waited < 0)
		return hx_error_set(
			err, hx_status_from_errno(errno), errno, "process %d was not waited for",
			(int)pid);
	if (WIFEXITED(wait_status))
		*ret_end = (struct hx_process_end){.exit_code = WEXITSTATUS(wait_status)};
	else
		*ret_end =
			(struct hx_process_end){.exit_code = -1, .signal = WTERMSIG(wait_status)};
	return HAPAX_OK;
}

bool hx_file_lock(int fd)
{
	int failed;

	do
		failed = flock(fd, LOCK_EX | LOCK_NB);
	while (failed && errno == EINTR);
	return !failed;
}
