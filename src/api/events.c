/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - GET /events and GET /duplicates.
 */
#include "api/events.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api_request.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "wire/http1/http1_text.h"
#include "wire/record/record_json.h"

enum {
	PUMP_MS = 100,

	/*
	 * Some proxies close a connection that is silent for a minute; this is half of the shortest
	 * known limit.
	 */
	HEARTBEAT_SECONDS = 15,

	/* A client that reconnects within this time has not missed first deliveries either. */
	LISTENED_SECONDS = 60,

	TEXT_SIZE_MAX = 64 * 1024,
	DUPLICATES_DEFAULT = 100,
};

/* In the order of the tables' parameters. */
enum { EVENTS_DECISION, EVENTS_TENANT, EVENTS_GROUP, EVENTS_LAST };
enum { DUPLICATES_LIMIT, DUPLICATES_TENANT, DUPLICATES_GROUP };

/* In the order of enum hapax_decision, as far as doors decide. */
static const char *const decisions[] = {
	"acquired", "replay", "in_progress", "mismatch", "parked", "fenced"};
enum { DECISION_COUNT = HX_COUNT(decisions) };

struct hx_listener_client {
	struct hx_api *api;
	struct hx_http_exchange *exchange;
	uint64_t number; /* of the last decision that was sent to it, or filtered out */
	uint64_t lost;   /* as above, when last reported */
	unsigned bits;   /* of the decisions that it wants */
	bool is_full;
	int64_t told_ns;
	size_t tenant_size; /* 0: any, also for group */
	size_t group_size;
	char tenant[HX_SCOPE_PART_SIZE_MAX];
	char group[HX_SCOPE_PART_SIZE_MAX];
	struct hx_listener_client *next;
};

/* ------------------------------------------------------------------ texts */

bool hx_event_id_parse(struct hapax_bytes text, uint64_t process, uint64_t *ret_number)
{
	char expected[32];
	int size = snprintf(expected, sizeof(expected), "%08" PRIx64 "-", process);
	const char *at = text.data;

	*ret_number = 0;
	if (text.size <= (size_t)size || memcmp(at, expected, (size_t)size) != 0)
		return false;
	for (size_t i = (size_t)size; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9' ||
		    __builtin_mul_overflow(*ret_number, UINT64_C(10), ret_number) ||
		    __builtin_add_overflow(*ret_number, (uint64_t)(at[i] - '0'), ret_number))
			return false;
	}
	return true;
}

enum hapax_status hx_event_decisions_parse(
	struct hapax_bytes text, unsigned *ret_bits, struct hapax_error *err)
{
	struct hapax_bytes word;

	*ret_bits = 0;
	while (hx_http1_list_next(&text, &word)) {
		size_t i = 0;

		while (i < DECISION_COUNT &&
		       !hx_bytes_equal(word, hapax_bytes_from_text(decisions[i])))
			i++;
		if (i == DECISION_COUNT)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"unknown 'decision' value '%.*s'; use acquired, replay, "
				"in_progress, mismatch, parked or fenced",
				word.size > 32 ? 32 : (int)word.size, (const char *)word.data);
		*ret_bits |= 1U << i;
	}
	return HAPAX_OK;
}

/* With the age of the original and the cause of the duplicate. */
static void write_note(struct hx_json_write *json, const struct hx_feed_note *note)
{
	hx_json_write_time(json, "at", note->at_ms);
	hx_json_write_text(json, "decision", decisions[note->decision]);
	hx_json_write_text(json, "door", hx_door_name(note->door));
	hx_json_write_any(json, "tenant", note->tenant);
	hx_json_write_any(json, "group", note->group);
	hx_json_write_any(json, "key", note->key);
	hx_record_event_write_json(json, "event", &note->event);
	if (note->token > 0)
		hx_json_write_unsigned(json, "token", note->token);
	if (hx_feed_is_duplicate(note)) {
		hx_json_write_begin(json, "original", '{');
		hx_json_write_time(json, "first_seen", note->first_seen_ms);
		hx_json_write_unsigned(json, "attempt", note->attempt);
		hx_record_event_write_json(json, "event", &note->original);
		hx_json_write_end(json, '}');
		hx_json_write_signed(
			json, "age_ms",
			note->at_ms > note->first_seen_ms ? note->at_ms - note->first_seen_ms : 0);
		hx_json_write_text(json, "cause", hx_feed_cause(note));
	}
}

