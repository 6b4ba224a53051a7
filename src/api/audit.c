/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.c - every administrative change, and GET /audit.
 */
#include "api/audit.h"

#include <errno.h>
#include <string.h>

#include "api/api_request.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/io.h"
#include "observe/logger/logger.h"
#include "wire/record/record_json.h"

enum { LIMIT_DEFAULT = 100, LINE_SIZE_MAX = 16 * 1024 };

/* In the order of the table's parameters. */
enum { VALUE_LIMIT, VALUE_BEFORE };

/* A line to be written to the file. */
struct append {
	struct hx_api_job job;
	struct hx_api *api;
	enum hapax_status status;
	struct hapax_error err;
	size_t size;
	char line[];
};

void hx_audit_done(struct hx_audit *audit)
{
	for (size_t i = 0; audit->lines != NULL && i < HX_AUDIT_ENTRIES_MAX; i++)
		hx_free(audit->lines[i]);
	hx_free(audit->lines);
}

/* Threads: the worker's. Appends at the current end of the file, which may have been rotated. */
static void append_line(struct hx_api_job *job)
{
	struct append *append = (struct append *)(void *)job;
	const struct hx_io *io = hx_io_system();
	const char *path = append->api->options.audit_path;
	struct hx_io_stat stat;
	int file = io->ops->open(io->context, path, HX_IO_WRITE | HX_IO_CREATE, 0600);
	int result = file;

	if (file >= 0) {
		result = io->ops->stat(io->context, file, &stat);
		if (result == 0)
			result = hx_io_write_full(io, file, append->line, append->size, stat.size);
		if (result == 0)
			result = io->ops->fdatasync(io->context, file);
		(void)io->ops->close(io->context, file);
	}
	append->status = result < 0 ? HAPAX_ERR_UNAVAILABLE : HAPAX_OK;
}

/* Log a line that could not be written to the audit file. */
static void say_lost(struct hx_api *api, struct hapax_bytes line)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("path", api->options.audit_path), HX_LOGGER_BYTES("entry", line)};

	hx_logger_always(
		api->options.log, HX_LOGGER_ERROR, "audit entry could not be written", fields, 2);
}

static void on_appended(struct hx_api_job *job)
{
	struct append *append = (struct append *)(void *)job;

	/* The worker stops with the daemon: waiting callers are no longer blocked. */
	if (job->was_refused)
		append_line(job);
	if (append->status != HAPAX_OK)
		say_lost(append->api, hx_bytes(append->line, append->size - 1));
	hx_free(append);
}

static void write_file(struct hx_api *api, struct hapax_bytes line)
{
	struct append *job = hx_alloc_zero(1, sizeof(*job) + line.size + 1);

	if (job == NULL) {
		say_lost(api, line);
		return;
	}
	job->api = api;
	job->job.work = append_line;
	job->job.done = on_appended;
	job->size = line.size + 1;
	memcpy(job->line, line.data, line.size);
	job->line[line.size] = '\n';
	if (hx_api_worker_ask(&api->worker, &job->job, NULL) != HAPAX_OK) {
		say_lost(api, line);
		hx_free(job);
	}
}

/* A key may be a secret: the logger's settings decide how to show it. */
static void write_log(
	struct hx_api *api, const char *who, const char *client, const struct hx_audit_entry *entry)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("who", who),
		HX_LOGGER_TEXT(client[0] != '\0' ? "client" : NULL, client),
		HX_LOGGER_TEXT("action", entry->action),
		HX_LOGGER_TEXT("outcome", entry->outcome),
		HX_LOGGER_BYTES(entry->tenant.size > 0 ? "tenant" : NULL, entry->tenant),
		HX_LOGGER_BYTES(entry->group.size > 0 ? "group" : NULL, entry->group),
		HX_LOGGER_KEY(entry->key.size > 0 ? "idempotency_key" : NULL, entry->key),
		HX_LOGGER_TEXT(
			entry->before != NULL ? "before" : NULL,
			entry->before != NULL ? hapax_state_name(entry->before->state) : NULL),
		HX_LOGGER_TEXT(entry->after != NULL ? "after" : NULL, entry->after),
		HX_LOGGER_BYTES(entry->detail.size > 0 ? "detail" : NULL, entry->detail),
	};

	/* Neither further changes nor a quieter log level may hide who made a change. */
	hx_logger_always(api->options.log, HX_LOGGER_INFO, "audit", fields, HX_COUNT(fields));
}

