/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - what is asked of the ledger as a whole.
 */
#include "store/redis/walk.h"

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/redis/script.h"
#include "wire/resp_reply.h"

enum {
	/* A script that looks at so many records takes a millisecond or two. */
	SCAN_COUNT_MAX = 200,
	SWEEP_COUNT_MAX = 200,
	ROWS_AT_ONCE = 64,

	/* Results of one page; the last record may go beyond it. */
	PAGE_BYTES = 1024 * 1024,

	COMMAND_SIZE_MAX = 1024 * 1024,
	REPLY_SIZE_MAX = 64 * 1024 * 1024,
};

/* A command and its reply. */
struct exchange {
	struct hx_redis_client *client;
	struct hapax_buf command;
	struct hapax_buf reply;
	enum hapax_status status; /* of making the command */
	unsigned partition;       /* that is asked */
};

static void exchange_init(struct exchange *exchange, struct hx_redis_client *client)
{
	exchange->client = client;
	exchange->partition = 0;
	exchange->status = HAPAX_OK;
	hx_buf_init(&exchange->command, COMMAND_SIZE_MAX);
	hx_buf_init(&exchange->reply, REPLY_SIZE_MAX);
}

static void exchange_done(struct exchange *exchange)
{
	hx_buf_done(&exchange->command);
	hx_buf_done(&exchange->reply);
}

static void begin(struct exchange *exchange, enum hx_redis_script script, size_t arguments)
{
	struct hx_redis_client *client = exchange->client;

	char text[HX_REDIS_PARTITION_PREFIX_SIZE];
	struct hapax_bytes prefix = {text, 0};

	prefix.size = hx_redis_partition_prefix(client->place, exchange->partition, text);
	hx_buf_clear(&exchange->command);
	exchange->status = hx_redis_script_begin(
		&exchange->command, &client->scripts, script, prefix, 0, arguments);
	if (exchange->status == HAPAX_OK)
		exchange->status = hx_redis_script_arguments(
			&exchange->command, prefix, hx_redis_client_now_ms(client));
}

static void add_bytes(struct exchange *exchange, struct hapax_bytes bytes)
{
	if (exchange->status == HAPAX_OK)
		exchange->status = hx_resp_put_bulk(&exchange->command, bytes);
}

static void add_integer(struct exchange *exchange, int64_t value)
{
	if (exchange->status == HAPAX_OK)
		exchange->status = hx_resp_put_bulk_integer(&exchange->command, value);
}

static enum hapax_status refuse_form(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_CORRUPT, 0, "the server's reply has another form than expected");
}

/* Send it; *ret_rest is behind the head of an array of *ret_count. */
static enum hapax_status ask(
	struct exchange *exchange, struct hapax_bytes *ret_rest, int64_t *ret_count,
	struct hapax_error *err)
{
	struct hapax_bytes command = {exchange->command.data, exchange->command.size};
	struct hx_resp_value value;
	enum hapax_status status = exchange->status;
	bool is_gone;

	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "no memory to ask Redis");
	status = hx_redis_client_call(
		exchange->client, exchange->partition, command, &exchange->reply, err);
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

static bool next_integer(struct hapax_bytes *rest, int64_t *ret_integer)
{
	struct hx_resp_value value;

	return hx_resp_next(rest, &value) && hx_resp_integer(&value, ret_integer);
}

static bool next_text(struct hapax_bytes *rest, struct hapax_bytes *ret_text)
{
	struct hx_resp_value value;

	return hx_resp_next(rest, &value) && hx_resp_text(&value, ret_text);
}

/* ---------------------------------------------------------------- scan */

/*
 * A cursor holds the last record that was looked at: the sizes of tenant, group and key
 * as two bytes each, then the three.
 */
enum { PLACE_HEAD = 6 };

_Static_assert(
	PLACE_HEAD + 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX <=
		sizeof(((struct hapax_cursor *)0)->place),
	"any record fits a cursor");

static void keep_part(struct hapax_cursor *cursor, int number, struct hapax_bytes part)
{
	cursor->place[2 * number] = (unsigned char)part.size;
	cursor->place[2 * number + 1] = (unsigned char)(part.size >> 8);
	memcpy(cursor->place + cursor->size, part.data, part.size);
	cursor->size += (uint32_t)part.size;
}

static void keep_place(struct hapax_cursor *cursor, const struct hapax_record *record)
{
	cursor->size = PLACE_HEAD;
	keep_part(cursor, 0, record->tenant);
	keep_part(cursor, 1, record->group);
	keep_part(cursor, 2, record->key);
}

static bool read_place(
	const struct hapax_cursor *cursor, struct hapax_bytes *tenant, struct hapax_bytes *group,
	struct hapax_bytes *key)
{
	const unsigned char *place = cursor->place;
	size_t sizes[3];
	size_t at = PLACE_HEAD;

