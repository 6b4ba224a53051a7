/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter.c - sends spans to a collector.
 *
 *	add ──▶ queue ──INTERVAL, BATCH──▶ body ──▶ call ──taken, refused──▶ next
 *	                                     ▲        │
 *	                                     └─later──┘ not now
 */
#include "serve/trace/exporter.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/random.h"
#include "config/config.h"
#include "net/tls/tls.h"
#include "observe/logger/logger.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http1_write.h"

enum {
	/* One second of 2,000 sampled events; 4 MB. */
	QUEUE_MAX = 2048,

	/* Per request: half a megabyte; collectors take four. */
	BATCH_MAX = 256,
	BODY_MAX = 4 * 1024 * 1024,
	HEAD_MAX = 16 * 1024,
	FIELDS_MAX = 8 * 1024,

	INTERVAL_MS = 1000,

	/*
	 * The pause in seconds doubles with each attempt: at most 15 in all; then the notes are too
	 * old.
	 */
	ATTEMPTS_MAX = 5,
	BACKOFF_MS = 1000,
	BACKOFF_MS_MAX = 8000,
	RETRY_AFTER_S_MAX = 30,

	LAST_TURNS_MAX = 1000,
};

/* ------------------------------------------------------------------ the queue */

void hx_exporter_add(struct hx_exporter *exporter, const struct hx_trace_note *note)
{
	bool is_taken;
	bool wakes;

	hx_lock_acquire(&exporter->lock);
	is_taken = exporter->count < QUEUE_MAX;
	if (is_taken) {
		exporter->notes[(exporter->first + exporter->count) % QUEUE_MAX] = *note;
		exporter->count++;
	}
	wakes = exporter->count == 1 || exporter->count == BATCH_MAX;
	hx_lock_release(&exporter->lock);
	if (!is_taken)
		atomic_fetch_add_explicit(
			&exporter->dropped, hx_trace_note_spans(note), memory_order_relaxed);
	else if (wakes)
		hx_reactor_post(&exporter->reactor, &exporter->wake_task);
}

static size_t queued(struct hx_exporter *exporter)
{
	size_t count;

	hx_lock_acquire(&exporter->lock);
	count = exporter->count;
	hx_lock_release(&exporter->lock);
	return count;
}

static void forget(struct hx_exporter *exporter, size_t count)
{
	hx_lock_acquire(&exporter->lock);
	exporter->first = (exporter->first + count) % QUEUE_MAX;
	exporter->count -= count;
	hx_lock_release(&exporter->lock);
}

/* ------------------------------------------------------------------ a request */

/* Writes as many notes as one request takes. Notes stay queued until accepted or given up. */
static void write_body(struct hx_exporter *exporter, size_t count)
{
	struct hx_json_write json;

	hx_buf_clear(&exporter->body);
	hx_json_write_init(&json, &exporter->body);
	hx_trace_write_begin(&json, exporter->config->traces.service_name);
	exporter->sent_notes = count < BATCH_MAX ? count : BATCH_MAX;
	exporter->sent_spans = 0;
	for (size_t i = 0; i < exporter->sent_notes; i++) {
		const struct hx_trace_note *note =
			&exporter->notes[(exporter->first + i) % QUEUE_MAX];

		hx_trace_write_note(&json, note);
		exporter->sent_spans += hx_trace_note_spans(note);
	}
	hx_trace_write_end(&json);
	/* Without memory the body is incomplete: send none. */
	if (json.status != HAPAX_OK)
		hx_buf_clear(&exporter->body);
	exporter->attempts = 0;
}

static enum hapax_status write_head(struct hx_exporter *exporter, struct hapax_error *err)
{
	const struct hx_config_target *target = &exporter->config->traces.target;
	const char *path = target->path[0] == '\0' ? "/v1/traces" : target->path;
	struct hapax_bytes fields = hapax_buf_bytes(&exporter->fields);
	const char *line = fields.size == 0 ? "" : fields.data;
	const char *end = line + fields.size;
	struct hx_http1_writer writer;

	hx_buf_clear(&exporter->head);
	hx_http1_write_request(
		&writer, &exporter->head, HX_BYTES_LIT("POST"), hapax_bytes_from_text(path));
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Host"), hapax_bytes_from_text(target->authority));
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("application/json"));
	/* Their form was checked when they were read. */
	while (line < end) {
		const char *colon = memchr(line, ':', (size_t)(end - line));
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		hx_http1_write_field(
			&writer, hx_bytes(line, (size_t)(colon - line)),
			hx_bytes(colon + 1, (size_t)(stop - colon - 1)));
		line = stop + 1;
	}
	hx_http1_write_length(&writer, exporter->body.size);
	return hx_http1_write_end(&writer, err);
}

