/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_handler.c - a command as the handler of a message.
 *
 * One loop waits for room on the command's input, for its output, its exit and its timeout. A
 * command that does not read all of its input has not failed.
 */
#include "source/handler/command_handler.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/stream.h"
#include "source/handler/workers.h"

enum {
	/* How often to check for the exit if nothing else happens. */
	LOOK_MS = 20,
	/* Between TERM and KILL. */
	KILL_AFTER_MS = 5000,
	VARIABLES_MAX = 20,
	TRACES = 3,
	VARIABLES_SIZE_MAX = 64 * 1024,
	CHUNK_SIZE = 16 * 1024,
};

struct running {
	struct hapax_work *work;
	struct hapax_bytes input;
	int to;   /* its standard input; -1: closed */
	int from; /* its standard output */
	pid_t pid;
	bool has_ended;
	struct hx_process_end end;
	bool is_late; /* stopped by its timeout */
	bool is_lost; /* the system did not say how it ended */
	int64_t stop_at_ns;
	int64_t kill_at_ns;
	uint64_t size; /* of its output */
	uint64_t size_max;
};

struct variables {
	struct hapax_buf text; /* has its memory from the start: the list points there */
	size_t count;
	const char *list[VARIABLES_MAX + TRACES + 1];
};

/* Add NAME=VALUE and a NUL. False: not allowed in an environment, or no room; left out. */
static bool add(struct variables *variables, const char *name, struct hapax_bytes value)
{
	size_t begin = variables->text.size;

	if (value.data == NULL || memchr(value.data, '\0', value.size) != NULL ||
	    variables->count == VARIABLES_MAX)
		return false;
	if (hx_buf_printf(&variables->text, "%s=", name) != HAPAX_OK ||
	    hx_buf_append(&variables->text, value.data, value.size) != HAPAX_OK ||
	    hx_buf_append(&variables->text, "", 1) != HAPAX_OK) {
		variables->text.size = begin;
		return false;
	}
	variables->list[variables->count++] = (const char *)variables->text.data + begin;
	return true;
}

static bool add_number(struct variables *variables, const char *name, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	return add(variables, name, hapax_bytes_from_text(text));
}

/* Set HAPAX_DUPLICATE always: hapax may have inherited one. */
static bool describe_duplicate(struct variables *variables, const struct hx_in_flight *in_flight)
{
	const struct hapax_duplicate *duplicate = &in_flight->duplicate;
	char first_seen[32];

	if (!in_flight->is_tagged)
		return add(variables, "HAPAX_DUPLICATE", HX_BYTES_LIT(""));
	if (!add(variables, "HAPAX_DUPLICATE",
		 hapax_bytes_from_text(hapax_duplicate_cause_name(duplicate->cause))))
		return false;
	(void)add(variables, "HAPAX_ORIGINAL", duplicate->original);
	hx_clock_format_utc(duplicate->first_seen_ms, first_seen);
	(void)add(variables, "HAPAX_FIRST_SEEN", hapax_bytes_from_text(first_seen));
	return true;
}

static void describe_message(struct variables *variables, const struct hx_in_flight *in_flight)
{
	const struct hapax_message *message = in_flight->message;
	const struct hx_envelope *envelope = &in_flight->envelope;

	(void)add(variables, "HAPAX_KEY", hx_bytes(in_flight->key.key, in_flight->key.key_size));
	(void)add(variables, "HAPAX_TOPIC", message->topic);
	if (message->partition >= 0)
		(void)add_number(variables, "HAPAX_PARTITION", (uint64_t)message->partition);
	(void)add(variables, "HAPAX_OFFSET", message->place);
	(void)add(variables, "HAPAX_MESSAGE_KEY", message->key);
	(void)add(variables, "HAPAX_CONTENT_TYPE", envelope->content_type);
	if (envelope->type.size > 0)
		(void)add(variables, "HAPAX_EVENT_TYPE", envelope->type);
	if (envelope->is_cloudevent) {
		(void)add(variables, "HAPAX_EVENT_ID", envelope->cloudevent.id);
		(void)add(variables, "HAPAX_EVENT_SOURCE", envelope->cloudevent.source);
		(void)add(variables, "HAPAX_EVENT_SUBJECT", envelope->cloudevent.subject);
	}
}

