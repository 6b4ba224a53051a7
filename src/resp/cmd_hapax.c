/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_hapax.c - HAPAX.CLAIM and related commands: claims for every language with a Redis client.
 * Options follow the operands, in any order; times are milliseconds.
 */
#include <string.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/hex.h"
#include "base/limits.h"
#include "resp/resp_command.h"
#include "resp/commands.h"

/* ---------------------------------------------------------------- replies */

static void put_number(struct hx_resp_answer *answer, const char *name, int64_t value)
{
	(void)hx_resp_put_text(answer->out, name);
	(void)hx_resp_put_integer(answer->out, value);
}

static void put_bytes(struct hx_resp_answer *answer, const char *name, struct hapax_bytes bytes)
{
	(void)hx_resp_put_text(answer->out, name);
	(void)hx_resp_put_bulk(answer->out, bytes);
}

static void put_word(struct hx_resp_answer *answer, const char *name, const char *word)
{
	put_bytes(answer, name, hapax_bytes_from_text(word));
}

/* -1: never. */
static int64_t time_or_never(int64_t ms)
{
	return ms == HAPAX_TIME_NEVER ? -1 : ms;
}

/* The answer to a claim or a check: a map of words. */
static void finish_claim(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	bool has_result = op->outcome == HAPAX_OUTCOME_REPLAY;
	bool has_token = op->outcome == HAPAX_OUTCOME_ACQUIRED;

	(void)hx_resp_put_map(answer->out, 5U + has_token + has_result, answer->protocol);
	put_word(answer, "outcome", hapax_outcome_name(op->outcome));
	if (has_token)
		put_number(answer, "token", (int64_t)op->token);
	put_number(answer, "attempt", op->attempt);
	put_number(answer, "first_seen_ms", op->first_seen_ms);
	put_number(answer, "expires_ms", time_or_never(op->expires_ms));
	put_number(answer, "lease_left_ms", op->lease_left_ms);
	if (has_result)
		put_bytes(answer, "result", op->record->result.body);
}

void hx_resp_finish_hapax_lookup(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	const struct hapax_record *record = op->record;
	struct hapax_cause event;
	bool has_event;

	if (op->outcome != HAPAX_OUTCOME_FOUND) {
		(void)hx_resp_put_null(answer->out, answer->protocol);
		return;
	}
	has_event = hapax_cause_read(record->cause, &event) != 0;
	(void)hx_resp_put_map(answer->out, has_event ? 14 : 10, answer->protocol);
	put_word(answer, "state", hapax_state_name(record->state));
	put_word(answer, "origin", hapax_origin_name(record->origin));
	put_number(answer, "token", (int64_t)record->token);
	put_number(answer, "attempt", record->attempt);
	put_number(answer, "first_seen_ms", record->first_seen_ms);
	put_number(answer, "expires_ms", time_or_never(record->expires_ms));
	put_number(answer, "lease_left_ms", op->lease_left_ms);
	put_bytes(answer, "owner", record->owner);
	put_bytes(answer, "error", record->error);
	put_bytes(answer, "result", record->result.body);
	if (!has_event)
		return;
	put_bytes(answer, "event_id", event.id);
	put_bytes(answer, "event_type", event.type);
	put_bytes(answer, "event_source", event.source);
	put_number(answer, "event_time_ms", event.time_ms);
}

static void finish_ok(struct hx_resp_answer *answer)
{
	if (answer->ops[0].outcome == HAPAX_OUTCOME_APPLIED)
		(void)hx_resp_put_simple(answer->out, "OK");
	else
		(void)hx_resp_put_error(answer->out, "FENCED the token does not hold the key");
}

/* ---------------------------------------------------------------- options */

enum option {
	OPTION_FINGERPRINT = 1 << 0,
	OPTION_ATTEMPT = 1 << 1,
	OPTION_LEASE = 1 << 2,
	OPTION_TTL = 1 << 3,
	OPTION_ON_LAPSE = 1 << 4,
	OPTION_OWNER = 1 << 5,
	OPTION_ERROR = 1 << 6,
	OPTION_RESULT = 1 << 7,
	OPTION_CLASS = 1 << 8,
};

