/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery_answer.c - the answer to the sender of an event or a client of the proxy.
 *
 *	it ran here                    the upstream's reply; a large one as it comes
 *	done before                    the stored reply; else 200, empty
 *	in progress                    409, Retry-After
 *	parked                         409
 *	same key, other payload        422
 *	stored record is damaged       500
 *	store not asked, or full       503, Retry-After
 *	lease lapsed before the run    503, Retry-After
 *
 * A duplicate without a stored reply gets an empty body, because senders such as Knative take any
 * other body for a reply event. Senders of events that ask for JSON get JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hapax/key.h>

#include "base/bytes.h"
#include "base/error.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"
#include "wire/http1/http1_write.h"
#include "wire/json/json_write.h"
#include "wire/media_type.h"

#define PROBLEM(name) "urn:hapax:problem:" name

enum { FIELDS_MAX = 8 };

/* The decision for a run here; without a claim there is none. */
static const char *decision_of(const struct hx_delivery *delivery)
{
	return delivery->claim.options.is_disabled ? NULL : "acquired";
}

/* A reply being built. */
struct draft {
	struct hx_http_reply reply;
	struct hapax_field fields[FIELDS_MAX];
	char omitted[24];
};

static void add_field(struct draft *draft, struct hapax_bytes name, struct hapax_bytes value)
{
	draft->fields[draft->reply.field_count++] = (struct hapax_field){name, value};
}

/* NULL: there is no decision. */
static void add_decision(struct draft *draft, const char *decision)
{
	if (decision == NULL)
		return;
	add_field(draft, HX_BYTES_LIT("Hapax-Decision"), hapax_bytes_from_text(decision));
}

static void add_omitted(struct draft *draft, uint64_t bytes)
{
	int size = snprintf(draft->omitted, sizeof(draft->omitted), "%" PRIu64, bytes);

	add_field(
		draft, HX_BYTES_LIT("Hapax-Body-Omitted"), hx_bytes(draft->omitted, (size_t)size));
}

/* The exchange has its reply; frees the delivery unless its run continues. */
static void release(struct hx_delivery *delivery)
{
	delivery->exchange = NULL;
	if (delivery->claim.run == NULL)
		hx_delivery_give(delivery);
}

static void count_request(struct hx_delivery *delivery, unsigned status)
{
	hx_tracing_end(delivery, status);
	hx_metrics_add(
		delivery->loop->cells, HX_METRIC_REQUESTS, 0,
		hx_metrics_request(delivery->door, status), 1);
	hx_metrics_observe_ns(
		delivery->loop->cells, HX_METRIC_REQUEST_DURATION, 0, delivery->door,
		hx_reactor_now_ns(&delivery->loop->reactor) - delivery->came_ns);
}

static void send_draft(struct hx_delivery *delivery, struct draft *draft)
{
	struct hx_http_exchange *exchange = delivery->exchange;

	draft->reply.fields = draft->fields;
	count_request(delivery, draft->reply.status);
	hx_http_reply(exchange, &draft->reply);
	release(delivery);
}

/* The problems about a key: an idempotency_error in Stripe's terms. */
static bool is_about_a_key(const char *type)
{
	static const char *const types[] = {
		PROBLEM("key-missing"),        PROBLEM("key-invalid"),      PROBLEM("credential"),
		PROBLEM("credential-missing"), PROBLEM("in-progress"),      PROBLEM("parked"),
		PROBLEM("mismatch"),           PROBLEM("failed-elsewhere"),
	};

	for (size_t i = 0; i < HX_COUNT(types); i++) {
		if (type != NULL && strcmp(type, types[i]) == 0)
			return true;
	}
	return false;
}

/* Whether a retry can change the answer. */
enum again {
	AGAIN_UNSAID, /* implied by the status */
	AGAIN_LATER,  /* yes, after a second */
	AGAIN_NEVER,  /* not until an operator has decided */
};

static void send_problem(
	struct hx_delivery *delivery, const struct hx_http_problem *problem, const char *decision,
	enum again again)
{
	struct hx_http_problem told = *problem;
	struct hapax_field fields[3];
	size_t count = 0;

