/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_setup.c - sets up the Redis door of every loop from the configuration.
 */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/audit.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "observe/logger/logger.h"
#include "serve/daemon/daemon.h"

enum { REMOTE_REFRESH_SECONDS = 600 };

static enum hapax_status make_users(struct hx_serve *serve, struct hapax_error *err)
{
	const struct hx_config_resp *resp = &serve->config->resp;

	serve->resp_users = hx_alloc_zero(resp->user_count + 1, sizeof(*serve->resp_users));
	if (serve->resp_users == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for the users");
	for (size_t i = 0; i < resp->user_count; i++) {
		const struct hx_config_resp_user *from = &resp->users[i];
		struct hx_resp_user *user = &serve->resp_users[i];

		user->name = hapax_bytes_from_text(from->name);
		user->tenant = hapax_bytes_from_text(from->tenant);
		user->group = hapax_bytes_from_text(from->group);
		/* It was checked when the configuration was read. */
		if (!hx_hex_decode(
			    hapax_bytes_from_text(from->password_sha256), user->password_sha256))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"resp.users: '%s' needs 'sha256', the SHA-256 of the "
				"password",
				from->name);
	}
	return HAPAX_OK;
}

/* A change to be audited on the control loop. */
struct change {
	struct hx_task task;
	struct hx_serve *serve;
	const char *action;
	char who[HX_API_WHO_SIZE];
	struct hapax_bytes tenant; /* within text, as group and key */
	struct hapax_bytes group;
	struct hapax_bytes key;
	unsigned char text[2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX];
};

static void note_change(struct hx_task *task)
{
	static const struct hapax_bytes detail = HX_BYTES_LIT("{\"door\":\"resp\"}");
	struct change *change = task->context;

	hx_audit_add(
		change->serve->api, change->who, "",
		&(struct hx_audit_entry){
			.action = change->action,
			.outcome = "applied",
			.tenant = change->tenant,
			.group = change->group,
			.key = change->key,
			.detail = detail});
	hx_free(change);
}

static struct hapax_bytes resp_setup_keep(
	struct change *change, size_t *used, struct hapax_bytes bytes)
{
	unsigned char *at = change->text + *used;

	if (bytes.size > 0)
		memcpy(at, bytes.data, bytes.size);
	*used += bytes.size;
	return hx_bytes(at, bytes.size);
}

/* Threads: a loop's. */
static void on_changed(const struct hx_resp_change *said, void *context)
{
	struct hx_serve *serve = context;
	struct change *change = hx_alloc_zero(1, sizeof(*change));
	size_t used = 0;

	if (change == NULL) {
		const struct hx_logger_field field = HX_LOGGER_TEXT("action", said->action);

		hx_logger_always(
			serve->log, HX_LOGGER_ERROR, "audit entry could not be written", &field, 1);
		return;
	}
	change->task = (struct hx_task){.fn = note_change, .context = change};
	change->serve = serve;
	change->action = said->action;
	(void)snprintf(
		change->who, sizeof(change->who), "%.*s", (int)said->user.size,
		said->user.size == 0 ? "" : (const char *)said->user.data);
	change->tenant = resp_setup_keep(change, &used, said->tenant);
	change->group = resp_setup_keep(change, &used, said->group);
	change->key = resp_setup_keep(change, &used, said->key);
	hx_reactor_post(&serve->reactor, &change->task);
}

/* The settings in force now. Threads: a loop's. */
static void tell_scope(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hx_resp_scope *ret_scope,
	void *context)
{
	struct hx_serve *serve = context;
	struct hx_config *config = hx_config_current_keep(&serve->current);
	const struct hx_config_scope *scope = hx_config_scope_find(config, tenant, group);

	*ret_scope = (struct hx_resp_scope){
		.lease_ms = scope->lease_ms, .ttl_ms = scope->ttl_ms, .on_lapse = scope->on_lapse};
	hx_config_release(config);
}

/* Its texts belong to the initial configuration, which is kept. */
static enum hapax_status make_service(struct hx_serve *serve, struct hapax_error *err)
{
	const struct hx_endpoint *endpoint = &serve->config->listen.resp.endpoint;
	const struct hx_config_resp *resp = &serve->config->resp;
	struct hx_resp_service_options options = {
		.store = serve->store,
		.user_count = resp->user_count,
		.value_size_max = serve->config->store.max_result,
		.bytes_max = serve->memory.plan.store,
		.budget = &serve->memory.listeners,
		.evict = serve->config->store.evict,
		.port = endpoint->is_unix ? 0 : endpoint->port,
		.changed = on_changed,
		.scope = tell_scope,
		.context = serve};
	enum hapax_status status = make_users(serve, err);

	if (status != HAPAX_OK)
		return status;
	options.users = serve->resp_users;
	if (resp->allow_flush)
		options.flags |= HX_RESP_ALLOW_FLUSH;
	if (resp->test_commands)
		options.flags |= HX_RESP_TEST_COMMANDS;
	hx_resp_service_init(&serve->resp, &options);
	serve->resp_config = hx_config_keep(serve->config);
	hx_worker_init(&serve->jobs, "hapax-errands");
	return hx_worker_start(&serve->jobs, err);
}

enum hapax_status hx_serve_open_resp(struct hx_serve *serve, struct hapax_error *err)
{
	uint64_t max = hx_descriptors_connections(&serve->descriptors, serve->config, HX_DOOR_RESP);
	struct hx_service_door door;
	enum hapax_status status =
		hx_service_find_door(&serve->service, HX_CONFIG_TLS_RESP, &door, err);
	size_t loops = door.loop_count;

	if (status == HAPAX_OK && loops > 0)
		status = make_service(serve, err);
	for (size_t i = 0; i < loops && status == HAPAX_OK; i++) {
		struct hx_resp_door *resp = &serve->loops[i].resp;

		status = hx_service_take_door(
			&serve->service, "resp", i, &resp->listener.inherited_fd, err);
		if (status != HAPAX_OK)
			break;
		resp->tls = serve->door_tls.doors[HX_CONFIG_TLS_RESP];
		resp->handshake_ms = serve->config->tls.handshake_timeout_ms;
		status = hx_resp_door_open(
			resp, &serve->loops[i], &serve->resp, &door.address, loops > 1,
			(size_t)(max / loops + (max % loops != 0)), err);
		door.address = resp->listener.address;
	}
	return status;
}

/*
 * Uses the known state of the store: asking could take as long as its timeout. A shared store is
 * asked rarely, since it then counts its keys.
 */
void hx_serve_refresh_resp(struct hx_serve *serve)
{
	struct hx_store_facts facts;

	if (serve->resp.options.store == NULL)
		return;
	hx_store_view_look(&serve->view, &facts);
	if (facts.has_stats)
		hx_resp_service_set_skew(&serve->resp, facts.stats.skew_ms);
	if (facts.asked_ns == INT64_MAX &&
	    (serve->resp.is_local ||
	     serve->chores % REMOTE_REFRESH_SECONDS == REMOTE_REFRESH_SECONDS - 1))
		(void)hx_store_view_ask(&serve->view);
}

bool hx_serve_stop_resp(struct hx_serve *serve, int64_t deadline_ns)
{
	(void)hx_worker_stop(&serve->jobs);
	return hx_worker_join(&serve->jobs, deadline_ns);
}

void hx_serve_close_resp(struct hx_serve *serve)
{
	if (serve->resp.options.store != NULL)
		hx_resp_service_done(&serve->resp);
	hx_free(serve->resp_users);
	serve->resp_users = NULL;
	hx_config_release(serve->resp_config);
}
