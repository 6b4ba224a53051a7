/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete.c - derive values of a config that were not written.
 */
#include "config/complete/complete.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/schema/schema.h"
#include "net/http/http_url.h"
#include "net/network.h"
#include "wire/http1/http_path.h"

void *hx_complete_alloc(
	struct hx_complete *complete, const struct hx_place *place, size_t count, size_t size)
{
	void *memory = hx_config_arena_alloc(complete->arena, count, size);

	if (memory == NULL)
		hx_fault_no_memory(complete->faults, place);
	return memory;
}

const char *hx_complete_text(
	struct hx_complete *complete, const struct hx_place *place, struct hapax_bytes text)
{
	const char *copy = hx_config_arena_text(complete->arena, text);

	if (copy == NULL)
		hx_fault_no_memory(complete->faults, place);
	return copy == NULL ? "" : copy;
}

/* ------------------------------------------------------------------ the store */

static const char *variable(const struct hx_complete *complete, const char *name)
{
	const char *value = complete->variable == NULL ? NULL : complete->variable(name);

	return value == NULL || value[0] == '\0' ? NULL : value;
}

/* The daemon's store: $STATE_DIRECTORY/store, else $XDG_STATE_HOME/hapax/store. */
static void complete_store(struct hx_complete *complete, struct hx_config_store *store)
{
	static const struct hx_place place = {.name = "store.url"};
	const char *state = variable(complete, "STATE_DIRECTORY");
	const char *xdg = variable(complete, "XDG_STATE_HOME");
	const char *home = variable(complete, "HOME");
	char url[HX_CONFIG_PATH_SIZE + 8];
	int size;

	if (store->url[0] != '\0')
		return;
	store->is_default = true;
	if (state != NULL && state[0] == '/')
		/* systemd passes a list if there are several; the first one is ours. */
		size = snprintf(
			url, sizeof(url), "file:%.*s/store", (int)strcspn(state, ":"), state);
	else if (xdg != NULL && xdg[0] == '/')
		size = snprintf(url, sizeof(url), "file:%s/hapax/store", xdg);
	else if (home != NULL)
		size = snprintf(url, sizeof(url), "file:%s/.local/state/hapax/store", home);
	else
		size = snprintf(url, sizeof(url), "file:/var/lib/hapax/store");
	if (size < 0 || (size_t)size >= sizeof(url)) {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &place,
			"the path of the default store is too long");
		return;
	}
	store->url = hx_complete_text(complete, &place, hx_bytes(url, (size_t)size));
}

/* ------------------------------------------------------------------ scopes */

static void complete_scope(struct hx_complete *complete, struct hx_config_scope *scope)
{
	const char *slash = strchr(scope->scope, '/');

	scope->tenant = hx_complete_text(
		complete, &scope->place, hx_bytes(scope->scope, (size_t)(slash - scope->scope)));
	scope->group = slash + 1;
}

static void complete_scopes(struct hx_complete *complete, struct hx_config *config)
{
	struct hx_config_scope *scopes = hx_complete_alloc(
		complete, &config->defaults.place, config->scope_count + 1, sizeof(*scopes));

	config->defaults.scope = "*/*";
	config->defaults.tenant = "*";
	config->defaults.group = "*";
	if (scopes == NULL)
		return;
	for (size_t i = 0; i < config->scope_count; i++) {
		scopes[i] = config->scopes[i];
		complete_scope(complete, &scopes[i]);
		for (size_t k = 0; k < i; k++) {
			if (strcmp(scopes[k].scope, scopes[i].scope) == 0)
				hx_fault(
					complete->faults, HAPAX_ERR_INVALID, &scopes[i].place,
					"scope '%.64s' occurs twice", scopes[i].scope);
		}
	}
	config->scopes = scopes;
}

/* The texts were checked when they were read. */
static void complete_http(struct hx_complete *complete, struct hx_config_http *http)
{
	static const struct hx_place place = {.name = "http.trusted_proxies"};
	struct hx_network *networks =
		hx_complete_alloc(complete, &place, http->trusted_count + 1, sizeof(*networks));

	if (networks == NULL)
		return;
	for (size_t i = 0; i < http->trusted_count; i++)
		(void)hx_network_parse(http->trusted_proxies[i], &networks[i]);
	http->trusted = networks;
}

/* Each of them would spoil the other's lines. */
static void check_log(struct hx_complete *complete, const struct hx_config_log *log)
{
	static const struct hx_place place = {.name = "log.decisions"};

	if (log->decisions[0] == '\0')
		return;
	if (strcmp(log->decisions, log->audit) == 0)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &place,
			"it is the file of log.audit; choose another one");
	if (strcmp(log->decisions, log->decisions_secret) == 0)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &place,
			"it is the file of log.decisions_secret; choose another one");
}