	if (decision != NULL)
		fields[count++] = (struct hapax_field){
			HX_BYTES_LIT("Hapax-Decision"), hapax_bytes_from_text(decision)};
	if (again == AGAIN_LATER)
		fields[count++] =
			(struct hapax_field){HX_BYTES_LIT("Retry-After"), HX_BYTES_LIT("1")};
	if (delivery->door == HX_DOOR_PROXY) {
		if (is_about_a_key(problem->type))
			told.error_type = "idempotency_error";
		/* Stripe's libraries retry every 409 and 500 unless this field forbids it. */
		if (again != AGAIN_UNSAID)
			fields[count++] = (struct hapax_field){
				HX_BYTES_LIT("Stripe-Should-Retry"),
				again == AGAIN_LATER ? HX_BYTES_LIT("true")
						     : HX_BYTES_LIT("false")};
	}
	count_request(delivery, problem->status);
	hx_http_reply_problem(delivery->exchange, &told, fields, count);
	release(delivery);
}

/* In a batch the reply waits for the other events; the caller continues with them. */
static bool is_one_of_many(struct hx_delivery *delivery, enum hx_conclusion conclusion)
{
	struct hx_delivery_batch *batch = delivery->batch;

	if (batch == NULL)
		return false;
	hx_tracing_end(delivery, 0);
	if (conclusion > batch->worst)
		batch->worst = conclusion;
	return true;
}

/* What was wrong, for metrics. */
static enum hx_invalid invalid_of(unsigned status, const char *type)
{
	static const struct {
		const char *type;
		enum hx_invalid reason;
	} reasons[] = {
		{PROBLEM("not-an-event"), HX_INVALID_MALFORMED},
		{PROBLEM("no-key"), HX_INVALID_NO_KEY},
		{PROBLEM("key-missing"), HX_INVALID_NO_KEY},
		{PROBLEM("key-invalid"), HX_INVALID_KEY},
		{PROBLEM("credential"), HX_INVALID_CREDENTIAL},
		{PROBLEM("credential-missing"), HX_INVALID_CREDENTIAL},
		{PROBLEM("signature"), HX_INVALID_SIGNATURE},
		{PROBLEM("no-route"), HX_INVALID_NO_ROUTE},
		{PROBLEM("path"), HX_INVALID_PATH},
		{PROBLEM("method"), HX_INVALID_METHOD},
	};

	if (status == 413)
		return HX_INVALID_TOO_LARGE;
	if (status == 415)
		return HX_INVALID_MEDIA_TYPE;
	for (size_t i = 0; i < HX_COUNT(reasons); i++) {
		if (type != NULL && strcmp(type, reasons[i].type) == 0)
			return reasons[i].reason;
	}
	return HX_INVALID_OTHER;
}

void hx_delivery_refuse(
	struct hx_delivery *delivery, unsigned status, const char *type, const char *title,
	const char *detail)
{
	const struct hx_http_problem problem = {
		.status = status, .type = type, .title = title, .detail = detail};

	if (status < 500 && status != 429)
		hx_metrics_invalid(delivery->loop->cells, delivery->door, invalid_of(status, type));
	if (is_one_of_many(
		    delivery,
		    status >= 500 || status == 429 ? HX_CONCLUSION_UNFINISHED
						   : HX_CONCLUSION_REJECTED))
		return;
	send_problem(
		delivery, &problem, NULL,
		status == 503 || status == 429 ? AGAIN_LATER : AGAIN_UNSAID);
}

void hx_delivery_refuse_path(struct hx_delivery *delivery, const char *detail)
{
	hx_delivery_refuse(delivery, 400, PROBLEM("path"), "The path is ambiguous", detail);
}

/* The ends of events for which there is no response. */
enum ending {
	IN_PROGRESS,
	PARKED,
	MISMATCH,
	FAILED_ELSEWHERE,
	REVOKED, /* the next request runs, whatever caused the delay */
	CORRUPT, /* a retry changes nothing, so the reply does not ask for one */
	UNCERTAIN,
	STORE_FULL,
	UNAVAILABLE,
};

