/* SPDX-License-Identifier: Apache-2.0 */
#include "store/server/server_walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/siphash.h"
#include "store/server/server_codec.h"
#include "wire/date.h"
#include "wire/percent.h"

enum {
	REPLY_SIZE_MAX = 64 * 1024 * 1024,
	SCRATCH_SIZE_MAX = 256 * 1024 * 1024,
	PATH_SIZE_MAX = 7 * 1024,
	/* Records carry their results, so a page is smaller than a daemon allows. */
	PAGE_MAX = 100,
};

/* A reply being read. */
struct page {
	struct hapax_buf text;
	struct hx_json_reader reader;
};

static void page_init(struct page *page)
{
	hx_buf_init(&page->text, REPLY_SIZE_MAX);
	hx_json_reader_init(&page->reader, SCRATCH_SIZE_MAX, NULL);
}

static void page_done(struct page *page)
{
	hx_buf_done(&page->text);
	hx_json_reader_done(&page->reader);
}

static enum hapax_status not_understood(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"could not read the answer: the server is not a hapax daemon, or has a different version");
}

static enum hapax_status ask(
	struct hx_server_client *client, const char *method, const char *path,
	struct hapax_bytes body, struct page *page, struct hapax_error *err)
{
	enum hapax_status status =
		hx_server_client_call(client, method, path, body, 0, &page->text, err);

	if (status != HAPAX_OK)
		return status;
	if (hx_json_reader_read(&page->reader, hapax_buf_bytes(&page->text), NULL) != HAPAX_OK)
		return not_understood(err);
	return HAPAX_OK;
}

static const struct hx_json_node *member(
	const struct page *page, const struct hx_json_node *object, const char *name)
{
	return object == NULL
		? NULL
		: hx_json_tree_member(&page->reader.tree, object, hapax_bytes_from_text(name));
}

static struct hapax_bytes text_of(const struct page *page, const struct hx_json_node *node)
{
	struct hx_json_string string;

	if (node == NULL || node->token.type != HX_JSON_STRING)
		return hx_bytes(NULL, 0);
	string = hx_json_node_string(&page->reader.tree, node);
	return hx_bytes(string.data, string.size);
}

/* A count in an object; 0 if it is missing. */
static int64_t number_of(
	const struct page *page, const struct hx_json_node *object, const char *name)
{
	const struct hx_json_node *node = member(page, object, name);
	struct hapax_bytes text;
	const char *at;
	int64_t sign = 1, value = 0;

	if (node == NULL || node->token.type != HX_JSON_NUMBER || node->token.escaped != 0)
		return 0;
	text = hx_json_node_text(&page->reader.tree, node);
	at = text.data;
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] == '-')
			sign = -1;
		else if (
			__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, at[i] - '0', &value))
			return 0;
	}
	return sign * value;
}

static uint64_t count_of(
	const struct page *page, const struct hx_json_node *object, const char *name)
{
	int64_t value = number_of(page, object, name);

	return value > 0 ? (uint64_t)value : 0;
}

/* ------------------------------------------------------------------ scan */

static enum hapax_status add_filter(
	struct hapax_buf *path, const char *name, struct hapax_bytes value)
{
	enum hapax_status status;

	if (value.size == 0)
		return HAPAX_OK;
	status = hx_buf_printf(path, "&%s=", name);
	return status == HAPAX_OK ? hx_percent_encode(path, value) : status;
}

/* The server's cursor is hexadecimal text; ours is the bytes. */
static enum hapax_status write_path(
	struct hapax_buf *path, const struct hapax_scan *scan, size_t limit,
	const struct hapax_cursor *cursor)
{
	enum hapax_status status = hx_buf_printf(path, "/keys?whole=true&limit=%zu", limit);

	if (status == HAPAX_OK && (scan->flags & HAPAX_SCAN_EXPIRED))
		status = hx_buf_printf(path, "&expired=true");
	if (status == HAPAX_OK && scan->state != HAPAX_STATE_ABSENT)
		status = hx_buf_printf(path, "&state=%s", hapax_state_name(scan->state));
	if (status == HAPAX_OK)
		status = add_filter(path, "tenant", scan->tenant);
	if (status == HAPAX_OK)
		status = add_filter(path, "group", scan->group);
	if (status == HAPAX_OK)
		status = add_filter(path, "prefix", scan->prefix);
	if (status == HAPAX_OK && cursor->size > 0) {
		status = hx_buf_printf(path, "&cursor=");
		if (status == HAPAX_OK)
			status = hx_buf_reserve(path, 2 * (size_t)cursor->size);
		if (status == HAPAX_OK) {
			hx_hex_encode(cursor->place, cursor->size, (char *)path->data + path->size);
			path->size += 2 * (size_t)cursor->size;
		}
	}
	return status == HAPAX_OK ? hx_buf_append_byte(path, '\0') : status;
}

