/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "support/temp_dir.h"

static enum hapax_status spawn_program(
	const char *const argv[], int stdout_fd, int stderr_fd, pid_t *ret_pid,
	struct hapax_error *err)
{
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;

	plan.argv = argv;
	plan.stdout_fd = stdout_fd;
	plan.stderr_fd = stderr_fd;
	return hx_process_start(&plan, ret_pid, err);
}

/* Blocks until pid has ended; hx_process_poll() then has the answer at once. */
static enum hapax_status wait_for_end(
	pid_t pid, struct hx_process_end *ret_end, struct hapax_error *err)
{
	enum hapax_status status;
	bool has_ended = false;
	siginfo_t info;

	(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	status = hx_process_poll(pid, &has_ended, ret_end, err);
	assert_true(status != HAPAX_OK || has_ended);
	return status;
}

static struct hx_process_end run(const char *const argv[], int stdout_fd, int stderr_fd)
{
	struct hx_process_end end;
	struct hapax_error err;
	pid_t pid;

	assert_int_equal(spawn_program(argv, stdout_fd, stderr_fd, &pid, &err), HAPAX_OK);
	assert_true(pid > 0);
	assert_int_equal(wait_for_end(pid, &end, &err), HAPAX_OK);
	return end;
}

static struct hx_process_end run_shell(const char *script, int stdout_fd, int stderr_fd)
{
	const char *const argv[] = {"sh", "-c", script, NULL};

	return run(argv, stdout_fd, stderr_fd);
}

static void knows_itself(void **state)
{
	(void)state;
	assert_int_equal(hx_process_id(), getpid());
}

static void takes_the_descriptors_that_it_may_have(void **state)
{
	struct rlimit before;
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){before.rlim_max / 2, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(
		hx_process_raise_descriptors() ==
		(before.rlim_max < 1 << 30 ? before.rlim_max : 1 << 30));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(limit.rlim_cur == before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void tells_how_a_child_ended(void **state)
{
	struct hx_process_end end;

	(void)state;
	end = run_shell("exit 0", -1, -1);
	assert_int_equal(end.exit_code, 0);
	assert_int_equal(end.signal, 0);
	end = run_shell("exit 255", -1, -1);
	assert_int_equal(end.exit_code, 255);
	assert_int_equal(end.signal, 0);
	end = run_shell("kill -TERM $$", -1, -1);
	assert_int_equal(end.exit_code, -1);
	assert_int_equal(end.signal, SIGTERM);
}

/* What comes out of the pipe until it closes, as a string. */
static void read_pipe(int fd, char *text, size_t size)
{
	size_t done = 0;
	ssize_t part;

	while (done < size - 1 && (part = read(fd, text + done, size - 1 - done)) > 0)
		done += (size_t)part;
	text[done] = '\0';
}

static void output_goes_where_it_is_sent(void **state)
{
	int out[2], other[2];
	char text[100];

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(other, O_CLOEXEC), 0);
	assert_int_equal(run_shell("echo out; echo err >&2", out[1], other[1]).exit_code, 0);
	(void)close(out[1]);
	(void)close(other[1]);
	read_pipe(out[0], text, sizeof(text));
	assert_string_equal(text, "out\n");
	read_pipe(other[0], text, sizeof(text));
	assert_string_equal(text, "err\n");
	(void)close(out[0]);
	(void)close(other[0]);
}

static void both_outputs_into_one(void **state)
{
	int out[2];
	char text[100];

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(run_shell("echo out; echo err >&2", out[1], out[1]).exit_code, 0);
	(void)close(out[1]);
	read_pipe(out[0], text, sizeof(text));
	assert_string_equal(text, "out\nerr\n");
	(void)close(out[0]);
}

/* The child's standard error to our standard output, while its output goes elsewhere. */
static void outputs_may_cross(void **state)
{
	int out[2], ours[2], saved = dup(STDOUT_FILENO);
	struct hx_process_end end;
	char text[100];

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ours, O_CLOEXEC), 0);
	(void)fflush(stdout);
	assert_int_equal(dup2(ours[1], STDOUT_FILENO), STDOUT_FILENO);
	end = run_shell("echo out; echo err >&2", out[1], STDOUT_FILENO);
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(end.exit_code, 0);
	(void)close(saved);
	(void)close(out[1]);
	(void)close(ours[1]);
	read_pipe(out[0], text, sizeof(text));
	assert_string_equal(text, "out\n");
	read_pipe(ours[0], text, sizeof(text));
	assert_string_equal(text, "err\n");
	(void)close(out[0]);
	(void)close(ours[0]);
}