static const struct {
	unsigned status;
	enum hx_conclusion conclusion;
	enum again again;
	const char *decision; /* NULL: none */
	const char *type;
} endings[] = {
	[IN_PROGRESS] =
		{409, HX_CONCLUSION_BUSY, AGAIN_LATER, "in_progress", PROBLEM("in-progress")},
	[PARKED] = {409, HX_CONCLUSION_PARKED, AGAIN_NEVER, "parked", PROBLEM("parked")},
	[MISMATCH] = {422, HX_CONCLUSION_REJECTED, AGAIN_UNSAID, "mismatch", PROBLEM("mismatch")},
	[FAILED_ELSEWHERE] =
		{422, HX_CONCLUSION_REJECTED, AGAIN_UNSAID, "replay", PROBLEM("failed-elsewhere")},
	[REVOKED] =
		{503, HX_CONCLUSION_UNFINISHED, AGAIN_LATER, "acquired", PROBLEM("lease-lapsed")},
	[CORRUPT] = {500, HX_CONCLUSION_PARKED, AGAIN_NEVER, NULL, PROBLEM("corrupt")},
	[UNCERTAIN] = {503, HX_CONCLUSION_UNFINISHED, AGAIN_LATER, NULL, PROBLEM("uncertain")},
	[STORE_FULL] = {503, HX_CONCLUSION_UNFINISHED, AGAIN_LATER, NULL, PROBLEM("store-full")},
	[UNAVAILABLE] =
		{503, HX_CONCLUSION_UNFINISHED, AGAIN_LATER, NULL, PROBLEM("store-unavailable")},
};

/*
 * Their titles and details at the gateway and at the proxy; where the proxy has none of its own, it
 * uses those of the gateway. Those of the proxy are from
 * draft-ietf-httpapi-idempotency-key-header, if it defines them.
 */
#define NOT_FORWARDED "nothing was forwarded; retry later"
static const char *const texts[][2][2] = {
	[IN_PROGRESS] =
		{{"The event is in progress",
		  "the first delivery of this event is still running; retry later"},
		 {"A request is outstanding for this Idempotency-Key",
		  "A request with the same Idempotency-Key for the same operation is being "
		  "processed or is outstanding."}},
	[PARKED] =
		{{"The outcome of this event is unknown",
		  "an operator must run 'hapax resolve' before this event can be processed"},
		 {"The outcome of this request is unknown",
		  "an operator must run 'hapax resolve' before this Idempotency-Key can be used "
		  "again"}},
	[MISMATCH] =
		{{"The event was already delivered with different data",
		  "an event with the same key had different data; an event that differs needs "
		  "another key"},
		 {"Idempotency-Key is already used",
		  "This operation is idempotent and it requires correct usage of Idempotency Key. "
		  "Idempotency Key MUST not be reused across different payloads of this "
		  "operation."}},
	[FAILED_ELSEWHERE] =
		{{"The event failed permanently through another interface"},
		 {"The request with this Idempotency-Key failed permanently through another "
		  "interface"}},
	[REVOKED] =
		{{"The lease lapsed before the request was sent",
		  "the request waited longer than its lease, so another process may have taken "
		  "over; nothing was sent to the upstream"}},
	[CORRUPT] =
		{{"The stored record cannot be read",
		  "the event is done, or the store is damaged; nothing was forwarded, and the "
		  "stored response cannot be read"},
		 {"The stored record cannot be read",
		  "the request is done, or the store is damaged; nothing was forwarded, and the "
		  "stored response cannot be read"}},
	[UNCERTAIN] =
		{{"It is unknown whether the event was claimed", NOT_FORWARDED},
		 {"It is unknown whether the request was claimed", NOT_FORWARDED}},
	[STORE_FULL] = {{"The store is full", NOT_FORWARDED}},
	[UNAVAILABLE] = {{"The store is unavailable", NOT_FORWARDED}},
};

/* Some senders of webhooks retry only after certain statuses. */
static unsigned ending_status(const struct hx_delivery *delivery, enum ending ending)
{
	static const unsigned busy[] = {
		[HX_CONFIG_BUSY_409] = 409, [HX_CONFIG_BUSY_429] = 429, [HX_CONFIG_BUSY_503] = 503};

	if (ending != IN_PROGRESS || delivery->claim.proxy == NULL)
		return endings[ending].status;
	return busy[delivery->claim.proxy->busy];
}

/* The answer has it twice at most, in a page of 4 KiB. */
enum { PARKED_DETAIL_SIZE = 1024 };

