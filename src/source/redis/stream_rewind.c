/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_rewind.c - sets the group of a Redis stream back.
 *
 * Redis does so while the group has members, and they would read the old entries before their keys
 * are forgotten. So a group with a member that was there lately is refused. A dead member's entries
 * do no harm: all are delivered again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/time.h"
#include "source/redis/redis_private.h"
#include "source/source.h"
#include "wire/resp/resp_reply.h"

enum {
	ANSWER_MS = 10 * 1000,
	TURN_MS = 50,
	/* A member asks for entries once a second, and a paused one keeps those it has. */
	GONE_MS = 30 * 1000,
};

struct rewind {
	struct hx_stream_place place;
	struct hx_reactor reactor;
	struct hx_resolver resolver;
	struct hx_tls_context *tls;
	struct hx_redis_line line;
	char id[HX_REDIS_ID_SIZE];
	bool is_asked; /* about members; the next reply is that of the change */
	bool is_over;
	bool is_closed;
	enum hapax_status status;
	struct hapax_error *err;
};

static void on_ready(struct hx_redis_line *line)
{
	struct rewind *rewind = line->context;

	rewind->is_asked = false;
	hx_redis_line_command(
		line, 0,
		HX_REDIS_WORDS("XINFO", "CONSUMERS", rewind->place.stream, rewind->place.group));
	(void)hx_redis_line_send(line);
}

/* [[name, member, pending, n, idle, ms, ...], ...]. False: one was there lately. */
static bool are_gone(struct rewind *rewind, int64_t members, struct hapax_bytes rest)
{
	for (int64_t i = 0; i < members; i++) {
		struct hx_resp_value member, value;
		struct hapax_bytes fact, name = {"", 0};
		int64_t idle_ms = 0;

		(void)hx_resp_next(&rest, &member);
		for (int64_t k = 0; k + 1 < member.integer; k += 2) {
			if (!hx_resp_next_text(&rest, &fact) || !hx_resp_next(&rest, &value))
				break;
			if (hx_bytes_equal(fact, HX_BYTES_LIT("name")))
				(void)hx_resp_text(&value, &name);
			else if (hx_bytes_equal(fact, HX_BYTES_LIT("idle")))
				(void)hx_resp_integer(&value, &idle_ms);
		}
		if (idle_ms >= GONE_MS)
			continue;
		rewind->status = hx_error_set(
			rewind->err, HAPAX_ERR_UNAVAILABLE, 0,
			"group '%.100s' has members; stop its consumers first, and wait %d seconds "
			"('%.*s' was there %" PRId64 " ms ago)",
			rewind->place.group, GONE_MS / 1000,
			(int)(name.size < 100 ? name.size : 100), (const char *)name.data, idle_ms);
		return false;
	}
	return true;
}

static void on_reply(struct hx_redis_line *line, struct hapax_bytes reply)
{
	struct rewind *rewind = line->context;
	struct hx_resp_value value = {.type = HX_RESP_ERROR};

	rewind->is_over = true;
	rewind->status = HAPAX_OK;
	if (!hx_resp_next(&reply, &value) || value.type == HX_RESP_ERROR) {
		rewind->status = hx_error_set(
			rewind->err, HAPAX_ERR_UNAVAILABLE, 0,
			"could not set back group '%.100s': Redis: %.*s", rewind->place.group,
			(int)(value.text.size < 200 ? value.text.size : 200),
			(const char *)value.text.data);
	} else if (!rewind->is_asked && are_gone(rewind, value.integer, reply)) {
		rewind->is_asked = true;
		rewind->is_over = false;
		hx_redis_line_command(
			line, 0,
			HX_REDIS_WORDS(
				"XGROUP", "SETID", rewind->place.stream, rewind->place.group,
				rewind->id));
		(void)hx_redis_line_send(line);
	}
}

static void on_lost(struct hx_redis_line *line, const char *why)
{
	struct rewind *rewind = line->context;

	if (rewind->is_over)
		return;
	rewind->is_over = true;
	rewind->status = hx_error_set(rewind->err, HAPAX_ERR_UNAVAILABLE, 0, "%s", why);
}

static void on_closed(struct hx_redis_line *line)
{
	struct rewind *rewind = line->context;

	rewind->is_closed = true;
}

static const struct hx_redis_line_ops line_ops = {
	.ready = on_ready, .reply = on_reply, .lost = on_lost, .closed = on_closed};

static void exchange(struct rewind *rewind)
{
	int64_t until_ns = hx_reactor_now_ns(&rewind->reactor) + ANSWER_MS * HX_NS_PER_MS;

	rewind->status =
		hx_error_set(rewind->err, HAPAX_ERR_UNAVAILABLE, 0, "Redis did not answer in time");
	hx_redis_line_open(&rewind->line);
	while (!rewind->is_over && hx_reactor_now_ns(&rewind->reactor) < until_ns)
		hx_reactor_turn(&rewind->reactor, TURN_MS * HX_NS_PER_MS);
	rewind->is_over = true;
	hx_redis_line_close(&rewind->line);
	while (!rewind->is_closed)
		hx_reactor_turn(&rewind->reactor, TURN_MS * HX_NS_PER_MS);
}

static enum hapax_status connect_and_exchange(struct rewind *rewind)
{
	enum hapax_status status =
		hx_redis_connection_tls_context(&rewind->place.redis, &rewind->tls, rewind->err);

	if (status == HAPAX_OK)
		status = hx_reactor_init(&rewind->reactor, hx_net_system(), rewind->err);
	if (status != HAPAX_OK)
		return status;
	hx_resolver_init(&rewind->resolver, hx_net_system());
	status = hx_redis_line_init(
		&rewind->line, &rewind->reactor, &rewind->resolver, &rewind->place.redis,
		rewind->tls, &line_ops, rewind);
	if (status == HAPAX_OK) {
		rewind->line.reply_size_max = 64 * 1024;
		exchange(rewind);
		status = rewind->status;
	}
	hx_redis_line_done(&rewind->line);
	hx_resolver_done(&rewind->resolver);
	hx_reactor_done(&rewind->reactor);
	return status;
}

enum hapax_status hx_redis_rewind(const char *url, int64_t from_ms, struct hapax_error *err)
{
	struct rewind *rewind = hx_alloc_zero(1, sizeof(*rewind));
	enum hapax_status status;

	if (rewind == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	rewind->err = err;
	/* Entries after this one are read. */
	if (from_ms > 0)
		(void)snprintf(
			rewind->id, sizeof(rewind->id), "%" PRId64 "-%" PRIu64, from_ms - 1,
			UINT64_MAX);
	else
		(void)snprintf(rewind->id, sizeof(rewind->id), "0");
	status = hx_stream_place_parse(url, &rewind->place, err);
	if (status == HAPAX_OK)
		status = connect_and_exchange(rewind);
	hx_tls_context_free(rewind->tls);
	explicit_bzero(&rewind->place, sizeof(rewind->place));
	hx_free(rewind);
	return status;
}
