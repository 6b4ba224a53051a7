/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_child.c - the command while it runs.
 *
 * One loop waits for signals (SIGCHLD among them), the store's answer to a renewal, output of the
 * command when we hold none, and room in our own output when we hold some. Its timeout is the
 * earliest of renewal, command timeout, KILL after TERM and, after the end, the limit for late
 * output. Our own messages share the path of the command's standard error: nothing here waits for a
 * write, see run_output.h.
 */
#include "cli/run/run_child.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stream.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"
#include "cli/run/run_signal.h"

enum {
	/*
	 * Limit on the wait for a descendant, such as a daemon, that outlives the command and keeps
	 * its output open.
	 */
	DRAIN_MS = 1000,
	/* How long to wait for a reader that takes nothing once we were asked to end. */
	PATIENCE_MS = 1000,
	/* How often to check whether a stopped group is empty. */
	GROUP_MS = 20,
	VARIABLE_SIZE = HX_KEY_SIZE_MAX + 32,
};

/* Bits of hx_cmd_run_child.notes. */
enum {
	NOTE_LAPSED = 1 << 0,
	NOTE_FENCED = 1 << 1,
	NOTE_TERMINAL = 1 << 2,
	NOTE_TERMINAL_SAID = 1 << 3, /* not pending, and not to be repeated */
	NOTES_TO_SAY = NOTE_LAPSED | NOTE_FENCED | NOTE_TERMINAL,
};

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void init_stream(struct hx_cmd_run_stream *stream, enum hx_exec_stream name, int to)
{
	stream->name = name;
	stream->from = -1;
	hx_cmd_run_output_init(&stream->to, to);
	stream->at = 0;
	stream->size = 0;
	stream->late = 0;
}

/* 0, or a negative errno. */
static int open_stream(struct hx_cmd_run_stream *stream, int *ret_write_end)
{
	int ends[2];
	int failed = hx_stream_pipe(ends, HX_STREAM_READ_NOWAIT);

	if (failed)
		return failed;
	stream->from = ends[0];
	*ret_write_end = ends[1];
	return 0;
}

static void close_stream(struct hx_cmd_run_stream *stream)
{
	hx_stream_close(stream->from);
	stream->from = -1;
}

