/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_session.c - the greeting: commands before the first operation.
 */
#include "store/redis/redis_session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/resp/resp_reply.h"

enum step {
	STEP_NAME,
	STEP_INFO,
	STEP_FSYNC,
	STEP_REWRITE,
	STEP_VERSION,
	STEP_CREATE,
	STEP_SET_EPOCH,
	STEP_GET_EPOCH,
	STEP_SCRIPT, /* and the following, in the order of enum hx_redis_script */
};

enum {
	VERSION_MIN = 600, /* 6.0: replicates the effects of scripts, and allows TIME in them */
};

static enum hapax_status say(struct hapax_buf *buf, const char *const *words, size_t count)
{
	struct hx_resp_words command;

	hx_resp_words_begin(&command, buf, count);
	for (size_t i = 0; i < count; i++)
		hx_resp_word_text(&command, words[i]);
	return command.status;
}

#define SAY(buf, ...)                                \
	say(buf, (const char *const[]){__VA_ARGS__}, \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static enum hapax_status say_step(
	const struct hx_redis_session *session, struct hapax_buf *buf, unsigned step)
{
	const struct hapax_clock *clock = session->clock;
	char text[HX_REDIS_PREFIX_SIZE_MAX + 16];
	char epoch[24];

	(void)snprintf(text, sizeof(text), "%s:meta", session->place->prefix);
	switch (step) {
	case STEP_NAME: return SAY(buf, "CLIENT", "SETNAME", "hapax");
	case STEP_INFO: return SAY(buf, "INFO");
	case STEP_FSYNC: return SAY(buf, "CONFIG", "GET", "appendfsync");
	case STEP_REWRITE: return SAY(buf, "CONFIG", "GET", "no-appendfsync-on-rewrite");
	case STEP_VERSION: return SAY(buf, "HGET", text, "version");
	case STEP_CREATE: return SAY(buf, "HSETNX", text, "version", "1");
	case STEP_SET_EPOCH:
		(void)snprintf(
			epoch, sizeof(epoch), "%lld",
			(long long)(clock->wall_ms(clock->context) - clock->boot_ms(clock->context)));
		return SAY(buf, "HSETNX", text, "epoch", epoch);
	case STEP_GET_EPOCH: return SAY(buf, "HGET", text, "epoch");
	default: return hx_redis_script_load(buf, (enum hx_redis_script)(step - STEP_SCRIPT));
	}
}

static enum hapax_status add_step(
	struct hx_redis_session *session, struct hapax_buf *buf, unsigned step)
{
	assert(session->step_count < HX_COUNT(session->steps));
	session->steps[session->step_count++] = step;
	return say_step(session, buf, step);
}

static enum hapax_status add_scripts(struct hx_redis_session *session, struct hapax_buf *buf)
{
	enum hapax_status status = HAPAX_OK;

	for (unsigned i = 0; i < HX_REDIS_SCRIPT_COUNT && status == HAPAX_OK; i++)
		status = add_step(session, buf, STEP_SCRIPT + i);
	return status;
}

enum hapax_status hx_redis_session_begin(struct hx_redis_session *session, struct hapax_buf *buf)
{
	static const unsigned steps[] = {STEP_NAME, STEP_INFO, STEP_FSYNC, STEP_REWRITE};
	enum hapax_status status = HAPAX_OK;

	session->step_count = 0;
	session->step_next = 0;
	memset(&session->server, 0, sizeof(session->server));
	for (size_t i = 0; i < HX_COUNT(steps) && status == HAPAX_OK; i++)
		status = add_step(session, buf, steps[i]);
	if (status == HAPAX_OK)
		status = add_scripts(session, buf);
	/* In a Cluster one server has these: cluster.c asks for them. */
	if (status != HAPAX_OK || session->place->is_cluster)
		return status;
	if (session->clock != NULL)
		status = add_step(session, buf, STEP_SET_EPOCH);
	if (status == HAPAX_OK && session->clock != NULL)
		status = add_step(session, buf, STEP_GET_EPOCH);
	return status == HAPAX_OK ? add_step(session, buf, STEP_VERSION) : status;
}

enum hapax_status hx_redis_session_reload(struct hx_redis_session *session, struct hapax_buf *buf)
{
	session->step_count = 0;
	session->step_next = 0;
	return add_scripts(session, buf);
}

/* "name:value" of INFO; false: no such line. */
static bool find_line(struct hapax_bytes info, const char *name, struct hapax_bytes *ret_value)
{
	const char *at = info.data;
	const char *end = at + info.size;
	size_t size = strlen(name);

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		const char *stop = line_end == NULL ? end : line_end;

		if ((size_t)(stop - at) > size && memcmp(at, name, size) == 0 && at[size] == ':') {
			const char *value = at + size + 1;

			if (stop > value && stop[-1] == '\r')
				stop--;
			*ret_value = hx_bytes(value, (size_t)(stop - value));
			return true;
		}
		at = stop + 1;
	}
	return false;
}