static void ended(struct hx_exporter *exporter)
{
	if (atomic_load(&exporter->is_ending))
		hx_reactor_stop(&exporter->reactor);
}

static void set_timer(struct hx_exporter *exporter, int64_t ms)
{
	int64_t at_ns = hx_reactor_now_ns(&exporter->reactor) + ms * HX_NS_PER_MS;

	if (atomic_load(&exporter->is_ending) && at_ns > atomic_load(&exporter->end_ns))
		at_ns = atomic_load(&exporter->end_ns);
	hx_timer_set(&exporter->reactor.timers, &exporter->timer, at_ns);
}

static void give_up(struct hx_exporter *exporter, const char *why)
{
	const struct hx_logger_field fields[] = {
		/* The path may contain a secret, so only the authority is logged. */
		HX_LOGGER_TEXT("endpoint", exporter->config->traces.target.authority),
		HX_LOGGER_UNSIGNED("spans", exporter->sent_spans),
		HX_LOGGER_TEXT("error", why),
	};

	atomic_fetch_add_explicit(&exporter->failed, exporter->sent_spans, memory_order_relaxed);
	hx_logger(exporter->log, HX_LOGGER_WARN, "spans dropped", fields, 3);
	forget(exporter, exporter->sent_notes);
	exporter->sent_notes = 0;
}

static void retry(struct hx_exporter *exporter, const char *why)
{
	int64_t wait_ms = exporter->retry_after_s * 1000;

	if (exporter->attempts >= ATTEMPTS_MAX || atomic_load(&exporter->is_ending)) {
		give_up(exporter, why);
		return;
	}
	if (wait_ms <= 0)
		wait_ms = hx_backoff(
			BACKOFF_MS, BACKOFF_MS_MAX, exporter->attempts - 1, hx_random_u64());
	set_timer(exporter, wait_ms);
}

static void send_notes(struct hx_exporter *exporter)
{
	int64_t now_ns = hx_reactor_now_ns(&exporter->reactor);
	int64_t deadline_ns = now_ns + exporter->config->traces.timeout_ms * HX_NS_PER_MS;
	struct hapax_error err;
	enum hapax_status status;

	if (exporter->sent_notes == 0)
		write_body(exporter, queued(exporter));
	if (exporter->body.size == 0) {
		give_up(exporter, "not enough memory");
		return;
	}
	if (atomic_load(&exporter->is_ending) && deadline_ns > atomic_load(&exporter->end_ns))
		deadline_ns = atomic_load(&exporter->end_ns);
	exporter->attempts++;
	exporter->status = 0;
	exporter->retry_after_s = 0;
	status = write_head(exporter, &err);
	if (status == HAPAX_OK) {
		exporter->call.head = hapax_buf_bytes(&exporter->head);
		exporter->call.body = hapax_buf_bytes(&exporter->body);
		status = hx_http_call_begin(&exporter->call, &exporter->client, deadline_ns, &err);
	}
	exporter->is_calling = status == HAPAX_OK;
	if (status != HAPAX_OK)
		retry(exporter, err.message);
}

/* The time for the rest is over. */
static void drop_rest(struct hx_exporter *exporter, size_t count)
{
	uint64_t spans = 0;

	for (size_t i = 0; i < count; i++)
		spans += hx_trace_note_spans(&exporter->notes[(exporter->first + i) % QUEUE_MAX]);
	exporter->sent_notes = count;
	exporter->sent_spans = spans;
	give_up(exporter, "the daemon stopped before they were sent");
}

