/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ledger.c - the store as one run sees it.
 */
#include "cli/run/run_ledger.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/owner.h"
#include "base/stream.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"
#include "cli/run/run_signal.h"

enum {
	/* Pause between retries of an operation that the reopened store refused. */
	REPEAT_MS = 200,
	/* A full store gets this fraction of a lease to accept a result with its body. */
	SHORTEN_PART = 3,
};

/* A lease continues while the machine is suspended, and so does this clock. */
static int64_t boot_ms(void)
{
	const struct hapax_clock *clock = hapax_clock_system();

	return clock->boot_ms(clock->context);
}

/* Called from any thread. A full pipe wakes as well as one byte. */
static void wake(void *context)
{
	const struct hx_cmd_run_ledger *ledger = context;

	(void)hx_stream_write(ledger->wake[1], "", 1);
}

static int make_processor(struct hx_cmd_run_ledger *ledger)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_error err;

	options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	options.owner = ledger->owner;
	options.wake = wake;
	options.wake_context = ledger;
	options.run.lease_ms = ledger->plan->lease_ms;
	options.run.ttl_ms = ledger->inv->settings.ttl_ms;
	options.run.max_run_ms = HAPAX_MAX_RUN_NONE;
	options.run.result_size_max = ledger->plan->result_size_max;
	options.run.on_lapse = ledger->plan->on_lapse;
	if (hapax_processor_new(ledger->store, &options, &ledger->processor, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	return hx_report_error(ledger->inv->command->name, &err);
}

int hx_cmd_run_ledger_open(
	struct hx_cmd_run_ledger *ledger, struct hx_invocation *inv,
	const struct hx_cmd_run_plan *plan)
{
	int code;

	*ledger = (struct hx_cmd_run_ledger){
		.inv = inv,
		.plan = plan,
		.signal_fd = -1,
		.wake = {-1, -1},
		.due_ns = INT64_MAX,
	};
	hx_buf_init(&ledger->buf, HX_RECORD_SIZE_MAX);
	hx_owner_text(ledger->owner);
	if (hx_stream_pipe(ledger->wake, HX_STREAM_READ_NOWAIT | HX_STREAM_WRITE_NOWAIT) != 0) {
		hx_report(inv->command->name, "could not create a pipe");
		return HX_EXIT_OS;
	}
	code = hx_settings_open(inv, HX_OPEN_CREATE, &ledger->store);
	if (code == HX_EXIT_OK)
		hx_settings_note_loss(inv, ledger->store);
	return code == HX_EXIT_OK ? make_processor(ledger) : code;
}

/* A run that we left before it ended still uses all of this; the process ends anyway. */
static bool is_in_use(const struct hx_cmd_run_ledger *ledger)
{
	return ledger->run != NULL && !ledger->has_ended;
}

void hx_cmd_run_ledger_leave(struct hx_cmd_run_ledger *ledger)
{
	if (is_in_use(ledger))
		return;
	hapax_processor_free(ledger->processor);
	hapax_store_close(ledger->store);
	ledger->processor = NULL;
	ledger->store = NULL;
}

void hx_cmd_run_ledger_close(struct hx_cmd_run_ledger *ledger)
{
	if (is_in_use(ledger))
		return;
	hx_cmd_run_ledger_leave(ledger);
	hx_buf_done(&ledger->buf);
	hx_stream_close(ledger->wake[0]);
	hx_stream_close(ledger->wake[1]);
}

/* An operation on our key. */
static struct hapax_op make_op(const struct hx_cmd_run_ledger *ledger, enum hapax_op_type type)
{
	return (struct hapax_op){
		.type = type,
		.tenant = ledger->inv->settings.tenant,
		.group = ledger->inv->settings.group,
		.key = ledger->plan->key,
	};
}

static enum hapax_status look_in(
	struct hx_cmd_run_ledger *ledger, struct hapax_op *op, struct hapax_error *err)
{
	*op = make_op(ledger, HAPAX_OP_LOOKUP);
	op->record = &ledger->record;
	op->buf = &ledger->buf;
	return hapax_store_run(ledger->store, op, 1, err);
}

enum hapax_status hx_cmd_run_ledger_look(struct hx_cmd_run_ledger *ledger, struct hapax_error *err)
{
	return look_in(ledger, &ledger->seen, err);
}

/* Copy the borrowed bytes of an answer. Without memory: empty. */
static struct hapax_bytes run_ledger_keep(
	struct hx_cmd_run_ledger *ledger, struct hapax_bytes bytes)
{
	size_t at = ledger->buf.size;

	if (bytes.size == 0 || hx_buf_append(&ledger->buf, bytes.data, bytes.size) != HAPAX_OK)
		return (struct hapax_bytes){NULL, 0};
	return (struct hapax_bytes){ledger->buf.data + at, bytes.size};
}

static void keep_answer(struct hx_cmd_run_ledger *ledger, const struct hapax_answer *answer)
{
	const struct hapax_result *result = &answer->result;

	ledger->seen = make_op(ledger, HAPAX_OP_CLAIM);
	ledger->seen.record = &ledger->record;
	ledger->seen.outcome = answer->outcome;
	ledger->seen.token = answer->token;
	ledger->seen.attempt = answer->attempt;
	ledger->seen.first_seen_ms = answer->first_seen_ms;
	ledger->seen.expires_ms = answer->expires_ms;
	ledger->seen.lease_left_ms = answer->lease_left_ms;
	ledger->record = (struct hapax_record){.token = answer->token, .result = *result};
	memcpy(ledger->record.attempt_id, answer->attempt_id, sizeof(answer->attempt_id));
	hx_buf_clear(&ledger->buf);
	/* Reserve all at once, so that bytes already kept do not move. */
	if (hx_buf_reserve(
		    &ledger->buf,
		    answer->owner.size + answer->error.size + result->headers.size +
			    result->body.size) != HAPAX_OK) {
		ledger->record.result.headers = (struct hapax_bytes){NULL, 0};
		ledger->record.result.body = (struct hapax_bytes){NULL, 0};
		return;
	}
	ledger->record.owner = run_ledger_keep(ledger, answer->owner);
	ledger->record.error = run_ledger_keep(ledger, answer->error);
	ledger->record.result.headers = run_ledger_keep(ledger, result->headers);
	ledger->record.result.body = run_ledger_keep(ledger, result->body);
}

/* Called within tick. */
static void step(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct hx_cmd_run_ledger *ledger = context;

	switch (step) {
	case HAPAX_STEP_WAIT:
	case HAPAX_STEP_OVERDUE: break;
	case HAPAX_STEP_RUN:
		ledger->run = run;
		ledger->token = answer->token;
		ledger->attempt = answer->attempt;
		keep_answer(ledger, answer);
		ledger->seen.outcome = HAPAX_OUTCOME_ACQUIRED;
		break;
	case HAPAX_STEP_LAPSED: ledger->is_lapsed = true; break;
	case HAPAX_STEP_FENCED: ledger->is_fenced = true; break;
	case HAPAX_STEP_UNSTORED:
		ledger->is_unstored = true;
		ledger->shorten_at_ns = hx_stream_after_ms(ledger->plan->lease_ms / SHORTEN_PART);
		break;
	case HAPAX_STEP_END:
		ledger->has_ended = true;
		ledger->end_status = answer->status;
		if (ledger->run == NULL)
			keep_answer(ledger, answer);
		else
			ledger->seen.expires_ms = answer->expires_ms;
		break;
	}
}

void hx_cmd_run_ledger_tick(struct hx_cmd_run_ledger *ledger)
{
	char bytes[16];
	int64_t due_ms, now_ms;

	while (hx_stream_read(ledger->wake[0], bytes, sizeof(bytes)) > 0)
		;
	due_ms = hapax_processor_tick(ledger->processor);
	if (due_ms == HAPAX_TIME_NEVER) {
		ledger->due_ns = INT64_MAX;
		return;
	}
	now_ms = boot_ms();
	ledger->due_ns = hx_stream_after_ms(due_ms > now_ms ? due_ms - now_ms : 1);
}

/* Did a signal ask us to end? */
static bool is_asked_to_go(struct hx_cmd_run_ledger *ledger)
{
	if (ledger->asked == 0)
		ledger->asked = hx_cmd_run_signal_asked();
	return ledger->asked != 0;
}

/* The core returns a status; the message is ours. */
static const char *message_of(enum hapax_status status)
{
	switch (status) {
	case HAPAX_ERR_NO_MEMORY: return "not enough memory";
	case HAPAX_ERR_LIMIT: return "the store is full or a limit was reached";
	case HAPAX_ERR_UNAVAILABLE: return "the store did not answer in time";
	case HAPAX_ERR_UNCERTAIN: return "the store did not confirm the operation";
	case HAPAX_ERR_FENCED: return "the token no longer holds the key";
	case HAPAX_ERR_CORRUPT: return "stored data is corrupt";
	case HAPAX_ERR_UNSUPPORTED:
		return "operation not supported by this store, or not allowed without an API token";
	case HAPAX_ERR_FAILED: return "the store stopped after an I/O error";
	case HAPAX_OK:
	case HAPAX_ERR_INVALID:
	case HAPAX_ERR_HANDLER: break;
	}
	return "the store rejected the operation";
}

static enum hapax_status describe(enum hapax_status status, struct hapax_error *err)
{
	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(err, status, 0, "%s", message_of(status));
}

/* Is the record still that of our claim? */
static enum hapax_status read_claim(struct hx_cmd_run_ledger *ledger, struct hapax_error *err)
{
	struct hapax_op op;
	enum hapax_status status = look_in(ledger, &op, err);

	if (status != HAPAX_OK)
		return status;
	if (op.outcome != HAPAX_OUTCOME_FOUND)
		return hx_error_set(
			err, HAPAX_ERR_FENCED, 0,
			"the record of the key was deleted before this run started");
	if (op.token != ledger->token)
		return hx_error_set(
			err, HAPAX_ERR_FENCED, 0, "another run took over before this run started");
	ledger->seen.record = &ledger->record;
	return HAPAX_OK;
}

enum hapax_status hx_cmd_run_ledger_give_back(
	struct hx_cmd_run_ledger *ledger, const char *why, struct hapax_error *err)
{
	bool parks = ledger->record.on_lapse == HAPAX_ON_LAPSE_PARK;
	struct hapax_op op = make_op(ledger, parks ? HAPAX_OP_PARK : HAPAX_OP_RELEASE);

	op.token = ledger->record.token;
	op.error = hapax_bytes_from_text(why);
	return hapax_store_run(ledger->store, &op, 1, err);
}

/* By our own clock the lease has lapsed. Renew it, and learn whether it is still ours. */
static enum hapax_status renew_first(struct hx_cmd_run_ledger *ledger, struct hapax_error *err)
{
	int64_t end_ns = hx_stream_after_ms(ledger->plan->lease_ms);

	for (;;) {
		struct pollfd wake = {.fd = ledger->wake[0], .events = POLLIN};

		hx_cmd_run_ledger_tick(ledger);
		if (ledger->is_fenced || ledger->has_ended)
			return hx_error_set(
				err, HAPAX_ERR_FENCED, 0,
				"another run took over before this run started");
		if (hapax_run_may_begin(ledger->run)) {
			ledger->is_lapsed = false;
			return HAPAX_OK;
		}
		if (hx_clock_mono_ns() >= end_ns)
			return hx_error_set(
				err, HAPAX_ERR_FENCED, 0,
				"the lease lapsed before the command could start, and could "
				"not be renewed");
		(void)hx_stream_wait(&wake, 1, ledger->due_ns < end_ns ? ledger->due_ns : end_ns);
	}
}

enum hapax_status hx_cmd_run_ledger_confirm(
	struct hx_cmd_run_ledger *ledger, struct hapax_error *err)
{
	enum hapax_status status;

	/* Before this no other run can have taken over, whatever the store's clock did. */
	if (boot_ms() - ledger->claimed_ms < ledger->plan->lease_ms / 3)
		return HAPAX_OK;
	status = read_claim(ledger, err);
	/* The record may be old by now. The lease says how long no run could take over. */
	if (status == HAPAX_OK && !hapax_run_may_begin(ledger->run))
		status = renew_first(ledger, err);
	return status;
}

enum hx_cmd_run_standing hx_cmd_run_ledger_standing(struct hx_cmd_run_ledger *ledger)
{
	struct hapax_op op;

	/* A completed record may have expired by now. */
	if (ledger->is_completed)
		return HX_RUN_STANDING_COMPLETED;
	if (ledger->store == NULL || look_in(ledger, &op, NULL) != HAPAX_OK)
		return HX_RUN_STANDING_UNKNOWN;
	if (op.outcome != HAPAX_OUTCOME_FOUND)
		return HX_RUN_STANDING_GONE;
	if (op.token != ledger->token)
		return HX_RUN_STANDING_TAKEN;
	ledger->is_completed = ledger->record.state == HAPAX_STATE_DONE;
	return ledger->is_completed ? HX_RUN_STANDING_COMPLETED : HX_RUN_STANDING_OURS;
}

/*
 * A handle that saw an I/O error stops answering; a new one may work. Close the old one first,
 * because some stores have one owner. Our run has ended, so the core can be closed too.
 */
static void reopen(struct hx_cmd_run_ledger *ledger)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	hx_cmd_run_ledger_leave(ledger);
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING | HAPAX_STORE_MUST_EXIST;
	options.result_size_max = ledger->inv->settings.result_size_max;
	(void)hapax_store_open(ledger->inv->settings.store_url, &options, &ledger->store, NULL);
}