struct options {
	unsigned given;
	struct hapax_bytes fingerprint; /* 32 bytes, copied */
	struct hapax_bytes attempt_id;  /* 16 bytes, copied */
	int64_t lease_ms;
	int64_t ttl_ms;
	enum hapax_on_lapse on_lapse;
	struct hapax_bytes owner; /* copied, as error */
	struct hapax_bytes error;
	struct hapax_bytes result;
	enum hapax_result_class result_class;
};

static const struct {
	const char *word;
	enum option option;
} words[] = {
	{"FINGERPRINT", OPTION_FINGERPRINT},
	{"ATTEMPT", OPTION_ATTEMPT},
	{"LEASE", OPTION_LEASE},
	{"TTL", OPTION_TTL},
	{"ON-LAPSE", OPTION_ON_LAPSE},
	{"OWNER", OPTION_OWNER},
	{"ERROR", OPTION_ERROR},
	{"RESULT", OPTION_RESULT},
	{"CLASS", OPTION_CLASS},
};

static bool read_digest(
	struct hx_resp_call *call, struct hapax_bytes text, size_t size,
	struct hapax_bytes *ret_bytes)
{
	unsigned char digest[HAPAX_FINGERPRINT_SIZE];

	if (text.size != 2 * size || !hx_hex_decode(text, digest))
		return hx_resp_refuse(
			call, "ERR a fingerprint must have 64 digits of 0-9a-f, an attempt 32");
	return hx_resp_keep(call, hx_bytes(digest, size), ret_bytes);
}

static bool read_ms(
	struct hx_resp_call *call, struct hapax_bytes text, int64_t max, int64_t *ret_ms)
{
	if (!hx_resp_integer_arg(call, text, ret_ms))
		return false;
	return (*ret_ms > 0 && *ret_ms <= max) ||
		hx_resp_refuse_format(
			call, "ERR invalid time in '%s' command: use 1 to %lld ms",
			call->command->name, (long long)max);
}

/* One of two words. */
static bool read_choice(
	struct hx_resp_call *call, struct hapax_bytes text, const char *zero, const char *one,
	int *ret_index)
{
	*ret_index = hx_resp_is_word(text, one);
	return *ret_index == 1 || hx_resp_is_word(text, zero) || hx_resp_refuse_syntax(call);
}

static bool read_option(
	struct hx_resp_call *call, enum option option, struct hapax_bytes text,
	struct options *options)
{
	int choice = 0;

	switch (option) {
	case OPTION_FINGERPRINT:
		return read_digest(call, text, HAPAX_FINGERPRINT_SIZE, &options->fingerprint);
	case OPTION_ATTEMPT:
		return read_digest(call, text, HAPAX_ATTEMPT_ID_SIZE, &options->attempt_id);
	case OPTION_LEASE: return read_ms(call, text, HX_LEASE_MS_MAX, &options->lease_ms);
	case OPTION_TTL: return read_ms(call, text, HX_TTL_MS_MAX, &options->ttl_ms);
	case OPTION_ON_LAPSE:
		if (!read_choice(call, text, "RETRY", "PARK", &choice))
			return false;
		options->on_lapse = choice ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
		return true;
	case OPTION_CLASS:
		if (!read_choice(call, text, "OK", "DEFINITIVE", &choice))
			return false;
		options->result_class = choice ? HAPAX_RESULT_DEFINITIVE : HAPAX_RESULT_OK;
		return true;
	case OPTION_OWNER: return hx_resp_keep(call, text, &options->owner);
	case OPTION_ERROR: return hx_resp_keep(call, text, &options->error);
	case OPTION_RESULT: options->result = text; return true;
	}
	return false;
}