	for (int i = 0; i < 3; i++)
		sizes[i] = (size_t)(place[2 * i] | place[2 * i + 1] << 8);
	if (sizes[0] > HX_SCOPE_PART_SIZE_MAX || sizes[1] > HX_SCOPE_PART_SIZE_MAX ||
	    sizes[2] > HX_KEY_SIZE_MAX ||
	    cursor->size != PLACE_HEAD + sizes[0] + sizes[1] + sizes[2])
		return false;
	*tenant = hx_bytes(place + at, sizes[0]);
	*group = hx_bytes(place + at + sizes[0], sizes[1]);
	*key = hx_bytes(place + at + sizes[0] + sizes[1], sizes[2]);
	return true;
}

/* Where to begin, as ZRANGEBYLEX takes it: behind the cursor, or where the filter begins. */
static enum hapax_status put_start(
	struct hapax_buf *start, const struct hapax_scan *scan, const struct hapax_cursor *cursor,
	struct hapax_error *err)
{
	struct hapax_bytes tenant, group, key;
	enum hapax_status status;

	if (cursor->size == 0 && (scan->tenant.size == 0 || scan->group.size == 0))
		return hx_buf_append_byte(start, '-');
	if (cursor->size == 0) {
		tenant = scan->tenant;
		group = scan->group;
		key = scan->prefix;
	} else if (!read_place(cursor, &tenant, &group, &key)) {
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the cursor is of another store");
	}
	status = hx_buf_append_byte(start, cursor->size == 0 ? '[' : '(');
	return status == HAPAX_OK ? hx_redis_member_append(start, tenant, group, key) : status;
}

static bool is_wanted(
	const struct hapax_scan *scan, const struct hapax_record *record, int64_t now_ms)
{
	if (scan->tenant.size != 0 && !hx_bytes_equal(scan->tenant, record->tenant))
		return false;
	if (scan->group.size != 0 && !hx_bytes_equal(scan->group, record->group))
		return false;
	if (scan->prefix.size > record->key.size ||
	    !hx_bytes_equal(scan->prefix, hx_bytes(record->key.data, scan->prefix.size)))
		return false;
	if (scan->state != HAPAX_STATE_ABSENT && scan->state != record->state)
		return false;
	return (scan->flags & HAPAX_SCAN_EXPIRED) || !hx_record_is_expired(record, now_ms);
}

/* Scope and key of the filter are known, and the record lies behind the last that has them. */
static bool is_behind(const struct hapax_scan *scan, const struct hapax_record *record)
{
	return scan->tenant.size != 0 && scan->group.size != 0 &&
		!(hx_bytes_equal(scan->tenant, record->tenant) &&
	          hx_bytes_equal(scan->group, record->group));
}

static enum hapax_status hand_out_page(
	struct hapax_bytes rest, int64_t count, const struct hapax_scan *scan,
	struct hapax_cursor *cursor, hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	unsigned char scratch[2 * HX_SCOPE_PART_SIZE_MAX];
	struct hapax_bytes at_end;
	int64_t now_ms = 0;
	bool stops = false;

	if (count < 2 || !next_integer(&rest, &now_ms) || !next_text(&rest, &at_end))
		return refuse_form(err);
	for (int64_t i = 2; i + 1 < count && !stops; i += 2) {
		struct hapax_record record, named = {0};
		struct hapax_bytes member;
		bool is_present;

		if (!next_text(&rest, &member) ||
		    !hx_redis_record_read(&rest, NULL, &record, &is_present))
			return refuse_form(err);
		if (!hx_redis_member_split(
			    member, scratch, &named.tenant, &named.group, &named.key))
			return refuse_form(err);
		record.tenant = named.tenant;
		record.group = named.group;
		record.key = named.key;
		keep_place(cursor, &named);
		if (is_behind(scan, &named)) {
			cursor->done = 1;
			return HAPAX_OK;
		}
		if (is_present && hx_record_is_valid(&record) && is_wanted(scan, &record, now_ms))
			stops = each(&record, context) != 0;
		/* Stopped at the last one of all: the next call finds that out. */
	}
	if (!stops && at_end.size != 0)
		cursor->done = 1;
	return HAPAX_OK;
}

enum hapax_status hx_redis_scan(
	struct hx_redis_client *client, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	size_t count_max = scan->count_max < SCAN_COUNT_MAX ? scan->count_max : SCAN_COUNT_MAX;
	struct exchange exchange;
	struct hapax_buf start;
	struct hapax_bytes rest;
	int64_t count = 0;
	enum hapax_status status;

	exchange_init(&exchange, client);
	hx_buf_init(&start, 6 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 8);
	status = put_start(&start, scan, cursor, err);
	if (status == HAPAX_ERR_NO_MEMORY)
		(void)hx_error_set(err, status, 0, "no memory to scan");
	if (status == HAPAX_OK) {
		begin(&exchange, HX_REDIS_SCAN, 3);
		add_bytes(&exchange, hx_bytes(start.data, start.size));
		add_integer(&exchange, (int64_t)count_max);
		add_integer(&exchange, PAGE_BYTES);
		status = ask(&exchange, &rest, &count, err);
	}
	if (status == HAPAX_OK)
		status = hand_out_page(rest, count, scan, cursor, each, context, err);
	hx_buf_done(&start);
	exchange_done(&exchange);
	return status;
}

/* ---------------------------------------------------------------- sweep */