/* No call is in progress: begin the next one. */
static void go_on(struct hx_exporter *exporter)
{
	size_t count = queued(exporter);
	bool is_ending = atomic_load(&exporter->is_ending);

	if (exporter->is_calling || hx_timer_is_set(&exporter->timer))
		return;
	if (is_ending && count > 0 &&
	    hx_reactor_now_ns(&exporter->reactor) >= atomic_load(&exporter->end_ns)) {
		drop_rest(exporter, count);
		count = 0;
	}
	if (count == 0)
		ended(exporter);
	else if (exporter->sent_notes != 0 || count >= BATCH_MAX || is_ending)
		send_notes(exporter);
	else
		set_timer(exporter, INTERVAL_MS);
}

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	struct hx_exporter *exporter = call->context;
	size_t index = hx_http1_find(head, HX_BYTES_LIT("Retry-After"), 0);
	struct hapax_bytes value;
	const unsigned char *digits;

	exporter->status = head->status;
	if (index == head->field_count)
		return;
	value = head->fields[index].value;
	digits = value.data;
	/* A date is not parsed: the usual backoff applies. */
	for (size_t i = 0; i < value.size && hx_http1_is_digit(digits[i]); i++) {
		exporter->retry_after_s = exporter->retry_after_s * 10 + (digits[i] - '0');
		if (exporter->retry_after_s > RETRY_AFTER_S_MAX)
			exporter->retry_after_s = RETRY_AFTER_S_MAX;
	}
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	(void)call;
	(void)data;
}

static bool is_later(unsigned status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	struct hx_exporter *exporter = call->context;
	char why[64];

	exporter->is_calling = false;
	(void)snprintf(why, sizeof(why), "the collector answered with status %u", exporter->status);
	if (end != HX_HTTP_CALL_COMPLETE) {
		retry(exporter, err->message);
	} else if (exporter->status >= 200 && exporter->status < 300) {
		atomic_fetch_add_explicit(
			&exporter->exported, exporter->sent_spans, memory_order_relaxed);
		forget(exporter, exporter->sent_notes);
		exporter->sent_notes = 0;
	} else if (is_later(exporter->status)) {
		retry(exporter, why);
	} else {
		give_up(exporter, why);
	}
	go_on(exporter);
}

static const struct hx_http_call_ops call_ops = {
	.on_head = on_head, .on_data = on_data, .on_end = on_end};

static void on_wake(struct hx_task *task)
{
	struct hx_exporter *exporter = task->context;

	/* Enough to send at once, unless the collector asked to wait. */
	if (exporter->sent_notes == 0 && !exporter->is_calling && queued(exporter) >= BATCH_MAX)
		hx_timer_clear(&exporter->reactor.timers, &exporter->timer);
	go_on(exporter);
}

static void on_timer(struct hx_timer *timer)
{
	struct hx_exporter *exporter = timer->context;

	if (!exporter->is_calling && queued(exporter) > 0)
		send_notes(exporter);
	go_on(exporter);
}

static void on_ending(struct hx_task *task)
{
	struct hx_exporter *exporter = task->context;

	hx_timer_clear(&exporter->reactor.timers, &exporter->timer);
	if (exporter->is_calling)
		hx_http_call_hasten(&exporter->call, atomic_load(&exporter->end_ns));
	go_on(exporter);
}

/* ------------------------------------------------------------------ life */

/* Whether a request can have such a field; errors show only its name. */
static enum hapax_status check_field(
	struct hx_exporter *exporter, struct hapax_bytes name, struct hapax_bytes value,
	struct hapax_error *err)
{
	struct hx_http1_writer writer;

	hx_buf_clear(&exporter->head);
	hx_http1_write_request(&writer, &exporter->head, HX_BYTES_LIT("POST"), HX_BYTES_LIT("/"));
	hx_http1_write_field(&writer, name, value);
	return hx_http1_write_end(&writer, err);
}

/* "Name: value", kept as "Name:value\n". */
static enum hapax_status take_field(
	struct hx_exporter *exporter, struct hapax_bytes line, struct hapax_error *err)
{
	const char *data = line.data;
	const char *colon = memchr(data, ':', line.size);
	struct hapax_bytes name;
	struct hapax_bytes value;
	enum hapax_status status;

	if (colon == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"traces.headers_file: every line of '%s' must be 'Name: value'",
			exporter->config->traces.headers_file);
	name = hx_bytes(data, (size_t)(colon - data));
	value = hx_http1_trim(hx_bytes(colon + 1, line.size - name.size - 1));
	status = check_field(exporter, name, value, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_buf_printf(
		&exporter->fields, "%.*s:%.*s\n", (int)name.size, (const char *)name.data,
		(int)value.size, (const char *)value.data);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "traces.headers_file: not enough memory");
	return HAPAX_OK;
}

static enum hapax_status take_fields(
	struct hx_exporter *exporter, struct hapax_bytes text, struct hapax_error *err)
{
	const char *at = text.data;
	size_t left = text.size;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && left > 0) {
		const char *end = memchr(at, '\n', left);
		size_t size = end == NULL ? left : (size_t)(end - at);
		struct hapax_bytes line = hx_http1_trim(hx_bytes(at, size));

		if (line.size > 0 && *(const char *)line.data != '#')
			status = take_field(exporter, line, err);
		size += end != NULL;
		at += size;
		left -= size;
	}
	return status;
}