/* ------------------------------------------------------------------ the row */

static struct hx_feed_slot *slots(struct hx_feed_slot **kept, size_t count)
{
	if (*kept == NULL)
		*kept = hx_alloc(count * sizeof(**kept));
	return *kept;
}

static void keep_note(const struct hx_feed_note *note, void *context)
{
	struct hx_api_events *events = context;
	struct hx_feed_slot *slot;

	if ((unsigned)note->decision >= DECISION_COUNT)
		return;
	slot = slots(&events->kept, HX_EVENTS_KEPT_MAX);
	if (slot != NULL) {
		slot = &slot[++events->number % HX_EVENTS_KEPT_MAX];
		hx_feed_slot_set(slot, note);
		slot->note.number = events->number;
	}
	if (!hx_feed_is_duplicate(note))
		return;
	slot = slots(&events->duplicates, HX_DUPLICATES_KEPT_MAX);
	if (slot != NULL) {
		slot = &slot[++events->duplicate_number % HX_DUPLICATES_KEPT_MAX];
		hx_feed_slot_set(slot, note);
		slot->note.number = events->duplicate_number;
	}
}

void hx_api_tick(struct hx_api *api)
{
	struct hx_api_events *events = &api->events;
	int64_t now_ns = hx_clock_mono_ns();

	if (api->options.feed == NULL)
		return;
	events->lost += hx_feed_take(api->options.feed, keep_note, events);
	if (events->listener_count > 0)
		events->listened_ns = now_ns;
	else if (now_ns - events->listened_ns > LISTENED_SECONDS * HX_NS_PER_S)
		hx_feed_listen(api->options.feed, false);
}

/* ------------------------------------------------------------------ a listener */

static void listener_free(struct hx_listener_client *listener)
{
	struct hx_api_events *events = &listener->api->events;
	struct hx_listener_client **at = &events->listeners;

	while (*at != listener)
		at = &(*at)->next;
	*at = listener->next;
	events->listener_count--;
	hx_free(listener);
}

static void end(struct hx_listener_client *listener)
{
	hx_http_stream_end(listener->exchange, hx_bytes(NULL, 0));
	listener_free(listener);
}

static bool is_wanted(const struct hx_listener_client *listener, const struct hx_feed_note *note)
{
	return (listener->bits >> note->decision & 1) != 0 &&
		(listener->tenant_size == 0 ||
		 hx_bytes_equal(note->tenant, hx_bytes(listener->tenant, listener->tenant_size))) &&
		(listener->group_size == 0 ||
		 hx_bytes_equal(note->group, hx_bytes(listener->group, listener->group_size)));
}

static void send_text(struct hx_listener_client *listener, const struct hapax_buf *text)
{
	listener->told_ns = hx_clock_mono_ns();
	listener->is_full = !hx_http_stream_write(listener->exchange, hapax_buf_bytes(text));
}

/* The text of one decision; false: it did not fit, and is left out. */
static bool write_event(
	const struct hx_api_events *events, const struct hx_feed_note *note, struct hapax_buf *out)
{
	struct hx_json_write json;

	hx_buf_clear(out);
	if (hx_buf_printf(
		    out, "id: %08" PRIx64 "-%" PRIu64 "\nevent: decision\ndata: ", events->process,
		    note->number) != HAPAX_OK)
		return false;
	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	write_note(&json, note);
	hx_json_write_end(&json, '}');
	return json.status == HAPAX_OK && hx_buf_append(out, "\n\n", 2) == HAPAX_OK;
}

