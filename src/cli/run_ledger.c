/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ledger.c - the store as one run sees it.
 */
#include "cli/run_ledger.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stream.h"
#include "cli/owner.h"
#include "cli/record_out.h"
#include "cli/report.h"
#include "cli/run_signal.h"

static const int64_t ns_per_ms = 1000000;

enum {
	/* A claim that is not answered for certain is settled by the very same call. */
	CLAIMS_MAX = 5,
	/* Between two tries of what the store did not take. */
	REPEAT_MS = 200,
	/* A renewal is tried this often at least, so that two may be lost. */
	RENEWALS_PER_LEASE = 3,
};

static int64_t after_ms(int64_t ns, int64_t ms)
{
	int64_t span, end;

	if (__builtin_mul_overflow(ms, ns_per_ms, &span) || __builtin_add_overflow(ns, span, &end))
		return INT64_MAX;
	return end;
}

int hx_run_ledger_open(
	struct hx_run_ledger *ledger, struct hx_invocation *inv, const struct hx_run_plan *plan)
{
	int failed;

	*ledger = (struct hx_run_ledger){
		.inv = inv,
		.plan = plan,
		.signal_fd = -1,
		.wake = {-1, -1},
	};
	hx_buf_init(&ledger->buf, HX_RECORD_SIZE_MAX);
	hx_owner_text(ledger->owner);
	failed = hx_stream_pipe(ledger->wake, HX_STREAM_READ_NOWAIT | HX_STREAM_WRITE_NOWAIT);
	if (failed) {
		hx_report(inv->command->name, "no pipe was made");
		return HX_EXIT_OS;
	}
	return hx_settings_open(inv, HX_OPEN_CREATE, &ledger->store);
}

/* A renewal in flight must land before the store may be closed. */
static void await_renewal(struct hx_run_ledger *ledger)
{
	while (ledger->is_renewing) {
		struct pollfd wake = {.fd = ledger->wake[0], .events = POLLIN};

		(void)hx_stream_wait(&wake, 1, INT64_MAX);
		hx_run_ledger_renew(ledger);
	}
}

void hx_run_ledger_close(struct hx_run_ledger *ledger)
{
	await_renewal(ledger);
	hapax_store_close(ledger->store);
	hx_buf_done(&ledger->buf);
	hx_stream_close(ledger->wake[0]);
	hx_stream_close(ledger->wake[1]);
}

/* An operation on our key. */
static struct hapax_op make_op(const struct hx_run_ledger *ledger, enum hapax_op_type type)
{
	return (struct hapax_op){
		.type = type,
		.tenant = ledger->inv->settings.tenant,
		.group = ledger->inv->settings.group,
		.key = ledger->plan->key,
	};
}

enum hapax_status hx_run_ledger_look(struct hx_run_ledger *ledger, struct hapax_error *err)
{
	ledger->seen = make_op(ledger, HAPAX_OP_LOOKUP);
	ledger->seen.record = &ledger->record;
	ledger->seen.buf = &ledger->buf;
	return hapax_store_run(ledger->store, &ledger->seen, 1, err);
}

/* From before the request was sent: we believe in it no longer than the store does. */
static void count_lease(struct hx_run_ledger *ledger, int64_t sent_ns)
{
	ledger->lease_ends_ns = after_ms(sent_ns, ledger->plan->lease_ms);
	ledger->renew_at_ns = after_ms(sent_ns, ledger->plan->lease_ms / RENEWALS_PER_LEASE);
}

