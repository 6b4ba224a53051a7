/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_walk.c - operations on the whole ledger.
 */
#include "store/redis/redis_walk.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/redis/redis_member.h"
#include "store/redis/redis_script.h"
#include "store/scan_place.h"
#include "wire/resp/resp_reply.h"

enum {
	/* A script over this many records takes a millisecond or two. */
	SCAN_COUNT_MAX = 200,
	SWEEP_COUNT_MAX = 200,
	ROWS_AT_ONCE = 64,
	PARTITIONS_AT_ONCE = 64,

	/* Results of one page; the last record may exceed it. */
	PAGE_BYTES = 1024 * 1024,

	COMMAND_SIZE_MAX = 1024 * 1024,
	REPLY_SIZE_MAX = 64 * 1024 * 1024,
};

/* A command and its reply. */
struct exchange {
	struct hx_redis_client *client;
	struct hapax_buf text; /* of the command */
	struct hx_resp_words command;
	struct hapax_buf reply;
	unsigned partition; /* the one to ask */
	struct hx_redis_call call;
};

static void exchange_init(struct exchange *exchange, struct hx_redis_client *client)
{
	exchange->client = client;
	exchange->partition = 0;
	hx_buf_init(&exchange->text, COMMAND_SIZE_MAX);
	hx_buf_init(&exchange->reply, REPLY_SIZE_MAX);
}

static void exchange_done(struct exchange *exchange)
{
	hx_buf_done(&exchange->text);
	hx_buf_done(&exchange->reply);
}

static void begin(struct exchange *exchange, enum hx_redis_script script, size_t arguments)
{
	struct hx_redis_client *client = exchange->client;

	char text[HX_REDIS_PARTITION_PREFIX_SIZE];
	struct hapax_bytes prefix = {text, 0};

	prefix.size = hx_redis_partition_prefix(client->place, exchange->partition, text);
	hx_buf_clear(&exchange->text);
	hx_redis_script_begin(
		&exchange->command, &exchange->text, &client->scripts, script, prefix, 0,
		arguments);
	hx_redis_script_arguments(&exchange->command, prefix, hx_redis_client_now_ms(client));
}

static enum hapax_status refuse_form(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "unexpected reply from the server");
}

static void say(struct exchange *exchange)
{
	exchange->call = (struct hx_redis_call){
		.command = {exchange->text.data, exchange->text.size},
		.reply = &exchange->reply,
	};
	if (exchange->command.status == HAPAX_OK)
		hx_redis_client_call_begin(exchange->client, exchange->partition, &exchange->call);
}

/* Wait for the reply; *ret_rest follows the head of an array of *ret_count. */
static enum hapax_status hear(
	struct exchange *exchange, struct hapax_bytes *ret_rest, int64_t *ret_count,
	struct hapax_error *err)
{
	struct hx_resp_value value;
	enum hapax_status status = exchange->command.status;
	bool is_gone;

	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to ask Redis");
	status = hx_redis_client_call_wait(&exchange->call, err);
	if (status != HAPAX_OK)
		return status;
	*ret_rest = hx_bytes(exchange->reply.data, exchange->reply.size);
	if (!hx_resp_next(ret_rest, &value))
		return refuse_form(err);
	if (value.type == HX_RESP_ERROR || value.type == HX_RESP_BULK_ERROR)
		return hx_error_set(
			err, hx_redis_error_status(&value, &is_gone), 0, "Redis answered '%.*s'",
			(int)(value.text.size < 120 ? value.text.size : 120),
			(const char *)value.text.data);
	*ret_count = value.type == HX_RESP_ARRAY ? value.integer : 0;
	return HAPAX_OK;
}

static enum hapax_status ask(
	struct exchange *exchange, struct hapax_bytes *ret_rest, int64_t *ret_count,
	struct hapax_error *err)
{
	say(exchange);
	return hear(exchange, ret_rest, ret_count, err);
}

/* ---------------------------------------------------------------- all partitions */

/* Exchanges with the partitions that are asked at once. */
struct round {
	struct exchange exchanges[PARTITIONS_AT_ONCE];
	unsigned first;
	unsigned count;
};

/* Build the command for one partition. */
typedef void prepare_fn(struct exchange *exchange, void *context);

/* Take the reply, from after the head of an array of count. */
typedef enum hapax_status take_fn(
	struct exchange *exchange, struct hapax_bytes rest, int64_t count, void *context,
	struct hapax_error *err);