static enum hapax_status read_cursor(
	const struct page *page, struct hapax_cursor *cursor, struct hapax_error *err)
{
	const struct hx_json_node *node = member(page, &page->reader.tree.nodes[0], "cursor");
	struct hapax_bytes text = text_of(page, node);

	if (node != NULL && node->token.type == HX_JSON_NULL) {
		cursor->done = 1;
		return HAPAX_OK;
	}
	if (text.size == 0 || text.size % 2 != 0 || text.size / 2 > sizeof(cursor->place) ||
	    !hx_hex_decode(text, cursor->place))
		return not_understood(err);
	cursor->size = (uint32_t)(text.size / 2);
	return HAPAX_OK;
}

/* Hand out a page. *ret_stopped: each ended the scan. */
static enum hapax_status hand_out(
	struct page *page, hapax_scan_fn *each, void *context, size_t *ret_count, bool *ret_stopped,
	struct hapax_error *err)
{
	struct hx_json_tree *tree = &page->reader.tree;
	const struct hx_json_node *keys = member(page, &tree->nodes[0], "keys");

	*ret_count = 0;
	*ret_stopped = false;
	if (keys == NULL || keys->token.type != HX_JSON_ARRAY)
		return not_understood(err);
	for (uint32_t at = keys->child; at != 0 && !*ret_stopped; at = tree->nodes[at].next) {
		unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
		struct hapax_record record;

		if (!hx_server_read_record(&page->reader, &tree->nodes[at], cause, &record))
			return not_understood(err);
		++*ret_count;
		*ret_stopped = each(&record, context) != 0;
	}
	return HAPAX_OK;
}

static enum hapax_status scan_page(
	struct hx_server_client *client, const struct hapax_scan *scan, size_t limit,
	struct hapax_cursor *cursor, struct page *page, struct hapax_error *err)
{
	struct hapax_buf path;
	enum hapax_status status;

	hx_buf_init(&path, PATH_SIZE_MAX);
	status = write_path(&path, scan, limit, cursor);
	if (status == HAPAX_OK)
		status = ask(client, "GET", (const char *)path.data, hx_bytes(NULL, 0), page, err);
	else
		(void)hx_error_set(err, status, 0, "not enough memory to ask the daemon");
	hx_buf_done(&path);
	return status;
}

/* Hash the names of the first count records of a page. */
static uint64_t names_of(struct page *page, size_t count)
{
	static const uint64_t key[2] = {0, 0};
	struct hx_json_tree *tree = &page->reader.tree;
	const struct hx_json_node *keys = member(page, &tree->nodes[0], "keys");
	uint64_t sum = 0;

	for (uint32_t at = keys != NULL ? keys->child : 0; at != 0 && count > 0;
	     at = tree->nodes[at].next, count--) {
		static const char *const names[] = {"tenant", "group", "key", "key_base64"};

		for (size_t i = 0; i < HX_COUNT(names); i++) {
			struct hapax_bytes text =
				text_of(page, member(page, &tree->nodes[at], names[i]));

			sum = sum * 1000003 + hx_siphash13(key, text.data, text.size);
		}
	}
	return sum + count;
}

/*
 * The caller stopped within a page. Its cursor is that of a page which ends there. If the records
 * have changed since, they are handed out again.
 */
static enum hapax_status stop_after(
	struct hx_server_client *client, const struct hapax_scan *scan, size_t count,
	struct hapax_cursor *cursor, struct page *page, struct hapax_error *err)
{
	uint64_t before = names_of(page, count);
	enum hapax_status status = scan_page(client, scan, count, cursor, page, err);

	if (status != HAPAX_OK || names_of(page, count) != before)
		return status;
	return read_cursor(page, cursor, err);
}

enum hapax_status hx_server_scan(
	struct hx_server_client *client, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	size_t left = scan->count_max;
	size_t limit = PAGE_MAX;
	bool is_stopped = false;
	enum hapax_status status = HAPAX_OK;
	struct page page;

	page_init(&page);
	while (status == HAPAX_OK && left > 0 && !cursor->done && !is_stopped) {
		size_t count;

		status = scan_page(client, scan, limit < left ? limit : left, cursor, &page, err);
		/* Large results: ask for fewer. */
		if (status == HAPAX_ERR_LIMIT && limit > 1) {
			limit /= 10;
			status = HAPAX_OK;
			continue;
		}
		if (status == HAPAX_OK)
			status = hand_out(&page, each, context, &count, &is_stopped, err);
		if (status != HAPAX_OK)
			break;
		left -= count < left ? count : left;
		if (is_stopped)
			status = stop_after(client, scan, count, cursor, &page, err);
		else
			status = read_cursor(&page, cursor, err);
	}
	page_done(&page);
	return status;
}