/* Reads the options from first on; only allowed ones are accepted. False: refused. */
static bool read_options(
	struct hx_resp_call *call, size_t first, unsigned allowed, struct options *options)
{
	for (size_t i = first; i < call->argc; i += 2) {
		unsigned option = 0;

		for (size_t k = 0; k < HX_COUNT(words); k++) {
			if (hx_resp_is_word(call->argv[i], words[k].word))
				option = words[k].option;
		}
		if ((option & allowed) == 0 || i + 1 == call->argc ||
		    (options->given & option) != 0)
			return hx_resp_refuse_syntax(call);
		if (!read_option(call, (enum option)option, call->argv[i + 1], options))
			return false;
		options->given |= option;
	}
	return true;
}

static bool read_token(struct hx_resp_call *call, struct hapax_bytes text, uint64_t *ret_token)
{
	int64_t token;

	if (!hx_resp_integer_arg(call, text, &token))
		return false;
	if (token < 1 || (uint64_t)token > HX_TOKEN_MAX)
		return hx_resp_refuse(call, "ERR a token must be a number above 0 and below 2^53");
	*ret_token = (uint64_t)token;
	return true;
}

/* The settings of a scope apply here unless the command overrides them. */
static void apply_scope(const struct hx_resp_call *call, struct options *options)
{
	const struct hx_resp_service_options *service = &call->service->options;
	const struct hapax_bytes name = HX_BYTES_LIT("default");
	const struct hx_resp_session *session = call->session;
	struct hx_resp_scope scope = {.lease_ms = 0};

	if (service->scope == NULL)
		return;
	service->scope(
		session->tenant.size > 0 ? session->tenant : name,
		session->group.size > 0 ? session->group : name, &scope, service->context);
	if (!(options->given & OPTION_LEASE))
		options->lease_ms = scope.lease_ms;
	if (!(options->given & OPTION_TTL))
		options->ttl_ms = scope.ttl_ms;
	if (!(options->given & OPTION_ON_LAPSE))
		options->on_lapse = scope.on_lapse;
}

/* ---------------------------------------------------------------- commands */

void hx_resp_plan_hapax_claim(struct hx_resp_call *call)
{
	struct options options = {.given = 0};
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op *op;

	if (!read_options(
		    call, 2,
		    OPTION_FINGERPRINT | OPTION_ATTEMPT | OPTION_LEASE | OPTION_TTL |
			    OPTION_ON_LAPSE | OPTION_OWNER,
		    &options))
		return;
	if (!(options.given & OPTION_ATTEMPT)) {
		hapax_attempt_id(attempt_id);
		if (!hx_resp_keep(
			    call, hx_bytes(attempt_id, sizeof(attempt_id)), &options.attempt_id))
			return;
	}
	apply_scope(call, &options);
	op = hx_resp_add(call, HAPAX_OP_CLAIM, call->argv[1], true, finish_claim);
	if (op == NULL)
		return;
	op->attempt_id = options.attempt_id.data;
	op->fingerprint = options.fingerprint.data;
	op->lease_ms = options.lease_ms;
	op->ttl_ms = options.ttl_ms;
	op->on_lapse = options.on_lapse;
	op->owner = options.owner;
}

void hx_resp_plan_hapax_check(struct hx_resp_call *call)
{
	struct options options = {.given = 0};
	struct hapax_op *op;

	if (!read_options(call, 2, OPTION_FINGERPRINT | OPTION_TTL, &options))
		return;
	apply_scope(call, &options);
	op = hx_resp_add(call, HAPAX_OP_CHECK, call->argv[1], true, finish_claim);
	if (op == NULL)
		return;
	op->fingerprint = options.fingerprint.data;
	op->ttl_ms = options.ttl_ms;
}

/* key token [options] */
void hx_resp_plan_hapax_token(struct hx_resp_call *call)
{
	static const unsigned allowed[] = {
		[HAPAX_OP_RENEW] = OPTION_LEASE,
		[HAPAX_OP_COMPLETE] = OPTION_RESULT | OPTION_CLASS,
		[HAPAX_OP_RELEASE] = OPTION_ERROR,
		[HAPAX_OP_PARK] = OPTION_ERROR,
	};
	enum hapax_op_type type = (enum hapax_op_type)call->command->variant;
	struct options options = {.given = 0};
	struct hapax_op *op;
	uint64_t token = 0;

	if (!read_token(call, call->argv[2], &token) ||
	    !read_options(call, 3, allowed[type], &options))
		return;
	if (type == HAPAX_OP_RENEW)
		apply_scope(call, &options);
	op = hx_resp_add(call, type, call->argv[1], false, finish_ok);
	if (op == NULL)
		return;
	op->token = token;
	op->lease_ms = options.lease_ms;
	op->error = options.error;
	if (type != HAPAX_OP_COMPLETE || !hx_resp_set_value(call, options.result))
		return;
	hx_resp_batch_set_class(
		call->batch, (options.given & OPTION_RESULT) != 0, options.result_class);
}