/* Can it stand in a shell's command as it is? */
static bool is_plain(struct hapax_bytes text)
{
	const char *at = text.data;

	for (size_t i = 0; i < text.size; i++) {
		bool is_letter = (at[i] >= 'a' && at[i] <= 'z') || (at[i] >= 'A' && at[i] <= 'Z');

		if (!is_letter && (at[i] == '\0' || strchr("0123456789._:/@+=-", at[i]) == NULL))
			return false;
	}
	return text.size > 0 && at[0] != '-';
}

/* The command for the operator, who has only this answer. False: the key needs quotes. */
static bool write_resolve(const struct hx_delivery *delivery, char detail[PARKED_DETAIL_SIZE])
{
	const struct hx_delivery_identity *identity = &delivery->claim.identity;
	int size;

	if (!is_plain(identity->key) || !is_plain(identity->tenant) || !is_plain(identity->group))
		return false;
	size = snprintf(
		detail, PARKED_DETAIL_SIZE,
		"an operator must run 'hapax resolve %.*s --scope %.*s/%.*s' with --done if it "
		"happened, or with --retry if it did not",
		(int)identity->key.size, (const char *)identity->key.data,
		(int)identity->tenant.size, (const char *)identity->tenant.data,
		(int)identity->group.size, (const char *)identity->group.data);
	return size > 0 && size < PARKED_DETAIL_SIZE;
}

static void answer_ending(struct hx_delivery *delivery, enum ending ending)
{
	char detail[PARKED_DETAIL_SIZE];
	bool is_own = delivery->door == HX_DOOR_PROXY && texts[ending][1][0] != NULL;
	struct hx_http_problem problem = {
		.status = ending_status(delivery, ending),
		.type = endings[ending].type,
		.title = texts[ending][is_own][0],
		.detail = texts[ending][is_own][1],
		.error_code = ending == IN_PROGRESS ? "idempotency_key_in_use" : NULL};

	/* Its sender knows what the key is made of, unless the route has a strategy of its own. */
	if (ending == MISMATCH && !is_own &&
	    strcmp(hapax_key_strategy_text(delivery->claim.route->strategy), "event-id") == 0)
		problem.detail =
			"an event with the same source and id had different data; use a new id";
	if (ending == PARKED && write_resolve(delivery, detail))
		problem.detail = detail;
	if (!is_one_of_many(delivery, endings[ending].conclusion))
		send_problem(delivery, &problem, endings[ending].decision, endings[ending].again);
}

/* There is no response: the upstream was not reached, or the outcome is unknown. */
static void answer_failure(struct hx_delivery *delivery)
{
	bool is_lost = delivery->call.outcome == HAPAX_RUN_AMBIGUOUS;
	struct hx_http_problem problem = {
		.status = delivery->call.is_late ? 504 : 502,
		.type = is_lost ? PROBLEM("upstream-lost") : PROBLEM("upstream-unreachable"),
		.title = is_lost ? "The upstream's response was lost"
				 : "The upstream is unreachable",
		.detail = delivery->call.failure.message};

	if (delivery->call.is_revoked) {
		answer_ending(delivery, REVOKED);
		return;
	}
	if (is_one_of_many(delivery, HX_CONCLUSION_UNFINISHED))
		return;
	/* The sent request may have taken effect, even if its answer was invalid. */
	if (!is_lost && delivery->call.failure.status == HAPAX_ERR_LIMIT)
		problem.status = 503;
	send_problem(
		delivery, &problem, decision_of(delivery),
		problem.status == 503 ? AGAIN_LATER : AGAIN_UNSAID);
}

static enum hx_conclusion conclusion_of(const struct hx_delivery *delivery)
{
	switch (delivery->call.outcome) {
	case HAPAX_RUN_OK: return HX_CONCLUSION_DONE;
	case HAPAX_RUN_DEFINITIVE: return HX_CONCLUSION_REJECTED;
	case HAPAX_RUN_TRANSIENT:
	case HAPAX_RUN_AMBIGUOUS: break;
	}
	return HX_CONCLUSION_UNFINISHED;
}

static void on_room(struct hx_http_exchange *exchange)
{
	struct hx_delivery *delivery = exchange->context;

	hx_http_call_resume(&delivery->call.http);
}

/* A redirection is not passed to senders of events: they do not follow any. One that the route
 * calls done is an answer. */
static bool is_redirection(const struct hx_delivery *delivery)
{
	return delivery->door == HX_DOOR_GATEWAY && delivery->call.status >= 300 &&
		delivery->call.status < 400 && hx_forward_outcome(delivery) != HAPAX_RUN_OK;
}