static bool line_is(struct hapax_bytes info, const char *name, const char *expected)
{
	struct hapax_bytes value;

	return find_line(info, name, &value) &&
		hx_bytes_equal(value, hx_bytes(expected, strlen(expected)));
}

static int64_t line_number(struct hapax_bytes info, const char *name)
{
	struct hapax_bytes value;
	int64_t number = 0;

	if (!find_line(info, name, &value) || !hx_resp_parse_integer(value, &number))
		return 0;
	return number;
}

/* "7.0.15" is 700. */
static unsigned read_version(struct hapax_bytes info)
{
	struct hapax_bytes value;
	unsigned parts[2] = {0, 0};
	size_t at = 0;

	if (!find_line(info, "redis_version", &value))
		return 0;
	for (size_t i = 0; i < value.size && at < 2; i++) {
		char byte = ((const char *)value.data)[i];

		if (byte >= '0' && byte <= '9' && parts[at] < 1000)
			parts[at] = parts[at] * 10 + (unsigned)(byte - '0');
		else
			at++;
	}
	return parts[0] * 100 + parts[1];
}

void hx_redis_server_read(struct hx_redis_server *server, struct hapax_bytes info)
{
	struct hapax_bytes policy = {NULL, 0};

	server->version = read_version(info);
	server->is_master = line_is(info, "role", "master");
	server->is_loading = line_is(info, "loading", "1");
	server->is_cluster = line_is(info, "redis_mode", "cluster");
	server->has_log = line_is(info, "aof_enabled", "1");
	server->replica_count = (uint64_t)line_number(info, "connected_slaves");
	if (find_line(info, "maxmemory_policy", &policy))
		(void)snprintf(
			server->policy, sizeof(server->policy), "%.*s",
			(int)(policy.size < sizeof(server->policy) ? policy.size : 31),
			(const char *)policy.data);
	/* volatile-* only evicts keys with a time to live in the server; ours have none. */
	server->evicts =
		line_number(info, "maxmemory") != 0 && strncmp(server->policy, "allkeys", 7) == 0;
}

bool hx_redis_guarantee(
	const struct hx_redis_server *server, char guarantee[HX_REDIS_GUARANTEE_SIZE])
{
	bool is_durable =
		server->has_log && server->syncs_always && !server->skips_sync && !server->evicts;
	const char *survives = "nothing survives a restart of the server unless it saves first";

	if (server->has_log && server->syncs_always && server->skips_sync)
		survives = "answers survive a power cut, except while the log is rewritten";
	else if (server->has_log && server->syncs_always)
		survives = "answers survive a power cut";
	else if (server->has_log)
		survives = "a power cut may lose about the last second";
	(void)snprintf(
		guarantee, HX_REDIS_GUARANTEE_SIZE, "%s%s%s", survives,
		server->evicts ? "; records are evicted when memory is full" : "",
		server->replica_count > 0
			? "; a failover may lose answers that are not yet replicated, and tokens "
			  "continue by the clock of the new master"
			: "");
	return is_durable;
}

static enum hx_redis_session_result refuse_error(
	const struct hx_redis_session *session, const struct hx_resp_value *value,
	struct hapax_error *err)
{
	int size = (int)(value->text.size < 120 ? value->text.size : 120);
	const char *text = value->text.data;

	if (hx_resp_is_error(value, "NOPERM"))
		(void)hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the Redis user lacks a permission: '%.*s'; grant +@all on '%s:*', or "
			"+eval +evalsha +script|load +info and the commands of the scripts",
			size, text, session->place->prefix);
	else
		(void)hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "Redis answered '%.*s'", size, text);
	return HX_REDIS_SESSION_REFUSED;
}

/* Judge the server's properties. */
static enum hx_redis_session_result judge(struct hx_redis_session *session, struct hapax_error *err)
{
	const struct hx_redis_server *server = &session->server;

	session->is_durable = hx_redis_guarantee(server, session->guarantee);
	if (server->version < VERSION_MIN)
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"Redis %u.%u is too old: version 6.0 or later is required",
			server->version / 100, server->version % 100);
	else if (server->is_cluster && !session->place->is_cluster)
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"this server is part of a Redis Cluster; use %s+cluster://",
			session->place->has_tls ? "rediss" : "redis");
	else if (!server->is_cluster && session->place->is_cluster)
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"this server is not part of a Redis Cluster; use %s://",
			session->place->has_tls ? "rediss" : "redis");
	else if (!server->is_master)
		(void)hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0,
			"this Redis server is a replica; use the address of its master");
	else if (server->is_loading)
		(void)hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "Redis is loading its data; retry later");
	else if (server->evicts && !session->place->allows_eviction)
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"maxmemory-policy is %s: Redis would forget records when memory is "
			"full; set it to noeviction, or accept this with ?allow=eviction",
			server->policy);
	else if (session->must_be_durable && !session->is_durable)
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the store must be durable, but on this Redis %s; set appendonly yes "
			"and appendfsync always",
			session->guarantee);
	else
		return HX_REDIS_SESSION_MORE;
	return HX_REDIS_SESSION_REFUSED;
}