/* Wait for every reply, even after a failure. */
static enum hapax_status run_round(
	struct round *round, prepare_fn *prepare, take_fn *take, void *context,
	struct hapax_error *err)
{
	enum hapax_status result = HAPAX_OK;

	for (unsigned i = 0; i < round->count; i++) {
		round->exchanges[i].partition = round->first + i;
		prepare(&round->exchanges[i], context);
		say(&round->exchanges[i]);
	}
	for (unsigned i = 0; i < round->count; i++) {
		struct hapax_error ignored;
		struct hapax_bytes rest;
		int64_t count = 0;
		struct hapax_error *where = result == HAPAX_OK ? err : &ignored;
		enum hapax_status status = hear(&round->exchanges[i], &rest, &count, where);

		if (status == HAPAX_OK && result == HAPAX_OK)
			status = take(&round->exchanges[i], rest, count, context, where);
		if (result == HAPAX_OK)
			result = status;
	}
	return result;
}

/* Ask partitions [first, end). */
static enum hapax_status ask_all(
	struct hx_redis_client *client, unsigned first, unsigned end, prepare_fn *prepare,
	take_fn *take, void *context, struct hapax_error *err)
{
	struct round *round = hx_alloc(sizeof(*round));
	enum hapax_status status = HAPAX_OK;

	if (round == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to ask Redis");
	for (unsigned i = 0; i < PARTITIONS_AT_ONCE; i++)
		exchange_init(&round->exchanges[i], client);
	for (round->first = first; round->first < end && status == HAPAX_OK;
	     round->first += round->count) {
		round->count = end - round->first < PARTITIONS_AT_ONCE ? end - round->first
								       : PARTITIONS_AT_ONCE;
		status = run_round(round, prepare, take, context, err);
	}
	for (unsigned i = 0; i < PARTITIONS_AT_ONCE; i++)
		exchange_done(&round->exchanges[i]);
	hx_free(round);
	return status;
}

/* ---------------------------------------------------------------- scan */

/* Begin a partition: its place is empty. */
static void begin_partition(struct hapax_cursor *cursor, unsigned partition)
{
	(void)hx_scan_place_put(cursor, partition, &(struct hx_scan_place){0});
}

/* The start in the form of ZRANGEBYLEX: after the cursor, or where the filter begins. */
static enum hapax_status put_start(
	struct hapax_buf *start, const struct hapax_scan *scan, const struct hapax_cursor *cursor,
	struct hapax_error *err)
{
	struct hx_scan_place from = {0};
	bool is_first;
	enum hapax_status status;

	if (cursor->size != 0 && !hx_scan_place_get(cursor, &from))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the cursor belongs to another store");
	is_first = from.key.size == 0;
	if (is_first)
		from = hx_scan_place_first(scan);
	if (from.group.size == 0)
		return hx_buf_append_byte(start, '-');
	status = hx_buf_append_byte(start, is_first ? '[' : '(');
	return status == HAPAX_OK ? hx_redis_member_append(start, from.tenant, from.group, from.key)
				  : status;
}

static enum hapax_status hand_out_page(
	struct hapax_bytes rest, int64_t count, const struct hapax_scan *scan,
	struct hapax_cursor *cursor, hapax_scan_fn *each, void *context, bool *ret_found,
	struct hapax_error *err)
{
	unsigned char scratch[2 * HX_SCOPE_PART_SIZE_MAX];
	struct hapax_bytes at_end;
	int64_t now_ms = 0;
	bool stops = false;

	if (count < 2 || !hx_resp_next_integer(&rest, &now_ms) ||
	    !hx_resp_next_text(&rest, &at_end))
		return refuse_form(err);
	for (int64_t i = 2; i + 1 < count && !stops; i += 2) {
		struct hapax_record record;
		struct hx_scan_place place;
		struct hapax_bytes member;
		bool is_present;

		if (!hx_resp_next_text(&rest, &member) ||
		    !hx_redis_record_read(&rest, NULL, &record, &is_present))
			return refuse_form(err);
		if (!hx_redis_member_split(
			    member, scratch, &place.tenant, &place.group, &place.key))
			return refuse_form(err);
		record.tenant = place.tenant;
		record.group = place.group;
		record.key = place.key;
		(void)hx_scan_place_put(cursor, hx_scan_place_partition(cursor), &place);
		if (hx_scan_place_is_behind(scan, &place)) {
			cursor->done = 1;
			return HAPAX_OK;
		}
		if (is_present && hx_record_is_valid(&record) &&
		    hx_scan_place_accepts(scan, &record, now_ms)) {
			*ret_found = true;
			stops = each(&record, context) != 0;
		}
		/* If each stopped at the very last record, the next call notices the end. */
	}
	if (!stops && at_end.size != 0)
		cursor->done = 1;
	return HAPAX_OK;
}

/* Scan a page of the cursor's partition. */
static enum hapax_status scan_page(
	struct exchange *exchange, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, bool *ret_found, struct hapax_error *err)
{
	size_t count_max = scan->count_max < SCAN_COUNT_MAX ? scan->count_max : SCAN_COUNT_MAX;
	unsigned partition = hx_scan_place_partition(cursor);
	struct hapax_buf start;
	struct hapax_bytes rest;
	int64_t count = 0;
	enum hapax_status status;

	hx_buf_init(&start, 6 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 8);
	status = put_start(&start, scan, cursor, err);
	if (status == HAPAX_ERR_NO_MEMORY)
		(void)hx_error_set(err, status, 0, "not enough memory to scan");
	if (status == HAPAX_OK) {
		exchange->partition = partition;
		begin(exchange, HX_REDIS_SCAN, 3);
		hx_resp_word(&exchange->command, hx_bytes(start.data, start.size));
		hx_resp_word_integer(&exchange->command, (int64_t)count_max);
		hx_resp_word_integer(&exchange->command, PAGE_BYTES);
		status = ask(exchange, &rest, &count, err);
	}
	if (status == HAPAX_OK)
		status = hand_out_page(rest, count, scan, cursor, each, context, ret_found, err);
	hx_buf_done(&start);
	return status;
}

static void prepare_card(struct exchange *exchange, void *context)
{
	char name[HX_REDIS_PARTITION_PREFIX_SIZE + 8];
	size_t size = hx_redis_partition_prefix(exchange->client->place, exchange->partition, name);

	(void)context;
	memcpy(name + size, ":keys", 5);
	hx_buf_clear(&exchange->text);
	hx_resp_words_begin(&exchange->command, &exchange->text, 2);
	hx_resp_word_text(&exchange->command, "ZCARD");
	hx_resp_word(&exchange->command, hx_bytes(name, size + 5));
}

static enum hapax_status take_card(
	struct exchange *exchange, struct hapax_bytes rest, int64_t count, void *context,
	struct hapax_error *err)
{
	unsigned *first = context;
	int64_t cards = 0;

	(void)count;
	rest = hx_bytes(exchange->reply.data, exchange->reply.size);
	if (!hx_resp_next_integer(&rest, &cards))
		return refuse_form(err);
	if (cards > 0 && exchange->partition < *first)
		*first = exchange->partition;
	return HAPAX_OK;
}

/* Move the cursor to the next partition, or, from an empty one, to one with records. */
static enum hapax_status next_partition(
	struct hx_redis_client *client, bool is_empty, struct hapax_cursor *cursor,
	struct hapax_error *err)
{
	unsigned partition_count = hx_redis_partition_count(client->place);
	unsigned first = hx_scan_place_partition(cursor) + 1;
	unsigned found = partition_count;
	enum hapax_status status = HAPAX_OK;

	/* If that is unknown, the next call retries. */
	cursor->done = 0;
	if (!is_empty && first < partition_count)
		found = first;
	while (status == HAPAX_OK && found == partition_count && first < partition_count) {
		unsigned end = first + PARTITIONS_AT_ONCE;

		end = end < partition_count ? end : partition_count;
		status = ask_all(client, first, end, prepare_card, take_card, &found, err);
		first = end;
	}
	if (status == HAPAX_OK && found < partition_count)
		begin_partition(cursor, found);
	else
		cursor->done = status == HAPAX_OK;
	return status;
}

enum hapax_status hx_redis_scan(
	struct hx_redis_client *client, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	unsigned partition_count = hx_redis_partition_count(client->place);
	struct exchange exchange;
	bool has_found = false;
	enum hapax_status status = HAPAX_OK;

	if (hx_scan_place_partition(cursor) >= partition_count)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the cursor belongs to another store");
	exchange_init(&exchange, client);
	/* Partitions may be empty: continue until a record is handed out. */
	while (status == HAPAX_OK && !cursor->done && !has_found) {
		status = scan_page(&exchange, scan, cursor, each, context, &has_found, err);
		if (status == HAPAX_OK && cursor->done)
			status = next_partition(client, !has_found, cursor, err);
	}
	exchange_done(&exchange);
	return status;
}

/* ---------------------------------------------------------------- sweep */

struct sweep_state {
	struct hapax_sweep *sweep;
	size_t count_max; /* of one script */
	uint64_t remaining[HX_REDIS_PARTITIONS];
	bool is_done[HX_REDIS_PARTITIONS];
};

static void prepare_sweep(struct exchange *exchange, void *context)
{
	const struct sweep_state *state = context;

	begin(exchange, HX_REDIS_SWEEP, 1);
	hx_resp_word_integer(&exchange->command, (int64_t)state->count_max);
}

static enum hapax_status take_sweep(
	struct exchange *exchange, struct hapax_bytes rest, int64_t count, void *context,
	struct hapax_error *err)
{
	struct sweep_state *state = context;
	int64_t looked = 0, removed = 0, lapsed = 0, remaining = 0;

	if (count != 4 || !hx_resp_next_integer(&rest, &looked) ||
	    !hx_resp_next_integer(&rest, &removed) || !hx_resp_next_integer(&rest, &lapsed) ||
	    !hx_resp_next_integer(&rest, &remaining))
		return refuse_form(err);
	state->sweep->looked += (uint64_t)looked;
	state->sweep->removed += (uint64_t)removed;
	state->sweep->lapsed += (uint64_t)lapsed;
	state->remaining[exchange->partition] = (uint64_t)remaining;
	state->is_done[exchange->partition] = (uint64_t)looked < state->count_max;
	atomic_fetch_add_explicit(
		&exchange->client->removed, (uint64_t)removed, memory_order_relaxed);
	return HAPAX_OK;
}

/* The rest of count_max, for one script. */
static size_t sweep_count(const struct hapax_sweep *sweep)
{
	size_t left = sweep->looked < sweep->count_max ? sweep->count_max - sweep->looked : 0;

	return left < SWEEP_COUNT_MAX ? left : SWEEP_COUNT_MAX;
}

/* Sweep a little of every partition first, then the partitions with more, in turn. */
enum hapax_status hx_redis_sweep(
	struct hx_redis_client *client, struct hapax_sweep *sweep, struct hapax_error *err)
{
	unsigned count = hx_redis_partition_count(client->place);
	struct sweep_state state = {.sweep = sweep};
	enum hapax_status status;

	state.count_max = sweep->count_max / count;
	if (state.count_max > SWEEP_COUNT_MAX)
		state.count_max = SWEEP_COUNT_MAX;
	status = ask_all(client, 0, count, prepare_sweep, take_sweep, &state, err);
	for (unsigned i = 0; i < count && status == HAPAX_OK; i++) {
		while (status == HAPAX_OK && !state.is_done[i] && sweep_count(sweep) > 0) {
			state.count_max = sweep_count(sweep);
			status = ask_all(client, i, i + 1, prepare_sweep, take_sweep, &state, err);
		}
	}
	sweep->done = status == HAPAX_OK;
	for (unsigned i = 0; i < count; i++) {
		sweep->remaining += state.remaining[i];
		sweep->done &= state.is_done[i];
	}
	return status;
}

/* ---------------------------------------------------------------- counters */

enum hapax_status hx_redis_count(
	struct hx_redis_client *client, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	struct exchange exchange;
	struct hapax_buf scope;
	enum hapax_status status = HAPAX_OK;

	exchange_init(&exchange, client);
	hx_buf_init(&scope, 6 * HX_SCOPE_PART_SIZE_MAX + 8);
	for (size_t first = 0; first < count && status == HAPAX_OK; first += ROWS_AT_ONCE) {
		size_t end = count - first < ROWS_AT_ONCE ? count : first + ROWS_AT_ONCE;
		struct hapax_bytes rest;
		int64_t ignored;

		begin(&exchange, HX_REDIS_COUNT, 1 + (end - first) * (1 + HAPAX_DECISION_COUNT));
		hx_resp_word_integer(&exchange.command, HAPAX_DECISION_COUNT);
		for (size_t i = first; i < end; i++) {
			hx_buf_clear(&scope);
			if (exchange.command.status == HAPAX_OK)
				exchange.command.status = hx_redis_scope_append(
					&scope, rows[i].tenant, rows[i].group);
			hx_resp_word(&exchange.command, hx_bytes(scope.data, scope.size));
			for (int k = 0; k < HAPAX_DECISION_COUNT; k++)
				hx_resp_word_integer(&exchange.command, (int64_t)rows[i].counts[k]);
		}
		status = ask(&exchange, &rest, &ignored, err);
		/* A repeat might count twice; counters may lose a second, but never gain one. */
		if (status == HAPAX_ERR_UNCERTAIN)
			status = HAPAX_OK;
	}
	hx_buf_done(&scope);
	exchange_done(&exchange);
	return status;
}

/* Split a scope of hx_redis_scope_append(); its names are unescaped into scratch. */
static bool split_scope(
	struct hapax_bytes scope, unsigned char *scratch, struct hapax_counters *row)
{
	char member[6 * HX_SCOPE_PART_SIZE_MAX + 8];
	struct hapax_bytes key;

	if (scope.size + 2 > sizeof(member))
		return false;
	if (scope.size > 0)
		memcpy(member, scope.data, scope.size);
	memcpy(member + scope.size, ":x", 2);
	return hx_redis_member_split(
		hx_bytes(member, scope.size + 2), scratch, &row->tenant, &row->group, &key);
}

/* Hand out the rows of one hour. *ret_stops: the callback wants no more. */
static bool hand_out_hour(
	struct hapax_bytes rest, struct hapax_counters *row, struct hapax_stats *stats,
	hapax_counters_fn *each, void *context, bool *ret_stops)
{
	unsigned char scratch[2 * HX_SCOPE_PART_SIZE_MAX];
	struct hapax_bytes scope;

	while (hx_resp_next_text(&rest, &scope)) {
		for (int i = 0; i < HAPAX_DECISION_COUNT; i++) {
			int64_t count = 0;

			if (!hx_resp_next_integer(&rest, &count) || count < 0)
				return false;
			row->counts[i] = (uint64_t)count;
			stats->counts[i] += (uint64_t)count;
		}
		if (each != NULL && !*ret_stops && split_scope(scope, scratch, row))
			*ret_stops = each(row, context) != 0;
	}
	return rest.size == 0;
}

static enum hapax_status list_hours(
	struct exchange *exchange, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	struct hapax_counters row = {.hour_ms = -1};
	bool stops = false;

	for (;;) {
		struct hapax_bytes rest;
		int64_t count = 0;
		enum hapax_status status;

		begin(exchange, HX_REDIS_HOURS, 2);
		hx_resp_word_integer(&exchange->command, row.hour_ms);
		hx_resp_word_integer(&exchange->command, HAPAX_DECISION_COUNT);
		status = ask(exchange, &rest, &count, err);
		if (status != HAPAX_OK || count == 0)
			return status;
		if (!hx_resp_next_integer(&rest, &row.hour_ms) ||
		    !hand_out_hour(rest, &row, stats, each, context, &stops))
			return refuse_form(err);
	}
}

static void prepare_stats(struct exchange *exchange, void *context)
{
	(void)context;
	begin(exchange, HX_REDIS_STATS, 0);
}

/* Add the numbers of one partition to stats. */
static enum hapax_status take_stats(
	struct exchange *exchange, struct hapax_bytes rest, int64_t count, void *context,
	struct hapax_error *err)
{
	struct hapax_stats *stats = context;
	int64_t numbers[8] = {0};

	(void)exchange;
	for (int i = 0; i < 8; i++) {
		if (count != 8 || !hx_resp_next_integer(&rest, &numbers[i]))
			return refuse_form(err);
	}
	if (numbers[0] > stats->now_ms)
		stats->now_ms = numbers[0];
	if ((uint64_t)numbers[1] > stats->token)
		stats->token = (uint64_t)numbers[1];
	stats->bytes += (uint64_t)numbers[2];
	stats->claimed += (uint64_t)numbers[3];
	stats->done += (uint64_t)numbers[4];
	stats->failed += (uint64_t)numbers[5];
	stats->parked += (uint64_t)numbers[6];
	stats->expired += (uint64_t)numbers[7];
	return HAPAX_OK;
}

enum hapax_status hx_redis_stats(
	struct hx_redis_client *client, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	const struct hapax_clock *clock = client->options->clock;
	struct exchange exchange;
	enum hapax_status status =
		ask_all(client, 0, hx_redis_partition_count(client->place), prepare_stats,
			take_stats, stats, err);

	exchange_init(&exchange, client);
	if (status == HAPAX_OK) {
		stats->skew_ms = stats->now_ms - clock->wall_ms(clock->context);
		stats->keys = stats->claimed + stats->done + stats->failed + stats->parked;
		stats->swept = atomic_load_explicit(&client->removed, memory_order_relaxed);
		/* The first partition counts the decisions. */
		status = list_hours(&exchange, stats, each, context, err);
	}
	exchange_done(&exchange);
	return status;
}
