/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.c - find an event's route, scope and TTL in a config.
 *
 * Rows are searched in order. A config so large that this is slow would need a map first.
 */
#include <string.h>

#include "base/bytes.h"
#include "config/config_check.h"
#include "config/config.h"
#include "wire/http1/http1_text.h"

typedef bool equal_fn(struct hapax_bytes a, struct hapax_bytes b);

/* "/orders" is a prefix of "/orders" and "/orders/17", not of "/orders2". */
static bool path_matches_by(const char *prefix, struct hapax_bytes path, equal_fn *equal)
{
	const char *at = path.data;
	size_t size = strlen(prefix);

	while (size > 0 && prefix[size - 1] == '/')
		size--;
	if (path.size < size || !equal(hx_bytes(at, size), hx_bytes(prefix, size)))
		return false;
	return path.size == size || at[size] == '/';
}

static bool path_matches(const char *prefix, struct hapax_bytes path)
{
	return path_matches_by(prefix, path, hx_bytes_equal);
}

static bool list_matches(const char *const *patterns, size_t count, struct hapax_bytes text)
{
	for (size_t i = 0; i < count; i++) {
		if (hx_config_pattern_matches(patterns[i], text))
			return true;
	}
	return count == 0;
}

const struct hx_config_route *hx_config_route_find(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes type,
	struct hapax_bytes source)
{
	for (size_t i = 0; i < config->gateway.route_count; i++) {
		const struct hx_config_route *route = &config->gateway.routes[i];

		if (path_matches(route->path, path) &&
		    list_matches(route->types, route->type_count, type) &&
		    list_matches(route->sources, route->source_count, source))
			return route;
	}
	return NULL;
}

bool hx_config_routes_agree(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes loosest)
{
	for (size_t i = 0; i < config->gateway.route_count; i++) {
		const struct hx_config_route *route = &config->gateway.routes[i];

		if (path_matches(route->path, path) != path_matches(route->loose_path, loosest))
			return false;
	}
	return true;
}

bool hx_config_proxy_routes_agree(
	const struct hx_config *config, struct hapax_bytes path, struct hapax_bytes loosest)
{
	for (size_t i = 0; i < config->proxy.route_count; i++) {
		const struct hx_config_proxy_route *route = &config->proxy.routes[i];
		bool matches = path_matches(route->path, path);

		if (matches != path_matches(route->loose_path, loosest))
			return false;
		if (matches)
			return true;
	}
	return true;
}

bool hx_config_proxy_route_evades(
	const struct hx_config *config, const struct hx_config_proxy_route *route,
	struct hapax_bytes loosest)
{
	if (route->secret_count > 0)
		return false;
	for (const struct hx_config_proxy_route *at = config->proxy.routes; at < route; at++) {
		if (at->secret_count > 0 &&
		    path_matches_by(at->loose_path, loosest, hx_http1_text_equal))
			return true;
	}
	return false;
}

const struct hx_config_proxy_route *hx_config_proxy_route_find(
	const struct hx_config *config, struct hapax_bytes path)
{
	for (size_t i = 0; i < config->proxy.route_count; i++) {
		if (path_matches(config->proxy.routes[i].path, path))
			return &config->proxy.routes[i];
	}
	return NULL;
}

static bool name_matches(const char *name, struct hapax_bytes text)
{
	return strcmp(name, "*") == 0 || hx_bytes_equal(hapax_bytes_from_text(name), text);
}

struct hapax_bytes hx_config_scope_part(const char *text)
{
	return hapax_bytes_from_text(text[0] == '\0' ? "default" : text);
}

const struct hx_config_scope *hx_config_scope_find(
	const struct hx_config *config, struct hapax_bytes tenant, struct hapax_bytes group)
{
	for (size_t i = 0; i < config->scope_count; i++) {
		const struct hx_config_scope *scope = &config->scopes[i];

		if (name_matches(scope->tenant, tenant) && name_matches(scope->group, group))
			return scope;
	}
	return &config->defaults;
}

bool hx_config_short_lease(
	const struct hx_config *config, size_t *row, struct hx_config_short_lease *ret)
{
	size_t scopes = 1 + config->scope_count;

	for (; *row < scopes + config->consumer_count; (*row)++) {
		if (*row == 0) {
			*ret = (struct hx_config_short_lease){
				"scope", "defaults", config->defaults.lease_ms};
		} else if (*row < scopes) {
			const struct hx_config_scope *scope = &config->scopes[*row - 1];

			*ret = (struct hx_config_short_lease){
				"scope", scope->scope, scope->lease_ms};
		} else {
			const struct hx_config_consumer *consumer =
				&config->consumers[*row - scopes];

			*ret = (struct hx_config_short_lease){
				"consumer", consumer->name, consumer->lease_ms};
		}
		if (ret->lease_ms != 0 && ret->lease_ms < config->store.timeout_ms) {
			(*row)++;
			return true;
		}
	}
	return false;
}