enum hapax_status hx_run_ledger_claim(struct hx_run_ledger *ledger, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_ERR_UNCERTAIN;
	struct hapax_op *op = &ledger->seen;
	int64_t sent_ns = 0;

	*op = make_op(ledger, HAPAX_OP_CLAIM);
	op->record = &ledger->record;
	op->buf = &ledger->buf;
	op->attempt_id = ledger->attempt_id;
	op->fingerprint = ledger->plan->has_fingerprint ? ledger->plan->fingerprint : NULL;
	op->owner = hapax_bytes_from_text(ledger->owner);
	op->lease_ms = ledger->plan->lease_ms;
	op->ttl_ms = ledger->inv->settings.ttl_ms;
	op->on_lapse = ledger->plan->on_lapse;
	hapax_attempt_id(ledger->attempt_id);
	for (int i = 0; i < CLAIMS_MAX && status == HAPAX_ERR_UNCERTAIN; i++) {
		sent_ns = hx_clock_mono_ns();
		status = hapax_store_run(ledger->store, op, 1, err);
	}
	if (status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_ACQUIRED)
		return status;
	ledger->token = op->token;
	ledger->attempt = op->attempt;
	count_lease(ledger, sent_ns);
	return HAPAX_OK;
}

enum hapax_status hx_run_ledger_give_back(
	struct hx_run_ledger *ledger, const char *why, struct hapax_error *err)
{
	struct hapax_op op = make_op(
		ledger,
		ledger->record.on_lapse == HAPAX_ON_LAPSE_PARK ? HAPAX_OP_PARK : HAPAX_OP_RELEASE);

	op.token = ledger->record.token;
	op.error = hapax_bytes_from_text(why);
	return hapax_store_run(ledger->store, &op, 1, err);
}

enum hapax_status hx_run_ledger_confirm(struct hx_run_ledger *ledger, struct hapax_error *err)
{
	struct hapax_op op = make_op(ledger, HAPAX_OP_RENEW);
	int64_t sent_ns = hx_clock_mono_ns();
	enum hapax_status status;

	if (sent_ns < ledger->renew_at_ns)
		return HAPAX_OK;
	op.token = ledger->token;
	op.lease_ms = ledger->plan->lease_ms;
	status = hapax_store_run(ledger->store, &op, 1, err);
	if (status == HAPAX_OK)
		count_lease(ledger, sent_ns);
	return status;
}

/* On the store's thread. */
static void renewal_done(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_run_ledger *ledger = context;

	(void)ops;
	(void)count;
	atomic_store(&ledger->renewal_is_done, true);
	(void)hx_stream_write(ledger->wake[1], "", 1);
}

static void send_renewal(struct hx_run_ledger *ledger)
{
	struct hapax_completion completion = {renewal_done, ledger};

	ledger->renewal = make_op(ledger, HAPAX_OP_RENEW);
	ledger->renewal.token = ledger->token;
	ledger->renewal.lease_ms = ledger->plan->lease_ms;
	ledger->renewal_sent_ns = hx_clock_mono_ns();
	ledger->is_renewing = true;
	atomic_store(&ledger->renewal_is_done, false);
	hapax_store_submit(ledger->store, &ledger->renewal, 1, completion);
}

/* A handle that saw an I/O error answers nothing any more; a new one may. */
static void reopen(struct hx_run_ledger *ledger)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING | HAPAX_STORE_MUST_EXIST;
	options.result_size_max = ledger->inv->settings.result_size_max;
	if (hapax_store_open(ledger->inv->settings.store_url, &options, &store, NULL) != HAPAX_OK)
		return;
	hapax_store_close(ledger->store);
	ledger->store = store;
}

static void tell_lapse(struct hx_run_ledger *ledger)
{
	if (ledger->is_lapse_told || hx_clock_mono_ns() < ledger->lease_ends_ns)
		return;
	ledger->is_lapse_told = true;
	hx_report(
		ledger->inv->command->name,
		"the lease could not be renewed in time (%s): another host may take over",
		hapax_status_name(ledger->renewal.status));
}

static void take_renewal(struct hx_run_ledger *ledger)
{
	ledger->is_renewing = false;
	switch (ledger->renewal.status) {
	case HAPAX_OK: count_lease(ledger, ledger->renewal_sent_ns); return;
	case HAPAX_ERR_FENCED: ledger->is_fenced = true; return;
	case HAPAX_ERR_FAILED: reopen(ledger); break;
	case HAPAX_ERR_INVALID:
	case HAPAX_ERR_NO_MEMORY:
	case HAPAX_ERR_LIMIT:
	case HAPAX_ERR_UNAVAILABLE:
	case HAPAX_ERR_UNCERTAIN:
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_UNSUPPORTED:
	case HAPAX_ERR_HANDLER: break;
	}
	tell_lapse(ledger);
	ledger->renew_at_ns = after_ms(hx_clock_mono_ns(), REPEAT_MS);
}

