/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_child.c - the command while it runs.
 *
 * One loop waits for: signals (one of them says that the command has ended), the
 * store's answer to a renewal, output of the command when we hold none, room in our
 * own output when we hold some; and for the earliest of: renewal, timeout, KILL after
 * TERM, and after the end the time for which late output is waited for.
 */
#include "cli/run_child.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/stream.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/run_signal.h"

static const int64_t ns_per_ms = 1000000;

enum {
	/*
	 * A descendant that outlives the command and keeps its output open, as a daemon
	 * may, is not waited for longer than this.
	 */
	DRAIN_MS = 1000,
	/* What may still lie in a pipe then; more comes from somebody who goes on writing. */
	LATE_BYTES_MAX = 1024 * 1024,
	/* How often a stopped group is looked at until it is empty. */
	GROUP_MS = 20,
	VARIABLE_SIZE = HX_KEY_SIZE_MAX + 32,
};

static int64_t after_ms(int64_t ms)
{
	int64_t span, end;

	if (__builtin_mul_overflow(ms, ns_per_ms, &span) ||
	    __builtin_add_overflow(hx_clock_mono_ns(), span, &end))
		return INT64_MAX;
	return end;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static bool is_file(int fd)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;

	return io->ops->stat(io->context, fd, &stat) == 0 && stat.kind == HX_IO_FILE;
}

static void init_stream(struct hx_run_stream *stream, enum hx_exec_stream name, int to)
{
	stream->name = name;
	stream->from = -1;
	stream->to = to;
	stream->is_file = is_file(to);
	stream->os_errno = 0;
	stream->at = 0;
	stream->size = 0;
	stream->late = 0;
}

/* 0, or a negative errno. */
static int open_stream(struct hx_run_stream *stream, int *ret_write_end)
{
	int ends[2];
	int failed = hx_stream_pipe(ends, HX_STREAM_READ_NOWAIT);

	if (failed)
		return failed;
	stream->from = ends[0];
	*ret_write_end = ends[1];
	return 0;
}

static void close_stream(struct hx_run_stream *stream)
{
	hx_stream_close(stream->from);
	stream->from = -1;
}

static enum hapax_status spawn(
	struct hx_run_child *child, int stdout_fd, int stderr_fd, int lock_fd,
	struct hapax_error *err)
{
	char key[VARIABLE_SIZE], token[VARIABLE_SIZE], attempt[VARIABLE_SIZE];
	const char *const set[] = {key, token, attempt, NULL};
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	sigset_t defaults;

	(void)snprintf(
		key, sizeof(key), "HAPAX_KEY=%.*s", (int)child->plan->key.size,
		(const char *)child->plan->key.data);
	(void)snprintf(token, sizeof(token), "HAPAX_TOKEN=%" PRIu64, child->ledger->token);
	(void)snprintf(attempt, sizeof(attempt), "HAPAX_ATTEMPT=%" PRIu32, child->ledger->attempt);
	hx_interrupt_child_defaults(&defaults);
	plan.argv = child->plan->argv;
	plan.set = set;
	plan.stdin_fd = child->plan->stdin_fd;
	plan.stdout_fd = stdout_fd;
	plan.stderr_fd = stderr_fd;
	plan.kept_fd = lock_fd;
	plan.defaults = &defaults;
	plan.flags = child->group;
	return hx_process_start(&plan, &child->pid, err);
}

void hx_run_child_init(struct hx_run_child *child, struct hx_run_ledger *ledger)
{
	child->plan = ledger->plan;
	child->ledger = ledger;
	/* On a terminal the command must stay in the foreground, where we are. */
	child->group = isatty(STDIN_FILENO) ? 0 : HX_PROCESS_GROUP;
	child->has_ended = false;
	child->is_lost = false;
	child->stop = HX_RUN_STOP_NONE;
	child->asked = 0;
	child->timeout_at_ns = INT64_MAX;
	child->kill_at_ns = INT64_MAX;
	child->drain_until_ns = INT64_MAX;
	init_stream(&child->streams[0], HX_EXEC_STDOUT, STDOUT_FILENO);
	init_stream(&child->streams[1], HX_EXEC_STDERR, STDERR_FILENO);
	hx_exec_recorder_init(&child->recorder, ledger->plan->result_size_max);
}