/* A scope that continues without the store must record its keys in a journal. */
static void check_journal(struct hx_complete *complete, const struct hx_config *config)
{
	static const struct hx_place defaults = {.name = "defaults.on_store_failure"};

	if (config->store.journal[0] != '\0')
		return;
	if (config->defaults.on_store_failure == HX_CONFIG_ON_STORE_FAILURE_CONTINUE)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &defaults,
			"'continue' needs store.journal");
	for (size_t i = 0; i < config->scope_count; i++) {
		if (config->scopes[i].on_store_failure == HX_CONFIG_ON_STORE_FAILURE_CONTINUE)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &config->scopes[i].place,
				"scope '%.64s': 'continue' needs store.journal",
				config->scopes[i].scope);
	}
}

void hx_complete_check_park(
	struct hx_complete *complete, const char *what, const struct hx_place *place,
	enum hapax_on_lapse on_lapse, const struct hx_config_scope *scope)
{
	if (on_lapse != HAPAX_ON_LAPSE_PARK ||
	    scope->on_store_failure != HX_CONFIG_ON_STORE_FAILURE_CONTINUE)
		return;
	hx_fault(
		complete->faults, HAPAX_ERR_INVALID, place,
		"%s has on_lapse 'park', but its scope '%.64s' has on_store_failure 'continue', "
		"which runs keys with an unknown outcome; use 'refuse', or on_lapse 'retry'",
		what, scope->scope);
}

/* Check the scopes, which apply to the gateway, the API and the Redis protocol. */
static void check_parks(struct hx_complete *complete, const struct hx_config *config)
{
	static const struct hx_place defaults = {.name = "defaults.on_store_failure"};

	hx_complete_check_park(
		complete, "defaults", &defaults, config->defaults.on_lapse, &config->defaults);
	for (size_t i = 0; i < config->scope_count; i++) {
		const struct hx_config_scope *scope = &config->scopes[i];

		hx_complete_check_park(
			complete, "the scope", &scope->place, scope->on_lapse, scope);
	}
}

/* ------------------------------------------------------------------ routes */

void hx_complete_target(
	struct hx_complete *complete, const char *upstream, const char *name,
	const struct hx_place *place, struct hx_config_target *ret_target)
{
	char why[HX_SETTING_WHY_SIZE];
	struct hx_http_url url;

	if (upstream[0] == '\0') {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, place,
			"route '%.64s' has no upstream, and upstream.url is empty", name);
		return;
	}
	if (!hx_http_url_parse(upstream, &url, why))
		/* The URL was checked when it was read. */
		return;
	ret_target->is_tls = url.is_tls;
	ret_target->endpoint = url.endpoint;
	ret_target->authority = hx_complete_text(complete, place, url.authority);
	ret_target->path = hx_complete_text(complete, place, url.path);
}

const char *hx_complete_loose_path(
	struct hx_complete *complete, const struct hx_place *place, const char *path)
{
	char space[HX_HTTP1_LINE_MAX];
	const char *fault;

	/* The path was checked when it was read. */
	return hx_complete_text(
		complete, place, hx_http_path_loosest(hapax_bytes_from_text(path), space, &fault));
}

/* Only a scope that takes any value matches a part that comes from the event. */
static struct hapax_bytes known_part(const char *fixed, const char *from)
{
	return from[0] != '\0' ? HX_BYTES_LIT("") : hx_config_scope_part(fixed);
}