/*
 * Continue the trace, with OpenTelemetry's names for environment variables. Variables that the
 * message lacks are set empty, because the inherited ones belong to another trace. These take no
 * room.
 */
static void describe_trace(struct variables *variables, const struct hx_in_flight *in_flight)
{
	static const struct {
		const char *header;
		const char *name;
		const char *empty;
	} traces[TRACES] = {
		{"traceparent", "TRACEPARENT", "TRACEPARENT="},
		{"tracestate", "TRACESTATE", "TRACESTATE="},
		{"baggage", "BAGGAGE", "BAGGAGE="}};

	for (size_t i = 0; i < TRACES; i++)
		if (!add(variables, traces[i].name,
			 hx_in_flight_trace_header(in_flight, traces[i].header)))
			variables->list[variables->count++] = traces[i].empty;
}

/* Add the decisive variables first, because room is limited. False: no room even for them. */
static bool describe(struct variables *variables, const struct hx_in_flight *in_flight)
{
	hx_buf_init(&variables->text, VARIABLES_SIZE_MAX);
	variables->count = 0;
	if (hx_buf_reserve(&variables->text, VARIABLES_SIZE_MAX) != HAPAX_OK ||
	    !describe_duplicate(variables, in_flight) ||
	    !add_number(variables, "HAPAX_TOKEN", in_flight->token) ||
	    !add_number(variables, "HAPAX_ATTEMPT", in_flight->attempt))
		return false;
	describe_message(variables, in_flight);
	describe_trace(variables, in_flight);
	variables->list[variables->count] = NULL;
	return true;
}

static enum hapax_status start(
	struct running *running, const struct hx_command *command, const char *const *set,
	struct hapax_error *err)
{
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	int failed = hx_stream_pipe(in, HX_STREAM_WRITE_NOWAIT);
	enum hapax_status status;

	if (failed == 0)
		failed = hx_stream_pipe(out, HX_STREAM_READ_NOWAIT);
	if (failed != 0) {
		status = hx_error_set(
			err, hx_error_status_of(-failed), -failed, "could not create a pipe");
	} else {
		plan.argv = command->argv;
		plan.set = set;
		plan.stdin_fd = in[0];
		plan.stdout_fd = out[1];
		plan.flags = HX_PROCESS_GROUP;
		status = hx_process_start(&plan, &running->pid, err);
	}
	hx_stream_close(in[0]);
	hx_stream_close(out[1]);
	running->to = in[1];
	running->from = out[0];
	return status;
}

static void close_input(struct running *running)
{
	hx_stream_close(running->to);
	running->to = -1;
}

static void feed(struct running *running)
{
	ssize_t size = hx_stream_write(running->to, running->input.data, running->input.size);

	if (size == -EAGAIN || size == -EINTR)
		return;
	if (size < 0) {
		close_input(running);
		return;
	}
	running->input = hx_bytes(
		(const char *)running->input.data + size, running->input.size - (size_t)size);
	if (running->input.size == 0)
		close_input(running);
}

/* False: no data now, or end of file. */
static bool take_in(struct running *running)
{
	char data[CHUNK_SIZE];
	ssize_t size = running->from < 0 ? 0 : hx_stream_read(running->from, data, sizeof(data));

	if (size == -EAGAIN)
		return false;
	if (size <= 0) {
		hx_stream_close(running->from);
		running->from = -1;
		return false;
	}
	running->size += (uint64_t)size;
	/* Output that is too large to keep is only counted. */
	if (running->size <= running->size_max)
		(void)hapax_work_write(running->work, data, (size_t)size);
	return true;
}