void hx_delivery_pass(struct hx_delivery *delivery, const struct hx_http1_head *head)
{
	struct hx_http_reply reply = {
		.status = delivery->call.status,
		.field_lines = hx_tracing_public(hapax_buf_bytes(&delivery->call.headers))};

	if (head->known[HX_HTTP1_CONTENT_LENGTH] != 0) {
		reply.framing = HX_HTTP_SIZED;
		reply.length = head->content_length;
	}
	/* If it cannot begin now, it is retried when the response is complete. */
	delivery->call.is_streamed =
		hx_http_stream_begin(delivery->exchange, &reply, on_room) == HAPAX_OK;
}

void hx_delivery_stream(struct hx_delivery *delivery)
{
	struct draft draft = {.reply = {.status = delivery->call.status}};

	/* The sender gets only a summary of it. */
	if (delivery->batch != NULL || is_redirection(delivery))
		return;
	add_decision(&draft, decision_of(delivery));
	/* Whether it is stored is known only at its end. */
	add_field(&draft, HX_BYTES_LIT("Trailer"), HX_BYTES_LIT("Hapax-Stored"));
	draft.reply.fields = draft.fields;
	draft.reply.field_lines = hx_tracing_public(hapax_buf_bytes(&delivery->call.headers));
	delivery->call.is_streamed =
		hx_http_stream_begin(delivery->exchange, &draft.reply, on_room) == HAPAX_OK;
	if (delivery->call.is_streamed)
		(void)hx_http_stream_write(
			delivery->exchange, hapax_buf_bytes(&delivery->call.body));
}

/* Everything except the end of the stream has been sent. */
static void end_stream(struct hx_delivery *delivery, bool is_stored)
{
	static const struct hapax_bytes not_stored = HX_BYTES_LIT("Hapax-Stored: no\r\n");

	count_request(delivery, delivery->call.status != 0 ? delivery->call.status : 502);
	if (delivery->call.status == 0)
		hx_http_stream_cut(delivery->exchange);
	hx_http_stream_end(delivery->exchange, is_stored ? hx_bytes(NULL, 0) : not_stored);
	release(delivery);
}

/* Sends the upstream's response. */
static void answer_response(struct hx_delivery *delivery, bool is_stored)
{
	struct draft draft = {.reply = {.status = delivery->call.status}};

	if (delivery->call.is_streamed) {
		end_stream(delivery, is_stored);
		return;
	}
	/* The event ran: a retry would run it twice. */
	if (delivery->batch != NULL && !is_stored)
		delivery->batch->is_unstored = true;
	if (is_one_of_many(delivery, conclusion_of(delivery)))
		return;
	if (is_redirection(delivery)) {
		const struct hx_http_problem problem = {
			.status = 502,
			.type = PROBLEM("upstream-redirect"),
			.title = "The upstream answered with a redirect",
			.detail = delivery->call.failure.message};

		send_problem(delivery, &problem, decision_of(delivery), AGAIN_UNSAID);
		return;
	}
	add_decision(&draft, decision_of(delivery));
	if (!is_stored)
		add_field(&draft, HX_BYTES_LIT("Hapax-Stored"), HX_BYTES_LIT("no"));
	if (delivery->call.body_size > delivery->call.body.size)
		add_omitted(&draft, delivery->call.body_size);
	draft.reply.field_lines = hx_tracing_public(hapax_buf_bytes(&delivery->call.headers));
	draft.reply.body = hapax_buf_bytes(&delivery->call.body);
	send_draft(delivery, &draft);
}

void hx_delivery_answer_unstored(struct hx_delivery *delivery)
{
	/* Without a response only the failure is recorded, which can wait. */
	if (delivery->call.status != 0 && delivery->batch == NULL)
		answer_response(delivery, false);
}

/* {"status":"skipped","message":"Duplicate event","eventId":"..."} */
static void write_skipped(struct hx_delivery *delivery, struct hapax_buf *out)
{
	struct hx_json_write json;

	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "status", "skipped");
	hx_json_write_text(&json, "message", "Duplicate event");
	hx_json_write_bytes(&json, "eventId", delivery->claim.event.id);
	hx_json_write_end(&json, '}');
}