/* True if CONFIG GET answered, with that value. */
static bool setting_is(struct hapax_bytes rest, const char *expected)
{
	struct hx_resp_value value;
	struct hapax_bytes text;

	if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY || value.integer != 2 ||
	    !hx_resp_next(&rest, &value) || !hx_resp_next(&rest, &value) ||
	    !hx_resp_text(&value, &text))
		return false;
	return hx_bytes_equal(text, hx_bytes(expected, strlen(expected)));
}

static enum hx_redis_session_result refuse_reply(struct hapax_error *err)
{
	(void)hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "the server does not speak the Redis protocol");
	return HX_REDIS_SESSION_REFUSED;
}

static enum hx_redis_session_result take_script(
	struct hx_redis_session *session, unsigned step, const struct hx_resp_value *value,
	struct hapax_error *err)
{
	struct hapax_bytes sha;

	if (!hx_resp_text(value, &sha) || sha.size != HX_REDIS_SHA_SIZE)
		return refuse_reply(err);
	/* Write only a change: other threads read it. */
	if (memcmp(session->scripts->sha[step - STEP_SCRIPT], sha.data, sha.size) != 0)
		memcpy(session->scripts->sha[step - STEP_SCRIPT], sha.data, sha.size);
	return HX_REDIS_SESSION_MORE;
}

static enum hx_redis_session_result take_version(
	struct hx_redis_session *session, const struct hx_resp_value *value, struct hapax_buf *buf,
	struct hapax_error *err)
{
	int64_t version = 0;

	if (value->type == HX_RESP_NULL) {
		if (session->must_exist) {
			(void)hx_error_set(
				err, HAPAX_ERR_UNAVAILABLE, 0,
				"this Redis has no store with the key prefix '%s'",
				session->place->prefix);
			return HX_REDIS_SESSION_REFUSED;
		}
		if (add_step(session, buf, STEP_CREATE) != HAPAX_OK) {
			(void)hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
			return HX_REDIS_SESSION_REFUSED;
		}
		return HX_REDIS_SESSION_MORE;
	}
	if (!hx_resp_integer(value, &version) || version < 1) {
		(void)hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"key '%s:meta' does not belong to hapax; choose another key prefix with "
			"?prefix=NAME",
			session->place->prefix);
		return HX_REDIS_SESSION_REFUSED;
	}
	if (version > HX_REDIS_FORMAT) {
		(void)hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"the store has format %lld, and this hapax supports %d; use a newer hapax",
			(long long)version, HX_REDIS_FORMAT);
		return HX_REDIS_SESSION_REFUSED;
	}
	return HX_REDIS_SESSION_MORE;
}

static bool is_error(const struct hx_resp_value *value)
{
	return value->type == HX_RESP_ERROR || value->type == HX_RESP_BULK_ERROR;
}

static enum hx_redis_session_result redis_session_take(
	struct hx_redis_session *session, unsigned step, struct hapax_bytes reply,
	struct hapax_buf *buf, struct hapax_error *err)
{
	struct hapax_bytes rest = reply;
	struct hx_resp_value value;
	struct hapax_bytes text;

	if (!hx_resp_next(&rest, &value))
		return refuse_reply(err);
	/* Managed servers hide CONFIG; its settings are then not promised. */
	if (is_error(&value) && step != STEP_NAME && step != STEP_FSYNC && step != STEP_REWRITE)
		return refuse_error(session, &value, err);
	switch (step) {
	case STEP_INFO:
		if (!hx_resp_text(&value, &text))
			return refuse_reply(err);
		hx_redis_server_read(&session->server, text);
		return HX_REDIS_SESSION_MORE;
	case STEP_FSYNC:
		session->server.syncs_always = setting_is(reply, "always");
		return HX_REDIS_SESSION_MORE;
	case STEP_REWRITE:
		session->server.skips_sync = !setting_is(reply, "no");
		return judge(session, err);
	case STEP_GET_EPOCH:
		if (!hx_resp_integer(&value, &session->epoch_ms))
			return refuse_reply(err);
		return HX_REDIS_SESSION_MORE;
	case STEP_VERSION: return take_version(session, &value, buf, err);
	case STEP_NAME:
	case STEP_SET_EPOCH:
	case STEP_CREATE: return HX_REDIS_SESSION_MORE;
	default: return take_script(session, step, &value, err);
	}
}

enum hx_redis_session_result hx_redis_session_reply(
	struct hx_redis_session *session, struct hapax_bytes reply, struct hapax_buf *buf,
	struct hapax_error *err)
{
	enum hx_redis_session_result result;

	if (session->step_next >= session->step_count)
		return refuse_reply(err);
	result = redis_session_take(session, session->steps[session->step_next++], reply, buf, err);
	if (result == HX_REDIS_SESSION_MORE && session->step_next == session->step_count)
		return HX_REDIS_SESSION_READY;
	return result;
}