static enum hapax_op_type type_of(
	const struct hx_cmd_run_ledger *ledger, enum hapax_run_outcome outcome)
{
	if (outcome == HAPAX_RUN_OK || outcome == HAPAX_RUN_DEFINITIVE)
		return HAPAX_OP_COMPLETE;
	if (outcome == HAPAX_RUN_AMBIGUOUS && ledger->plan->on_lapse == HAPAX_ON_LAPSE_PARK)
		return HAPAX_OP_PARK;
	return HAPAX_OP_RELEASE;
}

static bool is_settled(enum hapax_status status)
{
	return status == HAPAX_OK || status == HAPAX_ERR_FENCED || status == HAPAX_ERR_INVALID ||
		status == HAPAX_ERR_UNSUPPORTED;
}

/* Sleep. False: the deadline has passed, or we are asked to end. */
static bool may_repeat(struct hx_cmd_run_ledger *ledger, int64_t end_ns)
{
	struct pollfd signals = {.fd = ledger->signal_fd, .events = POLLIN};
	int64_t until_ns = hx_stream_after_ms(REPEAT_MS);

	if (until_ns >= end_ns)
		return false;
	(void)hx_stream_wait(&signals, 1, until_ns);
	return !is_asked_to_go(ledger);
}

/* When our lease ends, by the store's clock. Worst case: it has just begun. */
static int64_t lease_end_ns(struct hx_cmd_run_ledger *ledger)
{
	struct hapax_op op;

	if (ledger->store == NULL || look_in(ledger, &op, NULL) != HAPAX_OK)
		return hx_stream_after_ms(ledger->plan->lease_ms);
	return hx_stream_after_ms(op.lease_left_ms);
}