void hx_run_ledger_renew(struct hx_run_ledger *ledger)
{
	char bytes[16];

	while (hx_stream_read(ledger->wake[0], bytes, sizeof(bytes)) > 0)
		;
	if (ledger->is_renewing && atomic_load(&ledger->renewal_is_done))
		take_renewal(ledger);
	if (!ledger->is_renewing && !ledger->is_fenced && hx_clock_mono_ns() >= ledger->renew_at_ns)
		send_renewal(ledger);
}

int64_t hx_run_ledger_due_ns(const struct hx_run_ledger *ledger)
{
	return ledger->is_renewing || ledger->is_fenced ? INT64_MAX : ledger->renew_at_ns;
}

static enum hapax_op_type type_of(const struct hx_run_ledger *ledger, enum hx_run_verdict verdict)
{
	if (verdict == HX_RUN_OK || verdict == HX_RUN_DEFINITIVE)
		return HAPAX_OP_COMPLETE;
	if (verdict == HX_RUN_AMBIGUOUS && ledger->plan->on_lapse == HAPAX_ON_LAPSE_PARK)
		return HAPAX_OP_PARK;
	return HAPAX_OP_RELEASE;
}

/* Wait before the next try. False: the lease has ended, or we were asked to go. */
static bool may_repeat(const struct hx_run_ledger *ledger)
{
	struct pollfd signals = {.fd = ledger->signal_fd, .events = POLLIN};
	int64_t until_ns = after_ms(hx_clock_mono_ns(), REPEAT_MS);
	struct hx_run_signal signal;

	if (until_ns >= ledger->lease_ends_ns)
		return false;
	(void)hx_stream_wait(&signals, 1, until_ns);
	while (hx_run_signal_next(&signal))
		if (hx_run_signal_is_end(signal.number))
			return false;
	return true;
}

static bool is_final(enum hapax_status status)
{
	return status == HAPAX_OK || status == HAPAX_ERR_FENCED || status == HAPAX_ERR_INVALID ||
		status == HAPAX_ERR_UNSUPPORTED;
}

/* No room for the output: that it is done matters more. */
static enum hapax_status complete_without_body(
	struct hx_run_ledger *ledger, struct hapax_op *op, struct hapax_error *err)
{
	struct hapax_result result = *op->result;
	enum hapax_status status;

	result.omitted_bytes = result.body.size > 0 ? result.body.size : result.omitted_bytes;
	result.body = (struct hapax_bytes){NULL, 0};
	result.headers = (struct hapax_bytes){NULL, 0};
	op->result = &result;
	status = hapax_store_run(ledger->store, op, 1, err);
	if (status == HAPAX_OK)
		hx_report(
			ledger->inv->command->name,
			"note: there was no room for the output; that it is done was kept");
	return status;
}

enum hapax_status hx_run_ledger_finish(
	struct hx_run_ledger *ledger, enum hx_run_verdict verdict,
	const struct hapax_result *result, const char *why, struct hapax_error *err)
{
	struct hapax_op op = make_op(ledger, type_of(ledger, verdict));
	enum hapax_status status;

	await_renewal(ledger);
	op.token = ledger->token;
	op.error = hapax_bytes_from_text(why);
	if (op.type == HAPAX_OP_COMPLETE)
		op.result = result;
	for (;;) {
		status = hapax_store_run(ledger->store, &op, 1, err);
		if (is_final(status))
			return status;
		if (!may_repeat(ledger))
			break;
		if (status == HAPAX_ERR_FAILED || status == HAPAX_ERR_UNCERTAIN)
			reopen(ledger);
	}
	if (status == HAPAX_ERR_LIMIT && op.result != NULL)
		status = complete_without_body(ledger, &op, err);
	return status;
}