static void arguments_arrive_as_they_are(void **state)
{
	const char *const argv[] = {"printf", "%s|", "a b", "", "$HOME", NULL};
	int out[2];
	char text[100];

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(run(argv, out[1], -1).exit_code, 0);
	(void)close(out[1]);
	read_pipe(out[0], text, sizeof(text));
	assert_string_equal(text, "a b||$HOME|");
	(void)close(out[0]);
}

static void no_program_no_child(void **state)
{
	const char *const missing[] = {"hapax-no-such-program", NULL};
	const char *const directory[] = {"/tmp", NULL};
	struct hapax_error err;
	pid_t pid = 77;

	(void)state;
	assert_int_equal(spawn_program(missing, -1, -1, &pid, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, ENOENT);
	assert_non_null(strstr(err.message, "hapax-no-such-program"));
	assert_int_equal(spawn_program(directory, -1, -1, &pid, &err), HAPAX_ERR_INVALID);
	assert_int_equal(spawn_program(missing, -1, -1, &pid, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(pid, 77);
}

static void a_bad_descriptor_starts_nothing(void **state)
{
	const char *const argv[] = {"true", NULL};
	struct hapax_error err;
	pid_t pid = 77;

	(void)state;
	assert_int_equal(spawn_program(argv, 987, -1, &pid, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, EBADF);
	assert_int_equal(pid, 77);
}

static void others_are_not_waited_for(void **state)
{
	struct hx_process_end end = {.exit_code = 77};
	struct hapax_error err;
	const char *const argv[] = {"true", NULL};
	pid_t pid;

	(void)state;
	assert_int_equal(wait_for_end(getpid(), &end, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, ECHILD);
	assert_int_equal(spawn_program(argv, -1, -1, &pid, NULL), HAPAX_OK);
	assert_int_equal(wait_for_end(pid, &end, NULL), HAPAX_OK);
	end.exit_code = 77;
	assert_int_equal(wait_for_end(pid, &end, &err), HAPAX_ERR_INVALID);
	assert_int_equal(end.exit_code, 77);
}

static void terminate_itself(void *arg)
{
	struct hx_process_end *end = arg;
	const char *const argv[] = {"sh", "-c", "kill -TERM $$; exit 9", NULL};
	pid_t pid;

	if (spawn_program(argv, -1, -1, &pid, NULL) == HAPAX_OK)
		(void)wait_for_end(pid, end, NULL);
}

/* Our threads block signals; a child that inherited that would outlive its TERM. */
static void children_of_threads_can_be_stopped(void **state)
{
	struct hx_process_end end = {.exit_code = 77};
	struct hx_thread thread;

	(void)state;
	assert_int_equal(
		hx_thread_start(&thread, terminate_itself, &end, "spawner", NULL), HAPAX_OK);
	hx_thread_join(&thread);
	assert_int_equal(end.exit_code, -1);
	assert_int_equal(end.signal, SIGTERM);
}

static void a_file_lock_is_exclusive(void **state)
{
	struct temp_dir dir;
	char path[256];
	int first, second;

	(void)state;
	temp_dir_init(&dir);
	(void)snprintf(path, sizeof(path), "%s/lock", dir.path);
	first = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	second = open(path, O_RDWR | O_CLOEXEC);
	assert_true(first >= 0 && second >= 0);
	assert_true(hx_file_lock(first));
	assert_true(hx_file_lock(first));
	errno = 0;
	assert_false(hx_file_lock(second));
	assert_int_equal(errno, EWOULDBLOCK);
	(void)close(first);
	assert_true(hx_file_lock(second));
	(void)close(second);
	assert_false(hx_file_lock(second));
	assert_int_equal(errno, EBADF);
	temp_dir_done(&dir);
}

/* Start a shell by plan, and read what it says. */
static struct hx_process_end start_shell(
	struct hx_process_plan plan, const char *script, char *text, size_t size)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct hx_process_end end;
	struct hapax_error err;
	int out[2];
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	plan.argv = argv;
	plan.stdout_fd = out[1];
	assert_int_equal(hx_process_start(&plan, &pid, &err), HAPAX_OK);
	(void)close(out[1]);
	read_pipe(out[0], text, size);
	(void)close(out[0]);
	assert_int_equal(wait_for_end(pid, &end, &err), HAPAX_OK);
	return end;
}

static void variables_are_set_over_ours(void **state)
{
	static const char *const set[] = {"HAPAX_TEST_A=new", "HAPAX_TEST_B=b", NULL};
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	char text[100];

	(void)state;
	assert_int_equal(setenv("HAPAX_TEST_A", "old", 1), 0);
	assert_int_equal(setenv("HAPAX_TEST_AB", "other", 1), 0);
	plan.set = set;
	(void)start_shell(
		plan, "echo $HAPAX_TEST_A $HAPAX_TEST_B $HAPAX_TEST_AB", text, sizeof(text));
	assert_string_equal(text, "new b other\n");
	(void)unsetenv("HAPAX_TEST_A");
	(void)unsetenv("HAPAX_TEST_AB");
}

static void input_comes_from_where_it_is_said(void **state)
{
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	char text[100];
	int in[2];

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "hello\n", 6), 6);
	(void)close(in[1]);
	plan.stdin_fd = in[0];
	(void)start_shell(plan, "cat", text, sizeof(text));
	assert_string_equal(text, "hello\n");
	(void)close(in[0]);
}

static void ignored_signals_can_be_given_back(void **state)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	sigset_t defaults;
	char text[100];

	(void)state;
	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	assert_int_equal(start_shell(plan, "kill -PIPE $$", text, sizeof(text)).signal, 0);
	(void)sigemptyset(&defaults);
	(void)sigaddset(&defaults, SIGPIPE);
	plan.defaults = &defaults;
	assert_int_equal(start_shell(plan, "kill -PIPE $$", text, sizeof(text)).signal, SIGPIPE);
	(void)sigaction(SIGPIPE, &before, NULL);
}

/* The lock lives as long as a process that inherited it. */
static void a_kept_descriptor_keeps_its_lock(void **state)
{
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	const char *const argv[] = {"sh", "-c", "read line", NULL};
	struct hx_process_end end;
	struct temp_dir dir;
	char path[256];
	int lock, probe, in[2];
	pid_t pid;

	(void)state;
	temp_dir_init(&dir);
	(void)snprintf(path, sizeof(path), "%s/lock", dir.path);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	probe = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(lock >= 0 && probe >= 0);
	assert_false(hx_file_is_locked(probe));
	assert_int_equal(errno, 0);
	assert_true(hx_file_lock(lock));
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	plan.argv = argv;
	plan.stdin_fd = in[0];
	plan.kept_fd = lock;
	assert_int_equal(hx_process_start(&plan, &pid, NULL), HAPAX_OK);
	(void)close(lock);
	assert_true(hx_file_is_locked(probe));
	(void)close(in[1]);
	(void)close(in[0]);
	assert_int_equal(wait_for_end(pid, &end, NULL), HAPAX_OK);
	assert_false(hx_file_is_locked(probe));
	assert_int_equal(errno, 0);
	(void)close(probe);
	assert_false(hx_file_is_locked(probe));
	assert_int_equal(errno, EBADF);
	temp_dir_done(&dir);
}

/* Told once, and the end is still told after it. */
static void a_child_that_was_stopped(void **state)
{
	const char *const argv[] = {"sh", "-c", "kill -STOP $$; exit 3", NULL};
	struct hx_process_end end = {.exit_code = 77};
	bool has_ended = true;
	pid_t pid;
	int number;

	(void)state;
	assert_int_equal(hx_process_stopped(1), 0);
	assert_int_equal(spawn_program(argv, -1, -1, &pid, NULL), HAPAX_OK);
	do
		number = hx_process_stopped(pid);
	while (number == 0);
	assert_int_equal(number, SIGSTOP);
	assert_int_equal(hx_process_stopped(pid), 0);
	assert_int_equal(hx_process_poll(pid, &has_ended, &end, NULL), HAPAX_OK);
	assert_false(has_ended);
	assert_true(hx_process_signal(pid, SIGCONT, 0));
	assert_int_equal(wait_for_end(pid, &end, NULL), HAPAX_OK);
	assert_int_equal(end.exit_code, 3);
	assert_int_equal(hx_process_stopped(pid), 0);
}

static void a_group_is_signalled_as_a_whole(void **state)
{
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	const char *const argv[] = {"sh", "-c", "sh -c 'echo; exec sleep 100' & wait", NULL};
	struct hx_process_end end = {.exit_code = 77};
	bool has_ended = true;
	char text[16];
	int in[2], out[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	plan.argv = argv;
	plan.stdin_fd = in[0];
	plan.stdout_fd = out[1];
	plan.flags = HX_PROCESS_GROUP;
	assert_int_equal(hx_process_start(&plan, &pid, NULL), HAPAX_OK);
	(void)close(out[1]);
	assert_int_equal(read(out[0], text, 1), 1);
	assert_int_equal(hx_process_poll(pid, &has_ended, &end, NULL), HAPAX_OK);
	assert_false(has_ended);
	assert_int_equal(end.exit_code, 77);
	assert_true(hx_process_signal(pid, 0, HX_PROCESS_GROUP));
	assert_true(hx_process_signal(pid, SIGKILL, HX_PROCESS_GROUP));
	/* Both have ended when no process holds the pipe any more. */
	assert_int_equal(read(out[0], text, 1), 0);
	while (!has_ended)
		assert_int_equal(hx_process_poll(pid, &has_ended, &end, NULL), HAPAX_OK);
	assert_int_equal(end.signal, SIGKILL);
	assert_false(hx_process_signal(pid, 0, 0));
	assert_int_equal(hx_process_poll(pid, &has_ended, &end, NULL), HAPAX_ERR_INVALID);
	(void)close(out[0]);
	(void)close(in[0]);
	(void)close(in[1]);
}

static void no_memory_no_child(void **state)
{
	static const char *const set[] = {"HAPAX_TEST_A=new", NULL};
	const char *const argv[] = {"true", NULL};
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	pid_t pid = 77;

	(void)state;
	plan.argv = argv;
	plan.set = set;
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_process_start(&plan, &pid, NULL), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(pid, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_itself),
		cmocka_unit_test(takes_the_descriptors_that_it_may_have),
		cmocka_unit_test(tells_how_a_child_ended),
		cmocka_unit_test(output_goes_where_it_is_sent),
		cmocka_unit_test(both_outputs_into_one),
		cmocka_unit_test(outputs_may_cross),
		cmocka_unit_test(arguments_arrive_as_they_are),
		cmocka_unit_test(no_program_no_child),
		cmocka_unit_test(a_bad_descriptor_starts_nothing),
		cmocka_unit_test(others_are_not_waited_for),
		cmocka_unit_test(children_of_threads_can_be_stopped),
		cmocka_unit_test(a_file_lock_is_exclusive),
		cmocka_unit_test(variables_are_set_over_ours),
		cmocka_unit_test(input_comes_from_where_it_is_said),
		cmocka_unit_test(ignored_signals_can_be_given_back),
		cmocka_unit_test(a_kept_descriptor_keeps_its_lock),
		cmocka_unit_test(a_child_that_was_stopped),
		cmocka_unit_test(a_group_is_signalled_as_a_whole),
		cmocka_unit_test(no_memory_no_child),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