/* Report how many decisions the listener missed, by being disconnected or too slow. */
static void tell_missed(struct hx_listener_client *listener, uint64_t count)
{
	struct hapax_buf *text = &listener->api->events.text;

	hx_buf_clear(text);
	if (hx_buf_printf(text, "event: missed\ndata: {\"count\":%" PRIu64 "}\n\n", count) ==
	    HAPAX_OK)
		send_text(listener, text);
}

/* Send new decisions. Returns false if the listener is gone. */
static bool pump(struct hx_listener_client *listener)
{
	struct hx_api_events *events = &listener->api->events;
	struct hapax_buf *text = &events->text;

	if (listener->exchange->peer == NULL) {
		end(listener);
		return false;
	}
	if (listener->is_full && events->number - listener->number > HX_EVENTS_KEPT_MAX) {
		/* Too slow: it reconnects with its last ID, and learns how many it missed. */
		hx_http_stream_cut(listener->exchange);
		end(listener);
		return false;
	}
	if (events->number - listener->number > HX_EVENTS_KEPT_MAX) {
		/* More arrived at once than the ring keeps. */
		listener->lost -= events->number - listener->number - HX_EVENTS_KEPT_MAX;
		listener->number = events->number - HX_EVENTS_KEPT_MAX;
	}
	if (!listener->is_full && events->lost != listener->lost) {
		tell_missed(listener, events->lost - listener->lost);
		listener->lost = events->lost;
	}
	while (!listener->is_full && listener->number < events->number) {
		const struct hx_feed_note *note =
			&events->kept[++listener->number % HX_EVENTS_KEPT_MAX].note;

		if (note->number == listener->number && is_wanted(listener, note) &&
		    write_event(events, note, text))
			send_text(listener, text);
	}
	if (!listener->is_full &&
	    hx_clock_mono_ns() - listener->told_ns > HEARTBEAT_SECONDS * HX_NS_PER_S) {
		hx_buf_clear(text);
		if (hx_buf_append(text, ":\n\n", 3) == HAPAX_OK)
			send_text(listener, text);
	}
	return true;
}

static void on_room(struct hx_http_exchange *exchange)
{
	struct hx_listener_client *listener = exchange->context;

	listener->is_full = false;
	(void)pump(listener);
}

static void pump_all(struct hx_api *api)
{
	struct hx_listener_client *next;

	for (struct hx_listener_client *at = api->events.listeners; at != NULL; at = next) {
		next = at->next;
		(void)pump(at);
	}
}

static void on_timer(struct hx_timer *timer)
{
	struct hx_api *api = timer->context;

	hx_api_tick(api);
	pump_all(api);
	if (api->events.listener_count > 0)
		hx_timer_set(
			&api->options.reactor->timers, timer,
			hx_reactor_now_ns(api->options.reactor) + PUMP_MS * HX_NS_PER_MS);
}

void hx_api_gone(struct hx_api *api, struct hx_http_exchange *exchange)
{
	for (struct hx_listener_client *at = api->events.listeners; at != NULL; at = at->next) {
		if (at->exchange == exchange) {
			end(at);
			return;
		}
	}
}

/* ------------------------------------------------------------------ life */

enum hapax_status hx_api_events_init(struct hx_api *api, struct hapax_error *err)
{
	uint32_t process;
	enum hapax_status status = hx_timer_introduce(
		&api->options.reactor->timers, &api->events.timer, on_timer, api);

	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to start the API");
	hx_random_bytes(&process, sizeof(process));
	api->events.process = process;
	hx_buf_init(&api->events.text, TEXT_SIZE_MAX);
	return HAPAX_OK;
}

void hx_api_events_stop(struct hx_api *api)
{
	while (api->events.listeners != NULL)
		end(api->events.listeners);
}