/* Of a route whose scope comes from the event: that of the defaults. */
static int64_t longest_ttl_ms(const struct hx_config *config, const struct hx_config_route *route)
{
	const struct hx_config_scope *scope =
		route->scope != NULL ? route->scope : &config->defaults;
	int64_t ttl_ms = scope->ttl_ms;

	for (size_t i = 0; i < scope->type_count; i++) {
		if (scope->types[i].ttl_ms > ttl_ms)
			ttl_ms = scope->types[i].ttl_ms;
	}
	return ttl_ms;
}

bool hx_config_key_also(const struct hx_config *config, size_t *row, struct hx_config_key_also *ret)
{
	size_t routes = config->gateway.route_count;

	while (*row < routes + config->consumer_count) {
		size_t at = (*row)++;
		const struct hx_config_keying *keying = at < routes
			? &config->gateway.routes[at].keying
			: &config->consumers[at - routes].keying;

		if (keying->key_also[0] == '\0')
			continue;
		*ret = (struct hx_config_key_also){
			at < routes ? "route" : "consumer",
			at < routes ? config->gateway.routes[at].name
				    : config->consumers[at - routes].name,
			keying->key_also_until, keying->also_until_ms,
			at < routes ? longest_ttl_ms(config, &config->gateway.routes[at])
				    : config->consumers[at - routes].ttl_ms};
		return true;
	}
	return false;
}

int64_t hx_config_ttl_ms(const struct hx_config_scope *scope, struct hapax_bytes type)
{
	for (size_t i = 0; i < scope->type_count; i++) {
		if (hx_config_pattern_matches(scope->types[i].type, type))
			return scope->types[i].ttl_ms;
	}
	return scope->ttl_ms;
}

void hx_config_run_options(
	const struct hx_config *config, const struct hx_config_scope *scope,
	struct hapax_bytes type, struct hapax_run_options *ret_options)
{
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;

	options.lease_ms = scope->lease_ms;
	options.ttl_ms = hx_config_ttl_ms(scope, type);
	options.wait_ms = scope->wait_ms;
	options.max_run_ms = scope->max_run_ms;
	options.result_size_max = config->store.max_result;
	options.on_lapse = scope->on_lapse;
	options.on_mismatch = scope->on_mismatch;
	options.is_disabled = !config->enabled || !scope->enabled;
	options.omits_cause = scope->remember == HX_CONFIG_REMEMBER_OFF;
	*ret_options = options;
}

void hx_config_proxy_run_options(
	const struct hx_config *config, const struct hx_config_proxy_route *route,
	struct hapax_run_options *ret_options)
{
	hx_config_run_options(config, route->scope, hx_bytes(NULL, 0), ret_options);
	if (route->ttl_ms != 0)
		ret_options->ttl_ms = route->ttl_ms;
	if (route->max_run_ms != 0)
		ret_options->max_run_ms = route->max_run_ms;
	ret_options->wait_ms = route->wait_ms;
	ret_options->on_lapse = route->on_lapse;
}

void hx_config_memory_plan(
	const struct hx_config *config, uint64_t detected, struct hx_config_memory_plan *ret_plan)
{
	const struct hx_config_memory *memory = &config->memory;
	const char *url = config->store.url;
	uint64_t limit = memory->limit == HX_CONFIG_AUTO ? detected : memory->limit;
	/* Other stores keep their records elsewhere, and refuse a limit. */
	bool is_here = strncmp(url, "file:", 5) == 0 || strncmp(url, "memory:", 7) == 0;

	ret_plan->limit = limit;
	ret_plan->listeners = memory->listeners == HX_CONFIG_AUTO ? limit / 8 : memory->listeners;
	ret_plan->store = config->store.max_bytes;
	if (ret_plan->store == HX_CONFIG_AUTO)
		ret_plan->store = is_here ? limit / 2 : 0;
}

void hx_config_store_options(
	const struct hx_config *config, uint64_t bytes_max, struct hapax_store_options *ret_options)
{
	const struct hx_config_store *store = &config->store;
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	options.evict = store->evict;
	options.bytes_max = bytes_max;
	options.keys_max = store->max_keys;
	options.parked_max = store->parked_max;
	options.result_size_max = store->max_result;
	options.clock_step_ms_max = store->max_clock_step_ms;
	options.sweep_interval_ms = store->cleanup_interval_ms;
	options.timeout_ms = store->timeout_ms;
	options.segment_bytes = store->segment_bytes;
	if (store->sync == HX_CONFIG_SYNC_UNSAFE_INTERVAL)
		options.unsafe_interval_ms = store->unsafe_interval_ms;
	*ret_options = options;
}