static const char *unless_empty(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

const struct hx_config_scope *hx_complete_keying(
	const struct hx_config *config, const struct hx_config_keying *keying,
	struct hapax_key_options *ret_options)
{
	const struct hx_config_scope *scope = hx_config_scope_find(
		config, known_part(keying->tenant, keying->tenant_from),
		known_part(keying->group, keying->group_from));
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;

	options.also = unless_empty(keying->key_also);
	options.also_until_ms = keying->also_until_ms;
	options.on_missing = scope->on_missing;
	options.canonical = keying->canonical;
	options.include = keying->include;
	options.include_count = keying->include_count;
	options.exclude = keying->exclude;
	options.exclude_count = keying->exclude_count;
	options.tenant = unless_empty(keying->tenant);
	options.tenant_from = unless_empty(keying->tenant_from);
	options.group = unless_empty(keying->group);
	options.group_from = unless_empty(keying->group_from);
	if (keying->fingerprint == HX_CONFIG_FINGERPRINT_NONE)
		options.flags |= HAPAX_KEY_NO_FINGERPRINT;
	*ret_options = options;
	return scope;
}

static void complete_strategy(
	struct hx_complete *complete, const struct hx_config *config, struct hx_config_route *route)
{
	const struct hx_config_keying *keying = &route->keying;
	struct hapax_key_options options;
	const struct hx_config_scope *scope;
	struct hapax_key_strategy *strategy = NULL;
	struct hapax_error err;
	enum hapax_status status;
	char what[96];

	(void)snprintf(what, sizeof(what), "route '%.64s'", route->name);
	hx_complete_also(complete, config, what, &route->place, &route->keying);
	scope = hx_complete_keying(config, keying, &options);
	status = hapax_key_strategy_new(keying->key, &options, &strategy, &err);
	if (status != HAPAX_OK) {
		hx_fault(
			complete->faults, status, &route->place, "route '%.64s': %s", route->name,
			err.message);
		return;
	}
	complete->strategies[complete->strategy_count++] = strategy;
	route->strategy = strategy;
	if (keying->tenant_from[0] == '\0' && keying->group_from[0] == '\0')
		route->scope = scope;
}

static void complete_name(
	struct hx_complete *complete, struct hx_config_route *routes, size_t index)
{
	struct hx_config_route *route = &routes[index];
	char name[32];

	if (route->name[0] == '\0') {
		(void)snprintf(name, sizeof(name), "route-%zu", index + 1);
		route->name =
			hx_complete_text(complete, &route->place, hapax_bytes_from_text(name));
	}
	for (size_t i = 0; i < index; i++) {
		if (strcmp(routes[i].name, route->name) == 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &route->place,
				"route '%.64s' occurs twice", route->name);
	}
}

/* With an upstream and no routes there is one route for everything. */
static const struct hx_config_route everything = {
	.name = "default",
	.path = "/",
	.upstream = "",
	.keying =
		{.key = "event-id",
		 .key_also = "",
		 .key_also_until = "",
		 .tenant = "",
		 .tenant_from = "",
		 .group = "",
		 .group_from = ""},
	.place = {.name = "upstream.url"},
};

static void complete_routes(struct hx_complete *complete, struct hx_config *config)
{
	static const struct hx_place nowhere = {.name = "gateway.routes"};
	bool has_none = config->gateway.route_count == 0;
	size_t count =
		has_none && config->upstream.url[0] != '\0' ? 1 : config->gateway.route_count;
	struct hx_config_route *routes =
		hx_complete_alloc(complete, &nowhere, count + 1, sizeof(*routes));

	complete->strategies = hx_complete_alloc(
		complete, &nowhere, count + hx_complete_proxy_strategies(config) + 1,
		sizeof(struct hapax_key_strategy *));
	if (routes == NULL || complete->strategies == NULL)
		return;
	for (size_t i = 0; i < count; i++) {
		routes[i] = has_none ? everything : config->gateway.routes[i];
		complete_name(complete, routes, i);
		if (routes[i].upstream[0] == '\0')
			routes[i].upstream = config->upstream.url;
		hx_complete_target(
			complete, routes[i].upstream, routes[i].name, &routes[i].place,
			&routes[i].target);
		routes[i].loose_path =
			hx_complete_loose_path(complete, &routes[i].place, routes[i].path);
		hx_complete_outcomes(
			complete, routes[i].name, &routes[i].place, &routes[i].outcomes);
		complete_strategy(complete, config, &routes[i]);
	}
	config->gateway.routes = routes;
	config->gateway.route_count = count;
}

/*
 * Without an upstream the gateway stays closed, if the daemon has other work and no address was
 * given: an outbox alone needs no door for events.
 */
static void complete_gateway(struct hx_config *config)
{
	static const char fallback[] = "127.0.0.1:8080";
	struct hx_config_listen *listen = &config->listen;
	bool has_work = config->outbox.url[0] != '\0' || config->consumer_count > 0 ||
		!listen->proxy.is_off || !listen->resp.is_off;

	if (config->gateway.route_count == 0 && has_work && !listen->gateway.is_off &&
	    strcmp(listen->gateway.text, fallback) == 0)
		listen->gateway = (struct hx_config_door){.is_off = true, .text = "off"};
}

void hx_complete_run(struct hx_complete *complete, struct hx_config *config)
{
	complete_store(complete, &config->store);
	complete_scopes(complete, config);
	complete_http(complete, &config->http);
	check_log(complete, &config->log);
	check_journal(complete, config);
	check_parks(complete, config);
	hx_complete_auth(complete, &config->auth);
	hx_schema_traces_complete(complete, &config->traces);
	hx_schema_outbox_complete(complete, &config->outbox);
	hx_tls_doors_complete(complete, &config->tls);
	if (complete->faults->count == 0)
		complete_routes(complete, config);
	if (complete->faults->count == 0)
		hx_complete_proxy(complete, config);
	if (complete->faults->count == 0)
		hx_complete_consumers(complete, config);
	if (complete->faults->count == 0)
		complete_gateway(config);
	if (config->http.max_line > config->http.max_head) {
		static const struct hx_place place = {.name = "http.max_line"};

		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &place,
			"it is larger than http.max_head, which includes it; raise http.max_head");
	}
}
