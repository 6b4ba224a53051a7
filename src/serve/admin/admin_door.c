/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin_door.c - the connections of the admin door: admission, identity, lockout.
 *
 * Probes are answered even if other clients hold connections: when nearly all are taken, the one
 * that has been idle longest is closed for the next (hx_http_server_options, evicts).
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/lock_note.h"
#include "observe/metrics/metrics.h"
#include "serve/admin/auth.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/origin.h"
#include "wire/bearer.h"

enum {
	/* The largest result of a store, as Base64, with its envelope. */
	BODY_MAX = 24 * 1024 * 1024,

	REQUESTS_MAX = 4096,
	REQUESTS_PER_ADDRESS = REQUESTS_MAX / 8,
};

static enum hapax_status admit(
	struct hx_http_server *server, const char *client, bool *ret_is_counted)
{
	struct hx_serve *serve = server->context;
	enum hapax_status status = HAPAX_OK;

	*ret_is_counted = !hx_origin_is_trusted(&serve->config->http, client);
	if (*ret_is_counted)
		status = hx_peers_take(
			&serve->peers, client, HX_PEERS_ADMIN_CONNECTIONS,
			hx_descriptors_per_address(
				&serve->descriptors, serve->config, HX_DOOR_ADMIN));
	if (status == HAPAX_OK)
		hx_metrics_add(serve->cells, HX_METRIC_CONNECTIONS, 0, HX_DOOR_ADMIN, 1);
	return status;
}

static void left(struct hx_http_server *server, const char *client, bool is_counted)
{
	struct hx_serve *serve = server->context;

	if (is_counted)
		hx_peers_give(&serve->peers, client, HX_PEERS_ADMIN_CONNECTIONS);
	hx_metrics_add(serve->cells, HX_METRIC_CONNECTIONS, 0, HX_DOOR_ADMIN, -1);
}

static enum hapax_status admin_door_take(struct hx_http_exchange *exchange)
{
	struct hx_serve *serve = exchange->server->context;

	hx_origin_find(&serve->config->http, exchange);
	return hx_peers_take(
		&serve->peers, exchange->origin, HX_PEERS_ADMIN_REQUESTS, REQUESTS_PER_ADDRESS);
}

static void give(struct hx_http_exchange *exchange)
{
	struct hx_serve *serve = exchange->server->context;

	hx_peers_give(&serve->peers, exchange->origin, HX_PEERS_ADMIN_REQUESTS);
}

static void refused(struct hx_http_server *server, unsigned status, enum hx_http_refusal why)
{
	struct hx_serve *serve = server->context;

	hx_loop_count_refused(serve->cells, HX_DOOR_ADMIN, status, why);
}

static void unsecured(
	struct hx_http_server *server, const char *client, const struct hapax_error *why)
{
	struct hx_serve *serve = server->context;

	hx_serve_unsecured(serve, serve->cells, "admin", client, why);
}

static void refuse_locked(struct hx_http_exchange *exchange, int64_t locked_ns)
{
	static const struct hx_http_problem problem = {
		.status = 429,
		.detail = "too many invalid API tokens from this address; retry later"};
	char seconds[24];
	struct hapax_field field = {HX_BYTES_LIT("Retry-After"), {NULL, 0}};

	(void)snprintf(
		seconds, sizeof(seconds), "%lld",
		(long long)((locked_ns + HX_NS_PER_S - 1) / HX_NS_PER_S));
	field.value = hapax_bytes_from_text(seconds);
	hx_http_reply_problem(exchange, &problem, &field, 1);
}

bool hx_admin_identify(
	struct hx_serve *serve, struct hx_http_exchange *exchange,
	struct hx_auth_identity *ret_identity)
{
	const struct hx_config_auth *auth = &serve->config->auth;
	const char *who = hx_origin_of_failure(exchange->client, exchange->origin);
	size_t index = hx_http1_find(&exchange->head, HX_BYTES_LIT("Authorization"), 0);
	struct hx_peers_credential credential = {.kind = HX_PEERS_API_TOKEN};
	int64_t locked_ns = 0;

	hx_auth_identify(auth, exchange, ret_identity);
	credential.name = hapax_bytes_from_text(ret_identity->name);
	credential.is_right = ret_identity->said == HX_AUTH_KNOWN;
	/* Only tokens that were compared: a certificate is not guessed. */
	if ((credential.is_right || ret_identity->said == HX_AUTH_UNKNOWN) &&
	    index < exchange->head.field_count &&
	    hx_bearer_read(exchange->head.fields[index].value, &credential.secret))
		locked_ns = hx_peers_judge(
			&serve->peers, who, auth->max_failures, hx_clock_mono_ns(), &credential);
	if (locked_ns > 0) {
		hx_metrics_add(serve->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_LOCKED, 1);
		refuse_locked(exchange, locked_ns);
		return false;
	}
	if (ret_identity->said == HX_AUTH_UNKNOWN)
		hx_metrics_add(serve->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_CREDENTIAL, 1);
	return true;
}

/* A command that finds a file: store in use can then name this API. */
static void sign_store(const struct hx_serve *serve)
{
	const struct hx_address *address = &serve->admin.listener.address;
	bool is_secure = serve->door_tls.doors[HX_CONFIG_TLS_ADMIN] != NULL;
	const char *store_url = hapax_store_url(serve->store);
	char text[HX_ADDRESS_TEXT_SIZE], url[HX_LOCK_NOTE_URL_SIZE], path[PATH_MAX];
	int size;

	if (strncmp(store_url, "file:", 5) != 0)
		return;
	hx_address_format(address, text);
	if (strncmp(text, "unix:", 5) == 0)
		(void)snprintf(url, sizeof(url), "http+%s", text);
	else
		(void)snprintf(url, sizeof(url), "%s://%s", is_secure ? "https" : "http", text);
	size = snprintf(path, sizeof(path), "%s/LOCK", store_url + 5);
	if (size > 0 && (size_t)size < sizeof(path))
		hx_lock_note_add(hx_io_system(), path, url);
}

enum hapax_status hx_serve_open_admin(struct hx_serve *serve, struct hapax_error *err)
{
	const struct hx_http_server_options options = {
		.body_max = BODY_MAX,
		.budget = &serve->memory.listeners,
		.serves_when_full = true,
		.file_budget = &serve->memory.files,
		.connections_max = (size_t)hx_descriptors_connections(
			&serve->descriptors, serve->config, HX_DOOR_ADMIN),
		.exchanges_max = REQUESTS_MAX,
		.evicts = true,
		.folder = serve->folder,
		.admit = admit,
		.left = left,
		.take = admin_door_take,
		.give = give,
		.gone = hx_serve_api_gone,
		.refused = refused,
		.tls = serve->door_tls.doors[HX_CONFIG_TLS_ADMIN],
		.handshake_ms = serve->config->tls.handshake_timeout_ms,
		.unsecured = unsecured};
	struct hx_service_door door;
	enum hapax_status status =
		hx_service_find_door(&serve->service, HX_CONFIG_TLS_ADMIN, &door, err);

	if (status != HAPAX_OK || door.loop_count == 0)
		return status;
	status = hx_service_take_door(
		&serve->service, "admin", 0, &serve->admin.listener.inherited_fd, err);
	if (status == HAPAX_OK)
		status = hx_http_server_open(
			&serve->admin, &serve->reactor, &door.address, false, &options,
			hx_admin_handle, NULL, serve, err);
	if (status == HAPAX_OK)
		sign_store(serve);
	return status;
}