/* ------------------------------------------------------------------ stats */

static void read_counts(
	const struct page *page, const struct hx_json_node *object,
	uint64_t counts[HAPAX_DECISION_COUNT])
{
	const struct hx_json_node *decisions = member(page, object, "decisions");

	for (int d = 0; d < HAPAX_DECISION_COUNT; d++)
		counts[d] = count_of(page, decisions, hapax_decision_name((enum hapax_decision)d));
}

static void read_rows(struct page *page, hapax_counters_fn *each, void *context)
{
	struct hx_json_tree *tree = &page->reader.tree;
	const struct hx_json_node *hours = member(page, &tree->nodes[0], "hours");
	bool is_stopped = each == NULL || hours == NULL;

	for (uint32_t at = is_stopped ? 0 : hours->child; at != 0 && !is_stopped;
	     at = tree->nodes[at].next) {
		const struct hx_json_node *row = &tree->nodes[at];
		struct hapax_counters counters = {
			.tenant = text_of(page, member(page, row, "tenant")),
			.group = text_of(page, member(page, row, "group"))};

		(void)hx_date_parse(text_of(page, member(page, row, "hour")), &counters.hour_ms);
		read_counts(page, row, counters.counts);
		is_stopped = each(&counters, context) != 0;
	}
}

static enum hapax_status read_stats(
	struct page *page, struct hapax_stats *stats, unsigned *ret_capabilities,
	struct hapax_error *err)
{
	const struct hx_json_node *top = &page->reader.tree.nodes[0];
	const struct hx_json_node *states = member(page, top, "states");
	const struct hx_json_node *full;

	if (states == NULL ||
	    !hx_date_parse(text_of(page, member(page, top, "now")), &stats->now_ms))
		return not_understood(err);
	if (ret_capabilities != NULL)
		*ret_capabilities = (unsigned)count_of(page, top, "capabilities");
	stats->keys = count_of(page, top, "keys");
	stats->claimed = count_of(page, states, "claimed");
	stats->done = count_of(page, states, "done");
	stats->failed = count_of(page, states, "failed");
	stats->parked = count_of(page, states, "parked");
	stats->expired = count_of(page, top, "expired");
	stats->bytes = count_of(page, top, "bytes");
	stats->bytes_max = count_of(page, top, "bytes_max");
	stats->keys_max = count_of(page, top, "keys_max");
	stats->evicted = count_of(page, top, "evicted");
	stats->swept = count_of(page, top, "swept");
	stats->token = count_of(page, top, "token");
	stats->tidy_failures = count_of(page, top, "tidy_failures");
	stats->reserve_bytes = count_of(page, top, "reserve_bytes");
	full = member(page, top, "disk_full");
	stats->disk_full = full != NULL && full->token.type == HX_JSON_TRUE;
	read_counts(page, top, stats->counts);
	return HAPAX_OK;
}

enum hapax_status hx_server_stats(
	struct hx_server_client *client, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, unsigned *ret_capabilities, struct hapax_error *err)
{
	enum hapax_status status;
	struct page page;

	page_init(&page);
	status = ask(client, "GET", "/stats?hours=true", hx_bytes(NULL, 0), &page, err);
	if (status == HAPAX_OK)
		status = read_stats(&page, stats, ret_capabilities, err);
	if (status == HAPAX_OK)
		read_rows(&page, each, context);
	page_done(&page);
	return status;
}

/* ------------------------------------------------------------------ sweep */

enum hapax_status hx_server_sweep(
	struct hx_server_client *client, struct hapax_sweep *sweep, struct hapax_error *err)
{
	enum { COUNT_MAX = 1000000 };
	char body[64];
	enum hapax_status status;
	struct page page;
	int size = snprintf(
		body, sizeof(body), "{\"count_max\":%zu}",
		sweep->count_max < COUNT_MAX ? sweep->count_max : (size_t)COUNT_MAX);

	page_init(&page);
	status = ask(client, "POST", "/gc", hx_bytes(body, (size_t)size), &page, err);
	if (status == HAPAX_OK) {
		const struct hx_json_node *top = &page.reader.tree.nodes[0];
		const struct hx_json_node *done = member(&page, top, "done");

		sweep->looked = count_of(&page, top, "looked");
		sweep->removed = count_of(&page, top, "removed");
		sweep->lapsed = count_of(&page, top, "lapsed");
		sweep->remaining = count_of(&page, top, "remaining");
		sweep->done = done == NULL || done->token.type == HX_JSON_TRUE;
	}
	page_done(&page);
	return status;
}