/* No room for the output: it matters more that the key is marked done. */
static enum hapax_status complete_without_body(
	struct hx_cmd_run_ledger *ledger, const struct hapax_op *complete, struct hapax_error *err)
{
	struct hapax_result result = *complete->result;
	struct hapax_op op = *complete;
	enum hapax_status status;

	result.omitted_bytes = result.body.size > 0 ? result.body.size : result.omitted_bytes;
	result.body = (struct hapax_bytes){NULL, 0};
	result.headers = (struct hapax_bytes){NULL, 0};
	op.result = &result;
	status = hapax_store_run(ledger->store, &op, 1, err);
	ledger->is_shortened = ledger->is_shortened || status == HAPAX_OK;
	return status;
}

/* Apply op; a result that does not fit is stored without its body. */
static enum hapax_status apply(
	struct hx_cmd_run_ledger *ledger, const struct hapax_op *op, struct hapax_error *err)
{
	struct hapax_op tried = *op;
	enum hapax_status status = hapax_store_run(ledger->store, &tried, 1, err);

	if (status == HAPAX_ERR_LIMIT && op->result != NULL)
		status = complete_without_body(ledger, op, err);
	return status;
}

/*
 * The core offers the whole result until the lease ends. If the store stayed full, another run
 * could take over before a shorter result was tried. If both arrive, the second finds the key done
 * with our token, which is just as good.
 */