static void take_time(struct running *running)
{
	int64_t now_ns = hx_clock_mono_ns();
	bool is_fenced = hapax_work_is_fenced(running->work) != 0;

	if ((now_ns >= running->stop_at_ns || is_fenced) && running->kill_at_ns == INT64_MAX) {
		running->is_late = true;
		running->kill_at_ns = now_ns + KILL_AFTER_MS * HX_NS_PER_MS;
		(void)hx_process_signal(running->pid, SIGTERM, HX_PROCESS_GROUP);
	}
	if (now_ns >= running->kill_at_ns)
		(void)hx_process_signal(running->pid, SIGKILL, HX_PROCESS_GROUP);
}

static void run_to_end(struct running *running)
{
	struct hapax_error err;

	while (!running->has_ended) {
		struct pollfd fds[] = {
			{.fd = running->to, .events = POLLOUT},
			{.fd = running->from, .events = POLLIN},
		};

		(void)hx_stream_wait(fds, 2, hx_clock_mono_ns() + LOOK_MS * HX_NS_PER_MS);
		if (fds[0].revents != 0)
			feed(running);
		if (fds[1].revents != 0)
			(void)take_in(running);
		take_time(running);
		if (hx_process_poll(running->pid, &running->has_ended, &running->end, &err) !=
		    HAPAX_OK) {
			running->has_ended = true;
			running->is_lost = true;
		}
	}
	while (take_in(running))
		continue;
	close_input(running);
	hx_stream_close(running->from);
}

static enum hapax_run_outcome judge(struct running *running)
{
	struct hapax_work *work = running->work;
	char why[80];

	if (running->is_lost)
		return hapax_work_fail(
			work, HAPAX_RUN_AMBIGUOUS, "could not learn how the command ended");
	if (running->is_late)
		return hapax_work_fail(
			work, HAPAX_RUN_AMBIGUOUS,
			"the command was stopped: it exceeded its time, or lost its claim");
	if (running->end.signal != 0) {
		(void)snprintf(
			why, sizeof(why), "the command was terminated by signal %d",
			running->end.signal);
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, why);
	}
	if (running->end.exit_code != 0) {
		(void)snprintf(
			why, sizeof(why), "the command exited with status %d",
			running->end.exit_code);
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, why);
	}
	if (running->size > running->size_max) {
		work->result.kind = HAPAX_RESULT_BYTES;
		work->result.omitted_bytes = running->size;
		hx_buf_clear(&hx_workers_in_flight(work)->call.body);
	}
	return HAPAX_RUN_OK;
}

enum hapax_run_outcome hx_command_run_work(struct hapax_work *work, void *context)
{
	const struct hx_command *command = context;
	const struct hx_in_flight *in_flight = hx_workers_in_flight(work);
	struct running running = {
		.work = work,
		.input = in_flight->envelope.event.data,
		.to = -1,
		.from = -1,
		.stop_at_ns = INT64_MAX,
		.kill_at_ns = INT64_MAX,
		.size_max = command->result_size_max};
	struct variables variables;
	struct hapax_error err;
	enum hapax_status status;

	/* Without HAPAX_DUPLICATE the command would take a duplicate for a first delivery. */
	status = describe(&variables, in_flight)
		? start(&running, command, variables.list, &err)
		: hx_error_set(&err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a command");
	hx_buf_done(&variables.text);
	if (status != HAPAX_OK) {
		close_input(&running);
		hx_stream_close(running.from);
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
	}
	if (command->max_run_ms < INT64_MAX / HX_NS_PER_MS)
		running.stop_at_ns = hx_clock_mono_ns() + command->max_run_ms * HX_NS_PER_MS;
	if (running.input.size == 0)
		close_input(&running);
	run_to_end(&running);
	return judge(&running);
}