void hx_api_events_done(struct hx_api *api)
{
	struct hx_api_events *events = &api->events;

	assert(events->listeners == NULL);
	hx_timer_retire(&api->options.reactor->timers, &events->timer);
	hx_buf_done(&events->text);
	hx_free(events->kept);
	hx_free(events->duplicates);
}

/* ------------------------------------------------------------------ handlers */

static struct hapax_bytes last_id(const struct hx_api_request *request)
{
	const struct hx_http1_head *head = &request->exchange->head;
	size_t index = hx_http1_find(head, HX_BYTES_LIT("Last-Event-ID"), 0);

	if (request->values[EVENTS_LAST].is_given)
		return request->values[EVENTS_LAST].text;
	return index < head->field_count ? head->fields[index].value : hx_bytes(NULL, 0);
}

/* The number to continue from. Returns how many were missed. */
static uint64_t place(
	struct hx_listener_client *listener, const struct hx_api_events *events,
	struct hapax_bytes id)
{
	uint64_t oldest =
		events->number > HX_EVENTS_KEPT_MAX ? events->number - HX_EVENTS_KEPT_MAX : 0;
	uint64_t number;

	listener->lost = events->lost;
	listener->number = events->number;
	if (id.size == 0)
		return 0;
	/* Another process numbered it: everything in this one is new. */
	if (!hx_event_id_parse(id, events->process, &number) || number > events->number)
		number = 0;
	listener->number = number < oldest ? oldest : number;
	return listener->number - number;
}

static struct hx_listener_client *listener_new(struct hx_api_request *request)
{
	const struct hx_api_value *values = request->values;
	struct hapax_bytes own = hapax_bytes_from_text(request->caller.tenant);
	struct hapax_bytes tenant = own.size > 0 ? own : values[EVENTS_TENANT].text;
	struct hx_listener_client *listener = hx_alloc_zero(1, sizeof(*listener));

	if (listener == NULL)
		return NULL;
	listener->api = request->api;
	listener->exchange = request->exchange;
	listener->bits = UINT32_MAX;
	listener->told_ns = hx_clock_mono_ns();
	listener->tenant_size = tenant.size;
	listener->group_size = values[EVENTS_GROUP].text.size;
	if (listener->tenant_size > 0)
		memcpy(listener->tenant, tenant.data, tenant.size);
	if (listener->group_size > 0)
		memcpy(listener->group, values[EVENTS_GROUP].text.data, listener->group_size);
	return listener;
}

static enum hapax_status begin(struct hx_listener_client *listener)
{
	const struct hapax_field fields[] = {
		{HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("text/event-stream")},
		{HX_BYTES_LIT("Cache-Control"), HX_BYTES_LIT("no-store")},
		{HX_BYTES_LIT("X-Accel-Buffering"), HX_BYTES_LIT("no")},
	};

	listener->exchange->context = listener;
	return hx_http_stream_begin(
		listener->exchange,
		&(struct hx_http_reply){
			.status = 200, .fields = fields, .field_count = HX_COUNT(fields)},
		on_room);
}

static void join(struct hx_listener_client *listener, struct hx_api *api, uint64_t missed)
{
	static const char retry[] = "retry: 2000\n\n";
	struct hx_api_events *events = &api->events;

	listener->next = events->listeners;
	events->listeners = listener;
	events->listener_count++;
	hx_feed_listen(api->options.feed, true);
	hx_buf_clear(&events->text);
	if (hx_buf_append(&events->text, retry, sizeof(retry) - 1) == HAPAX_OK)
		send_text(listener, &events->text);
	if (missed > 0)
		tell_missed(listener, missed);
	if (pump(listener) && !hx_timer_is_set(&events->timer))
		hx_timer_set(
			&api->options.reactor->timers, &events->timer,
			hx_reactor_now_ns(api->options.reactor) + PUMP_MS * HX_NS_PER_MS);
}

