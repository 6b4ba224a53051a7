/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - helpers that the functions of commands share.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "resp/resp_command.h"
#include "resp/resp_job.h"

enum { ERROR_SIZE_MAX = 512 };

bool hx_resp_refuse(struct hx_resp_call *call, const char *text)
{
	/* Drop the operations that it has planned. */
	hx_resp_batch_cut(call->batch, call->entry->first);
	call->entry->count = 0;
	call->entry->finish = NULL;
	(void)hx_resp_put_error(call->text, text);
	return false;
}

bool hx_resp_refuse_format(struct hx_resp_call *call, const char *format, ...)
{
	char text[ERROR_SIZE_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return hx_resp_refuse(call, text);
}

bool hx_resp_refuse_syntax(struct hx_resp_call *call)
{
	return hx_resp_refuse(call, "ERR syntax error");
}

void hx_resp_refuse_arity(struct hx_resp_call *call)
{
	hx_resp_refuse_format(
		call, "ERR wrong number of arguments for '%s' command", call->command->name);
}

bool hx_resp_integer_arg(struct hx_resp_call *call, struct hapax_bytes arg, int64_t *ret_value)
{
	return hx_resp_parse_integer(arg, ret_value) ||
		hx_resp_refuse(call, "ERR value is not an integer or out of range");
}

bool hx_resp_keep(struct hx_resp_call *call, struct hapax_bytes bytes, struct hapax_bytes *ret_copy)
{
	return hx_resp_batch_keep(call->batch, bytes, ret_copy) ||
		hx_resp_refuse(call, "OOM not enough memory for the command");
}

struct hapax_op *hx_resp_add(
	struct hx_resp_call *call, enum hapax_op_type type, struct hapax_bytes key,
	bool wants_record, hx_resp_finish_fn *finish)
{
	struct hapax_op *op;
	struct hapax_bytes copy;

	if (key.size == 0 || key.size > HX_KEY_SIZE_MAX) {
		hx_resp_refuse(call, "ERR a key must be 1 to 1024 bytes long");
		return NULL;
	}
	if (!hx_resp_keep(call, key, &copy))
		return NULL;
	op = hx_resp_batch_add(call->batch, type, wants_record);
	if (op == NULL) {
		hx_resp_refuse(call, "OOM not enough memory for the command");
		return NULL;
	}
	op->key = copy;
	op->tenant = call->session->tenant;
	op->group = call->session->group;
	call->entry->count++;
	call->entry->finish = finish;
	return op;
}

bool hx_resp_set_value(struct hx_resp_call *call, struct hapax_bytes value)
{
	struct hapax_bytes copy;

	if (value.size > call->service->options.value_size_max)
		return hx_resp_refuse_format(
			call, "ERR value exceeds store.max_result (%llu bytes)",
			(unsigned long long)call->service->options.value_size_max);
	if (!hx_resp_keep(call, value, &copy))
		return false;
	hx_resp_batch_set_value(call->batch, copy);
	return true;
}

struct hapax_op *hx_resp_add_step(
	struct hx_resp_answer *answer, enum hapax_op_type type, struct hapax_bytes key,
	hx_resp_finish_fn *finish, struct hapax_bytes *value)
{
	struct hapax_op *op = NULL;
	struct hapax_bytes copy;

	if (hx_resp_batch_keep(answer->next, key, &copy) &&
	    (value == NULL || hx_resp_batch_keep(answer->next, *value, value)))
		op = hx_resp_batch_add(answer->next, type, false);
	if (op == NULL) {
		if (answer->has_step)
			hx_resp_batch_cut(answer->next, answer->entry->first);
		answer->has_step = false;
		(void)hx_resp_put_error(answer->out, "OOM not enough memory for the command");
		return NULL;
	}
	op->key = copy;
	op->tenant = answer->session->tenant;
	op->group = answer->session->group;
	if (!answer->has_step) {
		answer->entry->first = (uint32_t)answer->next->count - 1;
		answer->entry->count = 0;
	}
	answer->entry->count++;
	answer->entry->finish = finish;
	answer->has_step = true;
	return op;
}

static const char *failure_text(enum hapax_status status)
{
	switch (status) {
	case HAPAX_ERR_LIMIT: return "OOM command not allowed when used memory > 'maxmemory'.";
	case HAPAX_ERR_NO_MEMORY: return "OOM not enough memory for the command";
	case HAPAX_ERR_UNAVAILABLE: return "UNAVAILABLE could not reach the store; nothing changed";
	case HAPAX_ERR_UNCERTAIN: return "UNCERTAIN it is unknown whether the command took effect";
	case HAPAX_ERR_FENCED: return "FENCED the token does not hold the key";
	case HAPAX_ERR_FAILED: return "UNAVAILABLE the store failed; nothing changed";
	case HAPAX_OK:
	case HAPAX_ERR_INVALID:
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_UNSUPPORTED:
	case HAPAX_ERR_HANDLER: break;
	}
	return "ERR the store rejected the command; nothing changed";
}

bool hx_resp_put_failure(const struct hx_resp_answer *answer)
{
	const struct hx_resp_job *job = answer->session->job;
	const char *text = NULL;

	if (job != NULL && job->status != HAPAX_OK)
		text = job->status == HAPAX_ERR_UNAVAILABLE
			? "UNAVAILABLE could not reach the store; retry later"
			: "ERR could not read the store";
	for (size_t i = 0; i < answer->count && text == NULL; i++) {
		if (answer->ops[i].status != HAPAX_OK)
			text = failure_text(answer->ops[i].status);
	}
	if (text != NULL)
		(void)hx_resp_put_error(answer->out, text);
	return text != NULL;
}

/* FAILED counts as absent: the work has not succeeded. */
bool hx_resp_exists(const struct hapax_op *op)
{
	return op->record->state != HAPAX_STATE_ABSENT && op->record->state != HAPAX_STATE_FAILED;
}

/* A claimed or parked key exists, but has no value yet. */
bool hx_resp_has_value(const struct hapax_op *op)
{
	return op->record->state == HAPAX_STATE_DONE;
}

void hx_resp_put_value(struct hx_resp_answer *answer, const struct hapax_op *op)
{
	if (hx_resp_has_value(op))
		(void)hx_resp_put_bulk(answer->out, op->record->result.body);
	else
		(void)hx_resp_put_null(answer->out, answer->protocol);
}

void hx_resp_put_busy(struct hx_resp_answer *answer)
{
	(void)hx_resp_put_error(answer->out, "BUSYKEY key is claimed");
}

void hx_resp_tell_changed(
	const struct hx_resp_answer *answer, const char *action, struct hapax_bytes key)
{
	const struct hx_resp_session *session = answer->session;
	const struct hx_resp_service_options *options = &session->service->options;
	const struct hx_resp_change change = {
		.action = action,
		.user = session->user != NULL ? session->user->name : hx_bytes(NULL, 0),
		.tenant = session->tenant,
		.group = session->group,
		.key = key};

	if (options->changed != NULL)
		options->changed(&change, options->context);
}

void hx_resp_finish_applied(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];

	if (op->outcome == HAPAX_OUTCOME_BUSY)
		hx_resp_put_busy(answer);
	else
		(void)hx_resp_put_integer(answer->out, op->outcome == HAPAX_OUTCOME_APPLIED);
}