enum hapax_status hx_run_child_start(
	struct hx_run_child *child, struct hx_run_ledger *ledger, int lock_fd,
	struct hapax_error *err)
{
	int writes[2] = {-1, -1};
	enum hapax_status status;
	int failed = open_stream(&child->streams[0], &writes[0]);

	if (!failed)
		failed = open_stream(&child->streams[1], &writes[1]);
	if (failed)
		status = hx_error_set(
			err, hx_status_from_errno(-failed), -failed, "no pipe was made");
	else
		status = spawn(child, writes[0], writes[1], lock_fd, err);
	hx_stream_close(writes[0]);
	hx_stream_close(writes[1]);
	if (ledger->plan->timeout_ms > 0)
		child->timeout_at_ns = after_ms(ledger->plan->timeout_ms);
	return status;
}

static bool has_pending(const struct hx_run_stream *stream)
{
	return stream->at < stream->size;
}

/* Pass on what is held. Whatever goes wrong with our output, the command goes on. */
static void pass_on(struct hx_run_stream *stream)
{
	size_t size = stream->size - stream->at;
	ssize_t done;

	/* A pipe that has room takes this much without waiting. */
	if (!stream->is_file && size > PIPE_BUF)
		size = PIPE_BUF;
	done = hx_stream_write(stream->to, stream->data + stream->at, size);
	if (done >= 0) {
		stream->at += (size_t)done;
		return;
	}
	if (done == -EINTR || done == -EAGAIN)
		return;
	stream->os_errno = (int)-done;
	stream->at = stream->size;
}

/* Take in some output. False: there is none now. */
static bool take_in(struct hx_run_child *child, struct hx_run_stream *stream)
{
	ssize_t size = hx_stream_read(stream->from, stream->data, sizeof(stream->data));

	if (size == -EAGAIN)
		return false;
	if (size <= 0) {
		close_stream(stream);
		return true;
	}
	hx_exec_recorder_add(&child->recorder, stream->name, stream->data, (size_t)size);
	stream->at = stream->os_errno == 0 ? 0 : (size_t)size;
	stream->size = (size_t)size;
	if (child->has_ended)
		stream->late += (size_t)size;
	return true;
}

static void signal_child(const struct hx_run_child *child, int number)
{
	(void)hx_process_signal(child->pid, number, child->group);
}

static void stop(struct hx_run_child *child, enum hx_run_stop why)
{
	bool is_first = child->stop == HX_RUN_STOP_NONE;

	child->stop = why;
	if (!is_first || child->has_ended)
		return;
	signal_child(child, SIGTERM);
	/* One that was stopped would never see it. */
	signal_child(child, SIGCONT);
	child->kill_at_ns = after_ms(child->plan->kill_after_ms);
}

/* The command has ended; is there more of its group, which we have asked to end too? */
static bool group_lives(const struct hx_run_child *child)
{
	return child->stop != HX_RUN_STOP_NONE && child->group != 0 &&
		hx_process_signal(child->pid, 0, child->group);
}

static void look_for_end(struct hx_run_child *child)
{
	bool has_ended = false;

	if (child->has_ended)
		return;
	if (hx_process_poll(child->pid, &has_ended, &child->end, NULL) != HAPAX_OK) {
		child->is_lost = true;
		has_ended = true;
	}
	if (!has_ended)
		return;
	child->has_ended = true;
	child->timeout_at_ns = INT64_MAX;
	child->drain_until_ns = after_ms(DRAIN_MS);
}