static void shorten(struct hx_cmd_run_ledger *ledger, const struct hapax_op *op)
{
	ledger->shorten_at_ns = INT64_MAX;
	if (op != NULL && op->result != NULL && apply(ledger, op, NULL) != HAPAX_OK)
		ledger->shorten_at_ns =
			hx_stream_after_ms(ledger->plan->lease_ms / SHORTEN_PART / 2 + 1);
}

/*
 * Drive the core until the run may begin, or until it ends with op, which the core then asks for.
 * False: we were asked to end.
 */
static bool drive(struct hx_cmd_run_ledger *ledger, const struct hapax_op *op)
{
	for (;;) {
		struct pollfd fds[] = {
			{.fd = ledger->wake[0], .events = POLLIN},
			{.fd = ledger->is_unstored ? ledger->signal_fd : -1, .events = POLLIN},
		};
		int64_t next_ns;

		hx_cmd_run_ledger_tick(ledger);
		if (ledger->has_ended || (op == NULL && ledger->run != NULL))
			return true;
		next_ns = ledger->due_ns < ledger->shorten_at_ns ? ledger->due_ns
								 : ledger->shorten_at_ns;
		(void)hx_stream_wait(fds, HX_COUNT(fds), next_ns);
		if (ledger->is_unstored && is_asked_to_go(ledger))
			return false;
		if (hx_clock_mono_ns() >= ledger->shorten_at_ns)
			shorten(ledger, op);
	}
}