/* The number of listeners that count for the request's address; 0: it counts for none. */
static size_t count_of_address(
	const struct hx_api_events *events, const struct hx_http_exchange *exchange)
{
	char network[HX_ADDRESS_TEXT_SIZE], other[HX_ADDRESS_TEXT_SIZE];
	size_t count = 0;

	if (exchange->origin[0] == '\0')
		return 0;
	hx_address_network(exchange->origin, network);
	for (const struct hx_listener_client *at = events->listeners; at != NULL; at = at->next) {
		hx_address_network(at->exchange->origin, other);
		count += strcmp(network, other) == 0;
	}
	return count;
}

void hx_api_get_events(struct hx_api_request *request)
{
	struct hx_api *api = request->api;
	struct hx_listener_client *listener;
	unsigned bits = UINT32_MAX;
	uint64_t missed;

	if (request->values[EVENTS_TENANT].is_given &&
	    !hx_api_may_use(request, request->values[EVENTS_TENANT].text))
		return;
	if (api->options.feed == NULL || api->events.listener_count >= HX_LISTENERS_MAX) {
		hx_api_problem(
			request, 503, NULL, "too many clients are already listening; retry later");
		return;
	}
	if (count_of_address(&api->events, request->exchange) >= HX_LISTENERS_PER_ADDRESS_MAX) {
		hx_api_problem(
			request, 429, NULL,
			"too many connections of this address are already listening");
		return;
	}
	if (request->values[EVENTS_DECISION].is_given &&
	    hx_event_decisions_parse(request->values[EVENTS_DECISION].text, &bits, &request->err) !=
		    HAPAX_OK) {
		hx_api_fail(request, HAPAX_ERR_INVALID, request->err.message);
		return;
	}
	hx_api_tick(api);
	listener = listener_new(request);
	if (listener == NULL || begin(listener) != HAPAX_OK) {
		hx_free(listener);
		hx_api_fail(request, HAPAX_ERR_NO_MEMORY, NULL);
		return;
	}
	listener->bits = bits;
	missed = place(listener, &api->events, last_id(request));
	(void)hx_api_request_leave(request);
	join(listener, api, missed);
}

/* Newest first. */
void hx_api_get_duplicates(struct hx_api_request *request)
{
	struct hx_api_events *events = &request->api->events;
	const struct hx_api_value *values = request->values;
	struct hapax_bytes tenant = values[DUPLICATES_TENANT].text;
	struct hapax_bytes group = values[DUPLICATES_GROUP].text;
	int64_t left = values[DUPLICATES_LIMIT].is_given ? values[DUPLICATES_LIMIT].number
							 : DUPLICATES_DEFAULT;
	struct hx_json_write json;
	uint64_t oldest;

	if (values[DUPLICATES_TENANT].is_given && !hx_api_may_use(request, tenant))
		return;
	if (request->caller.tenant[0] != '\0')
		tenant = hapax_bytes_from_text(request->caller.tenant);
	hx_api_tick(request->api);
	oldest = events->duplicate_number > HX_DUPLICATES_KEPT_MAX
		? events->duplicate_number - HX_DUPLICATES_KEPT_MAX
		: 0;
	hx_api_json(request, &json);
	hx_json_write_begin(&json, "duplicates", '[');
	for (uint64_t n = events->duplicate_number; n > oldest && left > 0; n--) {
		const struct hx_feed_note *note =
			&events->duplicates[n % HX_DUPLICATES_KEPT_MAX].note;

		if ((tenant.size > 0 && !hx_bytes_equal(tenant, note->tenant)) ||
		    (group.size > 0 && !hx_bytes_equal(group, note->group)))
			continue;
		hx_json_write_begin(&json, NULL, '{');
		write_note(&json, note);
		hx_json_write_end(&json, '}');
		left--;
	}
	hx_json_write_end(&json, ']');
	hx_json_write_unsigned(&json, "total", events->duplicate_number);
	hx_api_reply_json(request, &json);
}