static void take_signals(struct hx_run_child *child)
{
	struct hx_run_signal signal;

	while (hx_run_signal_next(&signal)) {
		if (signal.number == SIGCHLD) {
			look_for_end(child);
			continue;
		}
		if (child->has_ended)
			continue;
		if (hx_run_signal_is_end(signal.number))
			child->asked = signal.number;
		/* The terminal has told everybody in its foreground group. */
		if (child->group != 0 || !signal.is_from_terminal)
			signal_child(child, signal.number);
	}
}

/* What is due by the clock. */
static void take_time(struct hx_run_child *child)
{
	int64_t now_ns = hx_clock_mono_ns();

	if (now_ns >= child->ledger->due_ns)
		hx_run_ledger_tick(child->ledger);
	if (child->ledger->is_fenced && child->stop != HX_RUN_STOP_FENCED) {
		hx_report(
			child->ledger->inv->command->name,
			"fenced: another run has taken over; the command is stopped");
		stop(child, HX_RUN_STOP_FENCED);
	}
	if (now_ns >= child->timeout_at_ns) {
		child->timeout_at_ns = INT64_MAX;
		stop(child, HX_RUN_STOP_TIMEOUT);
	}
	if (now_ns >= child->kill_at_ns) {
		child->kill_at_ns = INT64_MAX;
		if (!child->has_ended || group_lives(child))
			signal_child(child, SIGKILL);
	}
}

/* Late output has had its time: what is not there now does not come any more. */
static void end_late_output(struct hx_run_child *child)
{
	if (hx_clock_mono_ns() < child->drain_until_ns)
		return;
	for (size_t i = 0; i < 2; i++) {
		struct hx_run_stream *stream = &child->streams[i];

		if (stream->from < 0 || has_pending(stream))
			continue;
		if (stream->late > LATE_BYTES_MAX || !take_in(child, stream))
			close_stream(stream);
	}
}

static bool is_over(const struct hx_run_child *child)
{
	if (!child->has_ended || (child->kill_at_ns != INT64_MAX && group_lives(child)))
		return false;
	for (size_t i = 0; i < 2; i++)
		if (child->streams[i].from >= 0 || has_pending(&child->streams[i]))
			return false;
	return true;
}

static int64_t next_ns(const struct hx_run_child *child)
{
	int64_t next = earlier(child->ledger->due_ns, child->timeout_at_ns);

	next = earlier(next, child->kill_at_ns);
	if (!child->has_ended)
		return next;
	if (child->streams[0].from >= 0 || child->streams[1].from >= 0)
		next = earlier(next, child->drain_until_ns);
	if (child->kill_at_ns != INT64_MAX)
		next = earlier(next, after_ms(GROUP_MS));
	return next;
}

/* What to wait for on a stream: room for what is held, else more. -1: nothing. */
static struct pollfd wait_of(const struct hx_run_stream *stream)
{
	if (has_pending(stream))
		return (struct pollfd){.fd = stream->to, .events = POLLOUT};
	return (struct pollfd){.fd = stream->from, .events = POLLIN};
}

void hx_run_child_run(struct hx_run_child *child)
{
	while (!is_over(child)) {
		struct pollfd fds[] = {
			{.fd = child->ledger->signal_fd, .events = POLLIN},
			{.fd = child->ledger->wake[0], .events = POLLIN},
			wait_of(&child->streams[0]),
			wait_of(&child->streams[1]),
		};

		(void)hx_stream_wait(fds, sizeof(fds) / sizeof(fds[0]), next_ns(child));
		if (fds[1].revents != 0)
			hx_run_ledger_tick(child->ledger);
		for (size_t i = 0; i < 2; i++) {
			if (fds[2 + i].revents == 0)
				continue;
			if (has_pending(&child->streams[i]))
				pass_on(&child->streams[i]);
			else
				(void)take_in(child, &child->streams[i]);
		}
		/* After the output that was there before it: the end comes last. */
		if (fds[0].revents != 0)
			take_signals(child);
		take_time(child);
		end_late_output(child);
	}
}

void hx_run_child_done(struct hx_run_child *child)
{
	close_stream(&child->streams[0]);
	close_stream(&child->streams[1]);
	hx_exec_recorder_done(&child->recorder);
}