static void finish_forget(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];

	if (op->outcome == HAPAX_OUTCOME_APPLIED)
		hx_resp_tell_changed(
			answer, (op->flags & HAPAX_OP_FORCE) ? "forget.force" : "forget", op->key);
	hx_resp_finish_applied(answer);
}

void hx_resp_plan_hapax_forget(struct hx_resp_call *call)
{
	struct hapax_op *op;

	if (call->argc > 3 || (call->argc == 3 && !hx_resp_is_word(call->argv[2], "FORCE"))) {
		hx_resp_refuse_syntax(call);
		return;
	}
	op = hx_resp_add(call, HAPAX_OP_FORGET, call->argv[1], false, finish_forget);
	if (op != NULL && call->argc == 3)
		op->flags = HAPAX_OP_FORCE;
}

/* ---------------------------------------------------------------- resolve */

enum resolve { RESOLVE_RETRY, RESOLVE_DONE, RESOLVE_DONE_WITH_RESULT };

static void finish_resolved(struct hx_resp_answer *answer)
{
	if (answer->ops[0].outcome == HAPAX_OUTCOME_APPLIED)
		hx_resp_tell_changed(answer, "resolve", answer->ops[0].key);
	finish_ok(answer);
}

/* Uses the token of the record: a claim made in between has a different one. */
static void finish_resolve(struct hx_resp_answer *answer)
{
	const struct hapax_op *op = &answer->ops[0];
	struct hapax_buf *kept = &answer->session->kept;
	struct hapax_bytes value = hapax_buf_bytes(kept);
	bool is_done = answer->entry->value != RESOLVE_RETRY;
	struct hapax_op *step;

	if (op->outcome != HAPAX_OUTCOME_FOUND) {
		(void)hx_resp_put_error(answer->out, "ERR no such record");
		return;
	}
	step = hx_resp_add_step(
		answer, is_done ? HAPAX_OP_COMPLETE : HAPAX_OP_RELEASE, op->key, finish_resolved,
		&value);
	if (step == NULL)
		return;
	step->token = op->record->token;
	if (is_done) {
		hx_resp_batch_set_value(answer->next, value);
		hx_resp_batch_set_class(
			answer->next, answer->entry->value == RESOLVE_DONE_WITH_RESULT,
			HAPAX_RESULT_OK);
	}
	hx_buf_done(kept);
}

/* key RETRY | key DONE [value] */
void hx_resp_plan_hapax_resolve(struct hx_resp_call *call)
{
	struct hapax_buf *kept = &call->session->kept;
	bool is_done = hx_resp_is_word(call->argv[2], "DONE");

	if (call->argc > 4 || (!is_done && call->argc != 3) ||
	    (!is_done && !hx_resp_is_word(call->argv[2], "RETRY"))) {
		hx_resp_refuse_syntax(call);
		return;
	}
	hx_buf_clear(kept);
	if (call->argc == 4 &&
	    (call->argv[3].size > call->service->options.value_size_max ||
	     hx_buf_append(kept, call->argv[3].data, call->argv[3].size) != HAPAX_OK)) {
		hx_resp_refuse(call, "ERR value exceeds store.max_result");
		return;
	}
	(void)hx_resp_add(call, HAPAX_OP_LOOKUP, call->argv[1], true, finish_resolve);
	call->entry->value = !is_done ? RESOLVE_RETRY
		: call->argc == 4     ? RESOLVE_DONE_WITH_RESULT
				      : RESOLVE_DONE;
}