/* There is no stored reply that this door could replay. */
static void answer_skipped(struct hx_delivery *delivery)
{
	static const struct hapax_bytes accept = HX_BYTES_LIT("Accept");
	const struct hx_http1_head *head = &delivery->exchange->head;
	unsigned char space[2048];
	struct hapax_buf body = {space, 0, sizeof(space), sizeof(space), NULL};
	struct draft draft = {.reply = {.status = 200}};
	bool wants_json = false;

	for (size_t i = hx_http1_find(head, accept, 0);
	     i < head->field_count && delivery->door == HX_DOOR_GATEWAY;
	     i = hx_http1_find(head, accept, i + 1))
		wants_json = wants_json || hx_media_type_accepts_json(head->fields[i].value);
	add_decision(&draft, "replay");
	if (delivery->door == HX_DOOR_PROXY)
		add_field(&draft, HX_BYTES_LIT("Idempotent-Replayed"), HX_BYTES_LIT("true"));
	if (wants_json) {
		write_skipped(delivery, &body);
		add_field(&draft, HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("application/json"));
	}
	draft.reply.body = hapax_buf_bytes(&body);
	send_draft(delivery, &draft);
}

static void answer_replay(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	const struct hapax_result *result = &answer->result;
	bool is_definitive = result->result_class == HAPAX_RESULT_DEFINITIVE;
	struct draft draft = {.reply = {.status = (unsigned)result->status}};

	if (is_one_of_many(delivery, is_definitive ? HX_CONCLUSION_REJECTED : HX_CONCLUSION_DONE))
		return;
	if (result->kind != HAPAX_RESULT_HTTP && is_definitive) {
		answer_ending(delivery, FAILED_ELSEWHERE);
		return;
	}
	if (result->kind != HAPAX_RESULT_HTTP || result->status < 200 || result->status > 599) {
		answer_skipped(delivery);
		return;
	}
	add_decision(&draft, "replay");
	add_field(&draft, HX_BYTES_LIT("Idempotent-Replayed"), HX_BYTES_LIT("true"));
	if (result->omitted_bytes > 0)
		add_omitted(&draft, result->omitted_bytes);
	draft.reply.field_lines = hx_tracing_public(result->headers);
	draft.reply.body = result->body;
	send_draft(delivery, &draft);
}

static void answer_mismatch(struct hx_delivery *delivery)
{
	bool is_event = delivery->door == HX_DOOR_GATEWAY;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_KEY("idempotency_key", delivery->claim.identity.key),
		HX_LOGGER_BYTES(is_event ? "event_id" : NULL, delivery->claim.event.id),
		HX_LOGGER_BYTES(is_event ? "event_type" : NULL, delivery->claim.event.type),
		HX_LOGGER_BYTES(is_event ? "event_source" : NULL, delivery->claim.event.source),
		HX_LOGGER_TEXT("route", delivery->claim.route_name),
	};

	hx_logger(
		delivery->loop->serve->log, HX_LOGGER_WARN, "payload mismatch", fields,
		HX_COUNT(fields));
	answer_ending(delivery, MISMATCH);
}

/* The store did not answer. */
static enum ending ending_of(enum hapax_status status)
{
	if (status == HAPAX_ERR_CORRUPT)
		return CORRUPT;
	if (status == HAPAX_ERR_UNCERTAIN || status == HAPAX_ERR_FAILED)
		return UNCERTAIN;
	return status == HAPAX_ERR_LIMIT ? STORE_FULL : UNAVAILABLE;
}

void hx_delivery_answer(struct hx_delivery *delivery, const struct hapax_answer *answer)
{
	switch (answer->outcome) {
	case HAPAX_OUTCOME_ACQUIRED:
		if (delivery->call.status == 0 && !delivery->call.is_streamed)
			answer_failure(delivery);
		else
			answer_response(delivery, answer->status == HAPAX_OK);
		return;
	case HAPAX_OUTCOME_REPLAY: answer_replay(delivery, answer); return;
	case HAPAX_OUTCOME_IN_PROGRESS: answer_ending(delivery, IN_PROGRESS); return;
	case HAPAX_OUTCOME_MISMATCH: answer_mismatch(delivery); return;
	case HAPAX_OUTCOME_PARKED: answer_ending(delivery, PARKED); return;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	answer_ending(delivery, ending_of(answer->status));
}