/*
 * The handle has failed: retry with a new one until the lease ends. With our token, repeats do no
 * harm. Once an answer was lost, only a success settles the outcome.
 */
static enum hapax_status settle(
	struct hx_cmd_run_ledger *ledger, const struct hapax_op *op, enum hapax_status status,
	struct hapax_error *err)
{
	bool is_uncertain = false;
	int64_t end_ns;

	reopen(ledger);
	end_ns = lease_end_ns(ledger);
	for (;;) {
		is_uncertain = is_uncertain || status == HAPAX_ERR_UNCERTAIN;
		if (ledger->store != NULL)
			status = apply(ledger, op, err);
		if (is_settled(status))
			return status;
		if (!may_repeat(ledger, end_ns))
			return is_uncertain ? describe(HAPAX_ERR_UNCERTAIN, err) : status;
		reopen(ledger);
	}
}

enum hapax_status hx_cmd_run_ledger_finish(
	struct hx_cmd_run_ledger *ledger, enum hapax_run_outcome outcome,
	const struct hapax_result *result, const char *why, struct hapax_error *err)
{
	struct hapax_op op = make_op(ledger, type_of(ledger, outcome));
	struct hapax_result kept = {.kind = HAPAX_RESULT_NONE};
	enum hapax_status status;

	if (result != NULL)
		kept = *result;
	kept.result_class =
		outcome == HAPAX_RUN_DEFINITIVE ? HAPAX_RESULT_DEFINITIVE : HAPAX_RESULT_OK;
	status = hapax_run_finish(ledger->run, outcome, &kept, hapax_bytes_from_text(why), err);
	if (status != HAPAX_OK)
		return status;
	op.token = ledger->token;
	op.error = hapax_bytes_from_text(why);
	op.result = op.type == HAPAX_OP_COMPLETE ? &kept : NULL;
	if (!drive(ledger, &op))
		return describe(HAPAX_ERR_UNCERTAIN, err);
	status = describe(ledger->end_status, err);
	if (status == HAPAX_ERR_LIMIT && op.result != NULL)
		status = complete_without_body(ledger, &op, err);
	if (status == HAPAX_ERR_FAILED || status == HAPAX_ERR_UNCERTAIN)
		return settle(ledger, &op, status, err);
	return status;
}

enum hapax_status hx_cmd_run_ledger_claim(struct hx_cmd_run_ledger *ledger, struct hapax_error *err)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	enum hapax_status status;

	request.tenant = ledger->inv->settings.tenant;
	request.group = ledger->inv->settings.group;
	request.key = ledger->plan->key;
	request.fingerprint = ledger->plan->has_fingerprint ? ledger->plan->fingerprint : NULL;
	request.step = step;
	request.context = ledger;
	ledger->run = NULL;
	ledger->is_lapsed = false;
	ledger->is_fenced = false;
	ledger->is_completed = false;
	ledger->is_unstored = false;
	ledger->shorten_at_ns = INT64_MAX;
	ledger->has_ended = false;
	ledger->claimed_ms = boot_ms();
	status = hapax_processor_begin(ledger->processor, &request, 1, err);
	if (status != HAPAX_OK)
		return status;
	(void)drive(ledger, NULL);
	return ledger->run == NULL ? describe(ledger->end_status, err) : HAPAX_OK;
}
