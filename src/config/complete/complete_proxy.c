/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_proxy.c - derive values of the proxy's routes.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/complete/complete.h"
#include "config/config_check.h"
#include "wire/percent.h"

static const char *const methods[] = {"POST", "PATCH"};

/* Headers that describe a response and still hold when it is replayed. */
static const char *const replay_headers[] = {
	"Content-Type",
	"Content-Encoding",
	"Content-Language",
	"Content-Disposition",
	"Content-Location",
	"Location",
	"ETag",
	"Last-Modified",
	"Link",
	"Vary",
	"Cache-Control",
	"Retry-After",
};

/* Headers that choose the account of a request, besides the credential. */
static const char *const fingerprint_headers[] = {
	"Stripe-Account",      "Stripe-Context",    "X-Goog-User-Project",
	"OpenAI-Organization", "OpenAI-Project",    "Xero-Tenant-Id",
	"X-Account-Id",        "X-Organization-Id", "X-Tenant-Id",
};

static void complete_lists(struct hx_config_proxy_route *route)
{
	if (route->method_count == 0) {
		route->methods = methods;
		route->method_count = HX_COUNT(methods);
	}
	if (route->replay_header_count == 0) {
		route->replay_headers = replay_headers;
		route->replay_header_count = HX_COUNT(replay_headers);
	}
	if (route->fingerprint_header_count == 0) {
		route->fingerprint_headers = fingerprint_headers;
		route->fingerprint_header_count = HX_COUNT(fingerprint_headers);
	}
}

size_t hx_complete_proxy_strategies(const struct hx_config *config)
{
	size_t count = config->proxy.route_count;

	for (size_t i = 0; i < config->proxy.route_count; i++)
		count += config->proxy.routes[i].pass_count;
	return count;
}

/* NULL after reporting a fault. */
static const struct hapax_key_strategy *new_strategy(
	struct hx_complete *complete, const struct hx_config_proxy_route *route, const char *text,
	const struct hapax_key_options *options)
{
	struct hapax_key_strategy *strategy = NULL;
	struct hapax_error err;
	enum hapax_status status = hapax_key_strategy_new(text, options, &strategy, &err);

	if (status != HAPAX_OK) {
		hx_fault(
			complete->faults, status, &route->place, "route '%.64s': %s", route->name,
			err.message);
		return NULL;
	}
	complete->strategies[complete->strategy_count++] = strategy;
	return strategy;
}

/*
 * Make the key strategy. A route decides by `required` about a request without a key, unless the
 * scope makes one from its content.
 */
static void complete_key(struct hx_complete *complete, struct hx_config_proxy_route *route)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;

	if (route->key[0] == '\0') {
		if (route->include_count + route->exclude_count + route->pass_count > 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &route->place,
				"route '%.64s': include, exclude and pass need key", route->name);
		return;
	}
	options.on_missing = route->scope->on_missing == HAPAX_ON_MISSING_CONTENT
		? HAPAX_ON_MISSING_CONTENT
		: HAPAX_ON_MISSING_PASS;
	options.include = route->include;
	options.include_count = route->include_count;
	options.exclude = route->exclude;
	options.exclude_count = route->exclude_count;
	if (route->fingerprint == HX_CONFIG_FINGERPRINT_NONE)
		options.flags |= HAPAX_KEY_NO_FINGERPRINT;
	route->strategy = new_strategy(complete, route, route->key, &options);
}

/* Make the strategies of `pass`; the texts were checked when they were read. */
static void complete_pass(struct hx_complete *complete, struct hx_config_proxy_route *route)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hx_config_pass *passes =
		hx_complete_alloc(complete, &route->place, route->pass_count + 1, sizeof(*passes));

	options.on_missing = HAPAX_ON_MISSING_PASS;
	options.flags = HAPAX_KEY_NO_FINGERPRINT;
	for (size_t i = 0; passes != NULL && i < route->pass_count; i++) {
		char text[HX_CONFIG_PASS_SIZE];

		passes[i].value =
			hapax_bytes_from_text(hx_config_pass_strategy(route->pass[i], text));
		passes[i].strategy = new_strategy(complete, route, text, &options);
	}
	route->passes = passes;
}