/* Fields may hold secrets, so they are in a file of their own and are never shown. */
static enum hapax_status read_fields(struct hx_exporter *exporter, struct hapax_error *err)
{
	const char *path = exporter->config->traces.headers_file;
	struct hapax_buf text;
	enum hapax_status status;

	if (path[0] == '\0')
		return HAPAX_OK;
	hx_buf_init(&text, FIELDS_MAX);
	status = hx_io_read_all(hx_io_system(), path, FIELDS_MAX, &text, err);
	if (status == HAPAX_OK)
		status = take_fields(exporter, hapax_buf_bytes(&text), err);
	hx_buf_done(&text);
	return status;
}

static void exporter_run(void *arg)
{
	struct hx_exporter *exporter = arg;

	hx_reactor_run(&exporter->reactor);
}

static enum hapax_status open_client(
	struct hx_exporter *exporter, struct hx_resolver *resolver, struct hapax_error *err)
{
	const struct hx_config_target *target = &exporter->config->traces.target;
	const struct hx_tls_options tls_options = {.authority_file = NULL};
	struct hx_http_client_options options = {.connections_max = 1};
	enum hapax_status status = HAPAX_OK;

	if (target->is_tls)
		status = hx_tls_client_context_new(&tls_options, &exporter->tls, err);
	if (status == HAPAX_OK)
		status = hx_reactor_init(&exporter->reactor, hx_net_system(), err);
	if (status != HAPAX_OK)
		return status;
	options.tls = exporter->tls;
	hx_http_client_init(
		&exporter->client, &exporter->reactor, resolver, &target->endpoint, &options);
	status = hx_http_call_init(&exporter->call, &exporter->reactor, &call_ops, exporter);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&exporter->reactor.timers, &exporter->timer, on_timer, exporter);
	return status;
}

enum hapax_status hx_exporter_start(
	struct hx_exporter *exporter, struct hx_config *config, struct hx_resolver *resolver,
	struct hx_logger *log, struct hapax_error *err)
{
	enum hapax_status status;

	if (config->traces.endpoint[0] == '\0')
		return HAPAX_OK;
	exporter->config = hx_config_keep(config);
	exporter->log = log;
	exporter->wake_task = (struct hx_task){.fn = on_wake, .context = exporter};
	exporter->end_task = (struct hx_task){.fn = on_ending, .context = exporter};
	hx_buf_init(&exporter->head, HEAD_MAX);
	hx_buf_init(&exporter->body, BODY_MAX);
	hx_buf_init(&exporter->fields, FIELDS_MAX);
	status = read_fields(exporter, err);
	exporter->notes = hx_alloc_zero(QUEUE_MAX, sizeof(*exporter->notes));
	if (status == HAPAX_OK && exporter->notes == NULL)
		status = hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for traces");
	if (status == HAPAX_OK)
		status = open_client(exporter, resolver, err);
	if (status == HAPAX_OK)
		status = hx_thread_start(
			&exporter->thread, exporter_run, exporter, "hapax-traces", err);
	exporter->is_on = status == HAPAX_OK;
	return status;
}

void hx_exporter_stop(struct hx_exporter *exporter, int64_t wait_ms)
{
	if (!exporter->is_on)
		return;
	atomic_store(&exporter->end_ns, hx_clock_mono_ns() + wait_ms * HX_NS_PER_MS);
	atomic_store(&exporter->is_ending, true);
	hx_reactor_post(&exporter->reactor, &exporter->end_task);
	hx_thread_join(&exporter->thread);
	exporter->is_on = false;
	hx_http_client_close(&exporter->client);
	for (int i = 0; i < LAST_TURNS_MAX && exporter->client.link_count > 0; i++)
		hx_reactor_turn(&exporter->reactor, 0);
	hx_http_client_done(&exporter->client);
	hx_http_call_done(&exporter->call, &exporter->reactor);
	hx_timer_retire(&exporter->reactor.timers, &exporter->timer);
	hx_reactor_done(&exporter->reactor);
	hx_tls_context_free(exporter->tls);
	hx_buf_done(&exporter->head);
	hx_buf_done(&exporter->body);
	hx_buf_done(&exporter->fields);
	hx_free(exporter->notes);
	hx_config_release(exporter->config);
}