static enum hapax_status spawn(
	struct hx_cmd_run_child *child, int stdout_fd, int stderr_fd, int lock_fd,
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

void hx_cmd_run_child_init(struct hx_cmd_run_child *child, struct hx_cmd_run_ledger *ledger)
{
	child->plan = ledger->plan;
	child->ledger = ledger;
	/* On a terminal the command must stay in the foreground, where we are. */
	child->group = isatty(STDIN_FILENO) || hx_process_in_foreground() ? 0 : HX_PROCESS_GROUP;
	child->has_ended = false;
	child->was_stopped = false;
	child->is_lost = false;
	child->stop = HX_RUN_STOP_NONE;
	child->asked = 0;
	child->late_asked = 0;
	child->notes = 0;
	child->watch_at_ns = INT64_MAX;
	child->timeout_at_ns = INT64_MAX;
	child->kill_at_ns = INT64_MAX;
	child->drain_until_ns = INT64_MAX;
	init_stream(&child->streams[0], HX_EXEC_STDOUT, STDOUT_FILENO);
	init_stream(&child->streams[1], HX_EXEC_STDERR, STDERR_FILENO);
	hx_exec_recorder_init(&child->recorder, ledger->plan->result_size_max);
}

enum hapax_status hx_cmd_run_child_start(
	struct hx_cmd_run_child *child, struct hx_cmd_run_ledger *ledger, int lock_fd,
	struct hapax_error *err)
{
	int writes[2] = {-1, -1};
	enum hapax_status status;
	int failed = open_stream(&child->streams[0], &writes[0]);

	if (!failed)
		failed = open_stream(&child->streams[1], &writes[1]);
	if (failed)
		status = hx_error_set(
			err, hx_error_status_of(-failed), -failed, "could not create a pipe");
	else
		status = spawn(child, writes[0], writes[1], lock_fd, err);
	hx_stream_close(writes[0]);
	hx_stream_close(writes[1]);
	if (ledger->plan->timeout_ms > 0)
		child->timeout_at_ns = hx_stream_after_ms(ledger->plan->timeout_ms);
	return status;
}

static bool has_pending(const struct hx_cmd_run_stream *stream)
{
	return stream->at < stream->size;
}

/* Write held output. If our output fails, the command continues. */
static void pass_on(struct hx_cmd_run_stream *stream)
{
	stream->at += hx_cmd_run_output_write(
		&stream->to, stream->data + stream->at, stream->size - stream->at);
}

/* How much may be read now. While the command runs: only after all earlier output was written. */
static size_t room_in(const struct hx_cmd_run_child *child, const struct hx_cmd_run_stream *stream)
{
	size_t left = sizeof(stream->data) - stream->size;

	if (stream->from < 0)
		return 0;
	if (!has_pending(stream))
		return HX_RUN_CHUNK_SIZE;
	if (!child->has_ended)
		return 0;
	return left < HX_RUN_CHUNK_SIZE ? left : HX_RUN_CHUNK_SIZE;
}

/* Read some output. False: there is none now, or no room for it. */
static bool take_in(struct hx_cmd_run_child *child, struct hx_cmd_run_stream *stream)
{
	size_t room = room_in(child, stream);
	ssize_t size;

	if (room == 0)
		return false;
	if (!has_pending(stream)) {
		stream->at = 0;
		stream->size = 0;
	}
	size = hx_stream_read(stream->from, stream->data + stream->size, room);
	if (size == -EAGAIN)
		return false;
	if (size <= 0) {
		close_stream(stream);
		return true;
	}
	hx_exec_recorder_add(
		&child->recorder, stream->name, stream->data + stream->size, (size_t)size);
	stream->size += (size_t)size;
	if (stream->to.os_errno != 0)
		stream->at = stream->size;
	if (child->has_ended)
		stream->late += (size_t)size;
	return true;
}

static void signal_child(const struct hx_cmd_run_child *child, int number)
{
	(void)hx_process_signal(child->pid, number, child->group);
}

static void stop(struct hx_cmd_run_child *child, enum hx_run_stop why)
{
	bool is_first = child->stop == HX_RUN_STOP_NONE;

	child->stop = why;
	if (!is_first || child->has_ended)
		return;
	signal_child(child, SIGTERM);
	/* A stopped command would never see the signal. */
	signal_child(child, SIGCONT);
	child->kill_at_ns = hx_stream_after_ms(child->plan->kill_after_ms);
}

/* The command has ended. Is any process of its group, which we also asked to end, alive? */
static bool group_lives(const struct hx_cmd_run_child *child)
{
	return child->stop != HX_RUN_STOP_NONE && child->group != 0 &&
		hx_process_signal(child->pid, 0, child->group);
}

static void look_for_end(struct hx_cmd_run_child *child)
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
	child->drain_until_ns = hx_stream_after_ms(DRAIN_MS);
}

/* A background command that wants the terminal would wait forever, in silence. */
static void look_for_stop(struct hx_cmd_run_child *child)
{
	int number = child->has_ended ? 0 : hx_process_stopped(child->pid);

	child->was_stopped = child->was_stopped || number != 0;
	if ((number == SIGTTIN || number == SIGTTOU) && !(child->notes & NOTE_TERMINAL_SAID))
		child->notes |= NOTE_TERMINAL | NOTE_TERMINAL_SAID;
}