static bool is_taken(const struct hx_config *config, const char *name)
{
	for (size_t i = 0; i < config->gateway.route_count; i++) {
		if (strcmp(config->gateway.routes[i].name, name) == 0)
			return true;
	}
	return false;
}

static void complete_name(
	struct hx_complete *complete, const struct hx_config *config,
	struct hx_config_proxy_route *routes, size_t index)
{
	struct hx_config_proxy_route *route = &routes[index];
	bool is_twice;
	char name[32];

	if (route->name[0] == '\0') {
		(void)snprintf(name, sizeof(name), "proxy-%zu", index + 1);
		route->name =
			hx_complete_text(complete, &route->place, hapax_bytes_from_text(name));
	}
	is_twice = is_taken(config, route->name);
	for (size_t i = 0; i < index; i++)
		is_twice = is_twice || strcmp(routes[i].name, route->name) == 0;
	if (is_twice)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &route->place,
			"route '%.64s' occurs twice", route->name);
}

/* Convert to the form in which request paths are compared. */
static void complete_path(struct hx_complete *complete, struct hx_config_proxy_route *route)
{
	char *path;

	route->loose_path = hx_complete_loose_path(complete, &route->place, route->path);
	if (strchr(route->path, '%') == NULL)
		return;
	path = hx_complete_alloc(complete, &route->place, strlen(route->path) + 1, 1);
	if (path == NULL)
		return;
	path[hx_percent_normalize(hapax_bytes_from_text(route->path), path)] = '\0';
	route->path = path;
}

/* Cookies that are never checked would seem to be a protection. */
static void check_credential(
	struct hx_complete *complete, const struct hx_config_proxy_route *route)
{
	if (route->credential_cookie_count > 0 && strcmp(route->credential, "auto") != 0)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &route->place,
			"route '%.64s': credential_cookies need credential 'auto', not '%.64s'",
			route->name, route->credential);
}

static void check_park(struct hx_complete *complete, const struct hx_config_proxy_route *route)
{
	char what[96];

	(void)snprintf(what, sizeof(what), "route '%.64s'", route->name);
	hx_complete_check_park(complete, what, &route->place, route->on_lapse, route->scope);
}

/* With an upstream and no routes there is one route for everything. */
static const struct hx_config_proxy_route everything = {
	.name = "proxy",
	.path = "/",
	.upstream = "",
	.header = "Idempotency-Key",
	.key = "",
	.secret_file = "",
	.public_url = "",
	.credential = "auto",
	.tenant = "",
	.group = "",
	.wait_ms = 10000,
	.on_lapse = HAPAX_ON_LAPSE_PARK,
	.place = {.name = "upstream.url"},
};

void hx_complete_proxy(struct hx_complete *complete, struct hx_config *config)
{
	static const struct hx_place nowhere = {.name = "proxy.routes"};
	bool has_none = config->proxy.route_count == 0;
	size_t count = config->proxy.route_count;
	struct hx_config_proxy_route *routes;

	if (has_none && config->upstream.url[0] != '\0' && !config->listen.proxy.is_off)
		count = 1;
	routes = hx_complete_alloc(complete, &nowhere, count + 1, sizeof(*routes));
	if (routes == NULL)
		return;
	for (size_t i = 0; i < count; i++) {
		struct hx_config_proxy_route *route = &routes[i];

		*route = has_none ? everything : config->proxy.routes[i];
		complete_name(complete, config, routes, i);
		if (route->upstream[0] == '\0')
			route->upstream = config->upstream.url;
		hx_complete_target(
			complete, route->upstream, route->name, &route->place, &route->target);
		complete_path(complete, route);
		complete_lists(route);
		hx_complete_outcomes(complete, route->name, &route->place, &route->outcomes);
		check_credential(complete, route);
		route->scope = hx_config_scope_find(
			config, hx_config_scope_part(route->tenant),
			hx_config_scope_part(route->group));
		complete_key(complete, route);
		complete_pass(complete, route);
		hx_complete_signature(complete, route);
		check_park(complete, route);
	}
	config->proxy.routes = routes;
	config->proxy.route_count = count;
}