static enum hapax_status sweep_some(
	struct exchange *exchange, size_t count_max, struct hapax_sweep *sweep,
	struct hapax_error *err)
{
	int64_t looked = 0, removed = 0, lapsed = 0, remaining = 0, count = 0;
	struct hapax_bytes rest;
	enum hapax_status status;

	begin(exchange, HX_REDIS_SWEEP, 1);
	add_integer(exchange, (int64_t)count_max);
	status = ask(exchange, &rest, &count, err);
	if (status != HAPAX_OK)
		return status;
	if (count != 4 || !next_integer(&rest, &looked) || !next_integer(&rest, &removed) ||
	    !next_integer(&rest, &lapsed) || !next_integer(&rest, &remaining))
		return refuse_form(err);
	sweep->looked += (uint64_t)looked;
	sweep->removed += (uint64_t)removed;
	sweep->lapsed += (uint64_t)lapsed;
	sweep->remaining = (uint64_t)remaining;
	sweep->done = (uint64_t)looked < count_max;
	atomic_fetch_add_explicit(
		&exchange->client->removed, (uint64_t)removed, memory_order_relaxed);
	return HAPAX_OK;
}

enum hapax_status hx_redis_sweep(
	struct hx_redis_client *client, struct hapax_sweep *sweep, struct hapax_error *err)
{
	size_t left = sweep->count_max;
	struct exchange exchange;
	enum hapax_status status = HAPAX_OK;

	exchange_init(&exchange, client);
	while (status == HAPAX_OK && left > 0 && !sweep->done) {
		size_t count = left < SWEEP_COUNT_MAX ? left : SWEEP_COUNT_MAX;

		status = sweep_some(&exchange, count, sweep, err);
		left -= count;
	}
	exchange_done(&exchange);
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
		add_integer(&exchange, HAPAX_DECISION_COUNT);
		for (size_t i = first; i < end; i++) {
			hx_buf_clear(&scope);
			if (exchange.status == HAPAX_OK)
				exchange.status = hx_redis_scope_append(
					&scope, rows[i].tenant, rows[i].group);
			add_bytes(&exchange, hx_bytes(scope.data, scope.size));
			for (int k = 0; k < HAPAX_DECISION_COUNT; k++)
				add_integer(&exchange, (int64_t)rows[i].counts[k]);
		}
		status = ask(&exchange, &rest, &ignored, err);
		/* Adding them again might count twice; counters may lose a second, not gain one. */
		if (status == HAPAX_ERR_UNCERTAIN)
			status = HAPAX_OK;
	}
	hx_buf_done(&scope);
	exchange_done(&exchange);
	return status;
}

/* A scope as hx_redis_scope_append() writes it; its names are unescaped into scratch. */
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

/* The rows of one hour. *ret_stops: the callback wants no more. */
static bool hand_out_hour(
	struct hapax_bytes rest, struct hapax_counters *row, struct hapax_stats *stats,
	hapax_counters_fn *each, void *context, bool *ret_stops)
{
	unsigned char scratch[2 * HX_SCOPE_PART_SIZE_MAX];
	struct hapax_bytes scope;

	while (next_text(&rest, &scope)) {
		for (int i = 0; i < HAPAX_DECISION_COUNT; i++) {
			int64_t count = 0;

			if (!next_integer(&rest, &count) || count < 0)
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
		add_integer(exchange, row.hour_ms);
		add_integer(exchange, HAPAX_DECISION_COUNT);
		status = ask(exchange, &rest, &count, err);
		if (status != HAPAX_OK || count == 0)
			return status;
		if (!next_integer(&rest, &row.hour_ms) ||
		    !hand_out_hour(rest, &row, stats, each, context, &stops))
			return refuse_form(err);
	}
}

enum hapax_status hx_redis_stats(
	struct hx_redis_client *client, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	const struct hapax_clock *clock = client->options->clock;
	int64_t numbers[8] = {0};
	struct exchange exchange;
	struct hapax_bytes rest;
	int64_t count = 0;
	enum hapax_status status;

	exchange_init(&exchange, client);
	begin(&exchange, HX_REDIS_STATS, 0);
	status = ask(&exchange, &rest, &count, err);
	for (int i = 0; i < 8 && status == HAPAX_OK; i++) {
		if (count != 8 || !next_integer(&rest, &numbers[i]))
			status = refuse_form(err);
	}
	if (status == HAPAX_OK) {
		stats->now_ms = numbers[0];
		stats->skew_ms = numbers[0] - clock->wall_ms(clock->context);
		stats->token = (uint64_t)numbers[1];
		stats->bytes = (uint64_t)numbers[2];
		stats->claimed = (uint64_t)numbers[3];
		stats->done = (uint64_t)numbers[4];
		stats->failed = (uint64_t)numbers[5];
		stats->parked = (uint64_t)numbers[6];
		stats->expired = (uint64_t)numbers[7];
		stats->keys = stats->claimed + stats->done + stats->failed + stats->parked;
		stats->swept = atomic_load_explicit(&client->removed, memory_order_relaxed);
		status = list_hours(&exchange, stats, each, context, err);
	}
	exchange_done(&exchange);
	return status;
}