static void take_signals(struct hx_cmd_run_child *child)
{
	struct hx_cmd_run_signal signal;

	while (hx_cmd_run_signal_next(&signal)) {
		if (signal.number == SIGCHLD) {
			look_for_end(child);
			look_for_stop(child);
			continue;
		}
		if (child->has_ended) {
			if (hx_cmd_run_signal_is_end(signal.number))
				child->late_asked = signal.number;
			continue;
		}
		if (hx_cmd_run_signal_is_end(signal.number))
			child->asked = signal.number;
		/* The terminal has signaled its whole foreground group. */
		if (child->group != 0 || !signal.is_from_terminal)
			signal_child(child, signal.number);
		if (child->was_stopped && hx_cmd_run_signal_is_end(signal.number))
			signal_child(child, SIGCONT);
	}
}

/*
 * The store says that the claim is no longer ours. The key may still have no other holder: the
 * command may have completed its own key, which then expired; a sweep may have given the claim up;
 * a person may have forgotten the key. Only a run that took over is a reason to stop the command.
 */
static void watch_key(struct hx_cmd_run_child *child)
{
	struct hx_cmd_run_ledger *ledger = child->ledger;

	child->watch_at_ns = INT64_MAX;
	switch (hx_cmd_run_ledger_standing(ledger)) {
	case HX_RUN_STANDING_COMPLETED: break;
	case HX_RUN_STANDING_OURS:
	case HX_RUN_STANDING_GONE:
	case HX_RUN_STANDING_UNKNOWN:
		child->watch_at_ns = hx_stream_after_ms(ledger->plan->lease_ms / 3 + 1);
		break;
	case HX_RUN_STANDING_TAKEN:
		child->notes |= NOTE_FENCED;
		stop(child, HX_RUN_STOP_FENCED);
		break;
	}
}