static void write_entry(
	struct hx_api *api, const char *who, const char *client, const struct hx_audit_entry *entry,
	struct hapax_buf *out)
{
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_unsigned(&json, "number", api->audit.number);
	hx_json_write_time(&json, "at", hx_api_now_ms(api));
	hx_json_write_text(&json, "who", who);
	if (client[0] != '\0')
		hx_json_write_text(&json, "client", client);
	hx_json_write_text(&json, "action", entry->action);
	hx_json_write_text(&json, "outcome", entry->outcome);
	if (entry->tenant.size > 0) {
		hx_json_write_any(&json, "tenant", entry->tenant);
		hx_json_write_any(&json, "group", entry->group);
	}
	if (entry->key.size > 0)
		hx_json_write_any(&json, "key", entry->key);
	if (entry->before != NULL) {
		hx_json_write_begin(&json, "before", '{');
		hx_record_write_json(&json, entry->before, 0);
		hx_json_write_end(&json, '}');
	}
	if (entry->after != NULL)
		hx_json_write_text(&json, "after", entry->after);
	if (entry->detail.size > 0)
		hx_json_write_raw(&json, "detail", entry->detail);
	hx_json_write_end(&json, '}');
	if (json.status != HAPAX_OK)
		hx_buf_clear(out);
}

static void audit_keep(struct hx_audit *audit, struct hapax_bytes line)
{
	char *copy = hx_alloc(line.size + 1);
	char **place;

	if (audit->lines == NULL)
		audit->lines = hx_alloc_zero(HX_AUDIT_ENTRIES_MAX, sizeof(audit->lines[0]));
	if (audit->lines == NULL || copy == NULL) {
		hx_free(copy);
		return;
	}
	memcpy(copy, line.data, line.size);
	copy[line.size] = '\0';
	place = &audit->lines[audit->number % HX_AUDIT_ENTRIES_MAX];
	hx_free(*place);
	*place = copy;
}

void hx_audit_add(
	struct hx_api *api, const char *who, const char *client, const struct hx_audit_entry *entry)
{
	const char *path = api->options.audit_path;
	struct hapax_buf line;

	hx_buf_init(&line, LINE_SIZE_MAX);
	api->audit.number++;
	write_entry(api, who, client, entry, &line);
	if (line.size > 0)
		audit_keep(&api->audit, hapax_buf_bytes(&line));
	if (path == NULL || path[0] == '\0' || line.size == 0)
		write_log(api, who, client, entry);
	else
		write_file(api, hapax_buf_bytes(&line));
	hx_buf_done(&line);
}

void hx_api_audit_request(struct hx_api_request *request, const struct hx_audit_entry *entry)
{
	const struct hx_http_exchange *exchange = request->exchange;

	hx_audit_add(
		request->api, request->caller.who,
		exchange->origin[0] != '\0' ? exchange->origin : exchange->client, entry);
}

void hx_api_audit_detail(
	struct hx_api_request *request, const char *action, const char *outcome,
	hx_audit_members_fn *members)
{
	struct hapax_buf detail;
	struct hx_json_write json;

	hx_buf_init(&detail, HX_AUDIT_ENTRY_SIZE_MAX);
	hx_json_write_init(&json, &detail);
	hx_json_write_begin(&json, NULL, '{');
	members(&json, request);
	hx_json_write_end(&json, '}');
	if (json.status != HAPAX_OK)
		hx_buf_clear(&detail);
	hx_api_audit_request(
		request,
		&(struct hx_audit_entry){
			.action = action, .outcome = outcome, .detail = hapax_buf_bytes(&detail)});
	hx_buf_done(&detail);
}

void hx_api_audit(struct hx_api *api, const char *who, const char *action, const char *outcome)
{
	hx_audit_add(api, who, "", &(struct hx_audit_entry){.action = action, .outcome = outcome});
}

/* Newest first. */
void hx_api_get_audit(struct hx_api_request *request)
{
	const struct hx_audit *audit = &request->api->audit;
	const struct hx_api_value *values = request->values;
	uint64_t limit =
		values[VALUE_LIMIT].is_given ? (uint64_t)values[VALUE_LIMIT].number : LIMIT_DEFAULT;
	uint64_t from = audit->number;
	uint64_t oldest =
		audit->number > HX_AUDIT_ENTRIES_MAX ? audit->number - HX_AUDIT_ENTRIES_MAX : 0;
	struct hx_json_write json;

	if (values[VALUE_BEFORE].is_given && (uint64_t)values[VALUE_BEFORE].number <= from)
		from = (uint64_t)values[VALUE_BEFORE].number - 1;
	hx_api_json(request, &json);
	hx_json_write_begin(&json, "entries", '[');
	for (uint64_t n = from; n > oldest && limit > 0 && audit->lines != NULL; n--, limit--) {
		const char *line = audit->lines[n % HX_AUDIT_ENTRIES_MAX];

		if (line != NULL)
			hx_json_write_raw(&json, NULL, hapax_bytes_from_text(line));
	}
	hx_json_write_end(&json, ']');
	hx_json_write_unsigned(&json, "total", audit->number);
	hx_api_reply_json(request, &json);
}