/* Do what is due by the clock. */
static void take_time(struct hx_cmd_run_child *child)
{
	int64_t now_ns = hx_clock_mono_ns();

	if (now_ns >= child->ledger->due_ns)
		hx_cmd_run_ledger_tick(child->ledger);
	if (child->ledger->is_lapsed) {
		child->ledger->is_lapsed = false;
		child->notes |= NOTE_LAPSED;
	}
	if (child->ledger->is_fenced) {
		child->ledger->is_fenced = false;
		child->watch_at_ns = now_ns;
	}
	if (now_ns >= child->watch_at_ns)
		watch_key(child);
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

/* Append a message to the held standard error. */
static void say(struct hx_cmd_run_child *child, const char *message)
{
	struct hx_cmd_run_stream *stream = &child->streams[1];
	char line[HX_REPORT_SIZE];
	size_t size = hx_report_format(line, child->ledger->inv->command->name, "%s", message);

	if (size > sizeof(stream->data) - stream->size)
		return;
	memcpy(stream->data + stream->size, line, size);
	stream->size += size;
}

/* Queue messages between two pieces of the command's output, to be written when there is room. */
static void say_notes(struct hx_cmd_run_child *child)
{
	struct hx_cmd_run_stream *stream = &child->streams[1];
	unsigned notes = child->notes & NOTES_TO_SAY;

	if (notes == 0 || has_pending(stream))
		return;
	stream->at = 0;
	stream->size = 0;
	if (notes & NOTE_LAPSED)
		say(child, "the lease could not be renewed in time: another host may take over");
	if (notes & NOTE_FENCED)
		say(child, "fenced: another run has taken over; the command is stopped");
	if (notes & NOTE_TERMINAL)
		say(child,
		    "the command is stopped: it wants the terminal, and is in the background");
	child->notes &= ~(unsigned)NOTES_TO_SAY;
}

/* The time for late output is over: stop reading. */
static void end_late_output(struct hx_cmd_run_child *child)
{
	if (hx_clock_mono_ns() < child->drain_until_ns)
		return;
	for (size_t i = 0; i < 2; i++) {
		struct hx_cmd_run_stream *stream = &child->streams[i];

		if (stream->from >= 0 &&
		    (stream->late > HX_RUN_LATE_SIZE || !take_in(child, stream)))
			close_stream(stream);
	}
}

/* The command writes nothing more; we may still hold output. */
static bool is_over(const struct hx_cmd_run_child *child)
{
	if (!child->has_ended || (child->kill_at_ns != INT64_MAX && group_lives(child)))
		return false;
	return child->streams[0].from < 0 && child->streams[1].from < 0;
}

static int64_t next_ns(const struct hx_cmd_run_child *child)
{
	int64_t next = earlier(child->ledger->due_ns, child->timeout_at_ns);

	next = earlier(next, child->watch_at_ns);
	next = earlier(next, child->kill_at_ns);
	if (!child->has_ended)
		return next;
	if (child->streams[0].from >= 0 || child->streams[1].from >= 0)
		next = earlier(next, child->drain_until_ns);
	if (child->kill_at_ns != INT64_MAX)
		next = earlier(next, hx_stream_after_ms(GROUP_MS));
	return next;
}

/* Poll a stream for input, if there is room for it. fd -1: no. */
static struct pollfd wait_in(
	const struct hx_cmd_run_child *child, const struct hx_cmd_run_stream *stream)
{
	return (struct pollfd){
		.fd = room_in(child, stream) > 0 ? stream->from : -1, .events = POLLIN};
}

/* Poll for room for the held output of a stream. fd -1: none is held. */
static struct pollfd wait_out(const struct hx_cmd_run_stream *stream)
{
	return (struct pollfd){.fd = has_pending(stream) ? stream->to.fd : -1, .events = POLLOUT};
}

void hx_cmd_run_child_run(struct hx_cmd_run_child *child)
{
	while (!is_over(child)) {
		struct pollfd fds[] = {
			{.fd = child->ledger->signal_fd, .events = POLLIN},
			{.fd = child->ledger->wake[0], .events = POLLIN},
			wait_in(child, &child->streams[0]),
			wait_in(child, &child->streams[1]),
			wait_out(&child->streams[0]),
			wait_out(&child->streams[1]),
		};

		(void)hx_stream_wait(fds, HX_COUNT(fds), next_ns(child));
		if (fds[1].revents != 0)
			hx_cmd_run_ledger_tick(child->ledger);
		for (size_t i = 0; i < 2; i++) {
			if (fds[4 + i].revents != 0)
				pass_on(&child->streams[i]);
			if (fds[2 + i].revents != 0)
				(void)take_in(child, &child->streams[i]);
		}
		/* After the output that preceded it: the end comes last. */
		if (fds[0].revents != 0)
			take_signals(child);
		take_time(child);
		say_notes(child);
		end_late_output(child);
	}
}

int hx_cmd_run_child_flush(struct hx_cmd_run_child *child)
{
	int before = child->late_asked != 0 ? child->late_asked : child->ledger->asked;
	bool is_asked = child->asked != 0 || before != 0;

	child->late_asked = 0;
	say_notes(child);
	while (has_pending(&child->streams[0]) || has_pending(&child->streams[1])) {
		struct pollfd fds[] = {
			{.fd = child->ledger->signal_fd, .events = POLLIN},
			wait_out(&child->streams[0]),
			wait_out(&child->streams[1]),
		};
		int ready = hx_stream_wait(
			fds, HX_COUNT(fds), is_asked ? hx_stream_after_ms(PATIENCE_MS) : INT64_MAX);
		int signal = hx_cmd_run_signal_asked();

		if (signal != 0)
			return signal;
		if (ready == 0)
			return before;
		for (size_t i = 0; i < 2; i++)
			if (fds[1 + i].revents != 0)
				pass_on(&child->streams[i]);
		say_notes(child);
	}
	return 0;
}

void hx_cmd_run_child_done(struct hx_cmd_run_child *child)
{
	close_stream(&child->streams[0]);
	close_stream(&child->streams[1]);
	hx_cmd_run_output_done(&child->streams[0].to);
	hx_cmd_run_output_done(&child->streams[1].to);
	hx_exec_recorder_done(&child->recorder);
}
