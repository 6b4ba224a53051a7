/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.c - any HTTP API, once for each Idempotency-Key, or for each key by a route's strategy.
 *
 *	no route                                  404
 *	not signed, on a route with secrets       401
 *	a path with .. or of two routes, post     400: upstreams read it differently
 *	  or of a signed route in other case      the same
 *	a method that runs once, with a key       claimed, and run once
 *	  with two, or one that cannot be read    400
 *	  without one, if it is required          400
 *	  whose strategy needs too much memory    413
 *	  of a client without a credential        400, unless the route says credential: none
 *	all others                                pass: forwarded unchanged, without a claim
 *
 * Titles are those of draft-ietf-httpapi-idempotency-key-header.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"
#include "serve/http/proxy_body.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http_path.h"

#define PROBLEM(name) "urn:hapax:problem:" name

/*
 * Whether the method runs once. Not exactly: POST in other letter case, too, which some upstreams
 * accept as POST and would run every time.
 */
static bool runs_once(
	const struct hx_config_proxy_route *route, struct hapax_bytes method, bool is_exact)
{
	for (size_t i = 0; i < route->method_count; i++) {
		struct hapax_bytes name = hapax_bytes_from_text(route->methods[i]);

		if (is_exact ? hx_bytes_equal(name, method) : hx_http1_text_equal(name, method))
			return true;
	}
	return false;
}

/* Everything is known: ask for the claim, or run without one. */
static void ask(struct hx_delivery *delivery)
{
	const struct hx_config_proxy_route *route = delivery->claim.proxy;
	const struct hx_proxy_key *key = &delivery->claim.proxy_key;

	delivery->claim.identity = (struct hx_delivery_identity){
		.tenant = hx_config_scope_part(route->tenant),
		.group = hx_config_scope_part(route->group)};
	hx_config_proxy_run_options(delivery->config->config, route, &delivery->claim.options);
	if (delivery->claim.passes) {
		delivery->claim.options.is_disabled = 1;
	} else {
		delivery->claim.identity.key = hx_bytes(key->text, key->size);
		if (route->fingerprint == HX_CONFIG_FINGERPRINT_DATA)
			delivery->claim.identity.fingerprint = key->fingerprint;
	}
	delivery->claim.asked_ns = hx_clock_mono_ns();
	(void)hx_delivery_ask(delivery);
}

static void refuse_body(struct hx_delivery *delivery, const struct hapax_error *err)
{
	hx_delivery_refuse(
		delivery, 503, PROBLEM("no-body"), "The request body could not be read",
		err->message);
}

/* Threads: the reader's. */
static void hash_large(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;
	struct hx_sha256 sha = {NULL};

	large->key_ns = -hx_clock_mono_ns();
	large->status = hx_sha256_init(&sha);
	if (large->status == HAPAX_OK)
		large->status = hx_proxy_key_fingerprint(
			delivery->claim.proxy, &delivery->exchange->head, &delivery->exchange->body,
			&sha, delivery->claim.proxy_key.fingerprint, &large->err);
	hx_sha256_done(&sha);
	large->key_ns += hx_clock_mono_ns();
}

static void on_hashed(struct hx_large *large)
{
	struct hx_delivery *delivery = large->delivery;

	if (large->status != HAPAX_OK)
		refuse_body(delivery, &large->err);
	else
		ask(delivery);
}

static void take_fingerprint(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;
	struct hx_http_exchange *exchange = delivery->exchange;
	int64_t began_ns = hx_clock_mono_ns();
	struct hapax_error err = {.status = HAPAX_OK};
	enum hapax_status status;

	if (delivery->claim.proxy->fingerprint == HX_CONFIG_FINGERPRINT_NONE) {
		ask(delivery);
		return;
	}
	if (hx_large_is(delivery)) {
		status = hx_large_start(delivery, hash_large, on_hashed, false, &err);
		if (status != HAPAX_OK)
			refuse_body(delivery, &err);
		return;
	}
	status = hx_proxy_key_fingerprint(
		delivery->claim.proxy, &exchange->head, &exchange->body, &loop->sha,
		delivery->claim.proxy_key.fingerprint, &err);
	if (status != HAPAX_OK) {
		refuse_body(delivery, &err);
		return;
	}
	hx_metrics_observe_ns(
		loop->cells, HX_METRIC_KEY_DURATION, 0, 0, hx_clock_mono_ns() - began_ns);
	ask(delivery);
}

/* A key that any client could send would reveal the stored response to any client. */
static void refuse_stranger(struct hx_delivery *delivery)
{
	const struct hx_http1_head *head = &delivery->exchange->head;
	bool has_cookies = hx_http1_find(head, HX_BYTES_LIT("Cookie"), 0) < head->field_count;

	hx_delivery_refuse(
		delivery, 400, PROBLEM("credential-missing"),
		"The request has an Idempotency-Key but no credential",
		has_cookies ? "no cookie of this request identifies the client; name the "
			      "session cookie in 'credential_cookies' of the route, or set "
			      "'credential: none' if all clients may share responses"
			    : "send Authorization or an API key; or set 'credential' of the "
			      "route: 'header:NAME' for a header that identifies the client, "
			      "or 'none' if all clients may share responses");
}

/* Title and detail are those of the draft, with the header that the route uses. */
static void refuse_keyless(struct hx_delivery *delivery)
{
	const struct hx_config_proxy_route *route = delivery->claim.proxy;
	char title[256];

	(void)snprintf(
		title, sizeof(title), "%s is missing",
		route->strategy == NULL ? route->header : "A part of the key");
	hx_delivery_refuse(
		delivery, 400, PROBLEM("key-missing"), title,
		route->strategy != NULL ? delivery->claim.key.missing
					: "This operation is idempotent and it requires correct "
					  "usage of Idempotency Key.");
}

/* The request has no key. */
static void go_without(struct hx_delivery *delivery)
{
	if (delivery->claim.proxy->required) {
		refuse_keyless(delivery);
		return;
	}
	delivery->claim.passes = true;
	delivery->claim.lacks_key = true;
	ask(delivery);
}

static void refuse_key(
	struct hx_delivery *delivery, enum hx_proxy_key_end end, const struct hapax_error *err)
{
	if (end == HX_PROXY_KEY_INVALID)
		hx_delivery_refuse(
			delivery, 400, PROBLEM("key-invalid"), "The Idempotency-Key is invalid",
			err->message);
	else if (end == HX_PROXY_KEY_WHOSE_IS_UNKNOWN)
		hx_delivery_refuse(
			delivery, 400, PROBLEM("credential"),
			"The client of this Idempotency-Key is ambiguous", err->message);
	else
		refuse_stranger(delivery);
}

static struct hapax_bytes certificate_of(const struct hx_delivery *delivery)
{
	return hx_bytes(
		delivery->certificate,
		delivery->has_certificate ? sizeof(delivery->certificate) : 0);
}

/* The key is in a header. */
static void take_key(struct hx_delivery *delivery)
{
	struct hapax_error err = {.status = HAPAX_OK};
	enum hx_proxy_key_end end = hx_proxy_key_read(
		delivery->claim.proxy, &delivery->exchange->head, certificate_of(delivery),
		&delivery->loop->sha, &delivery->claim.proxy_key, &err);

	if (end == HX_PROXY_KEY_FOUND)
		take_fingerprint(delivery);
	else if (end == HX_PROXY_KEY_MISSING)
		go_without(delivery);
	else
		refuse_key(delivery, end, &err);
}

/* The request could not be read in whole. */
static void refuse_whole(struct hx_delivery *delivery, const struct hapax_error *err)
{
	if (err->status == HAPAX_ERR_LIMIT)
		hx_delivery_refuse(
			delivery, 413, PROBLEM("no-body"), "The request body is too large",
			err->message);
	else
		refuse_body(delivery, err);
}

/* The strategy has made a key, or none. */
static void take_made(struct hx_delivery *delivery)
{
	struct hapax_error err = {.status = HAPAX_OK};
	enum hx_proxy_key_end end;

	if (delivery->claim.key.kind == HAPAX_KEY_NONE) {
		go_without(delivery);
		return;
	}
	end = hx_proxy_key_complete(
		delivery->claim.proxy, &delivery->exchange->head, certificate_of(delivery),
		&delivery->claim.key, &delivery->loop->sha, &delivery->claim.proxy_key, &err);
	if (end == HX_PROXY_KEY_FOUND)
		ask(delivery);
	else
		refuse_key(delivery, end, &err);
}

/* Before any claim: a stranger must not make a key that the sender will use. */
static void refuse_unsigned(struct hx_delivery *delivery, const struct hapax_error *err)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("route", delivery->claim.route_name),
		HX_LOGGER_TEXT("client", delivery->exchange->client),
		HX_LOGGER_TEXT("reason", err->message),
	};

	hx_logger(
		delivery->loop->serve->log, HX_LOGGER_WARN, "webhook signature rejected", fields,
		HX_COUNT(fields));
	hx_delivery_refuse(
		delivery, 401, PROBLEM("signature"), "The signature of the request is invalid",
		err->message);
}

/* The whole request was read, in took_ns. */
static void take_whole(struct hx_delivery *delivery, const struct hapax_error *err, int64_t took_ns)
{
	hx_metrics_observe_ns(delivery->loop->cells, HX_METRIC_KEY_DURATION, 0, 0, took_ns);
	switch (delivery->claim.found) {
	case HX_PROXY_BODY_KEY: take_made(delivery); return;
	case HX_PROXY_BODY_PASSES:
		delivery->claim.passes = true;
		ask(delivery);
		return;
	case HX_PROXY_BODY_UNSIGNED: refuse_unsigned(delivery, err); return;
	case HX_PROXY_BODY_FAILED: refuse_whole(delivery, err); return;
	}
}

static void read_body(
	struct hx_delivery *delivery, struct hapax_bytes body, struct hapax_buf *scratch,
	struct hapax_error *err)
{
	delivery->claim.found = hx_proxy_body_read(
		delivery->claim.proxy, &delivery->exchange->head, body, !delivery->claim.passes,
		scratch, &delivery->claim.key, err);
}

/* Threads: the reader's. */
static void read_large(struct hx_large *large)
{
	struct hapax_buf scratch;
	struct hapax_bytes body;

	large->key_ns = -hx_clock_mono_ns();
	large->delivery->claim.found = HX_PROXY_BODY_FAILED;
	if (hx_large_body(large, &body, &scratch, &large->err) == HAPAX_OK)
		read_body(large->delivery, body, &scratch, &large->err);
	large->is_short = large->delivery->claim.found == HX_PROXY_BODY_FAILED &&
		large->err.status == HAPAX_ERR_LIMIT;
	hx_buf_done(&scratch);
	large->key_ns += hx_clock_mono_ns();
}

static void on_large(struct hx_large *large)
{
	hx_large_leave(large);
	take_whole(large->delivery, &large->err, large->key_ns);
}

/* Checks the signature and makes the key, as the route says; with the body if it uses it. */
static void read_whole(struct hx_delivery *delivery)
{
	struct hx_loop *loop = delivery->loop;
	int64_t began_ns = hx_clock_mono_ns();
	struct hapax_error err = {.status = HAPAX_OK};
	struct hapax_bytes body = hx_bytes(NULL, 0);
	bool is_used = hx_proxy_body_is_used(delivery->claim.proxy);

	if (is_used && hx_large_is(delivery)) {
		if (hx_large_start(delivery, read_large, on_large, true, &err) != HAPAX_OK)
			refuse_body(delivery, &err);
		return;
	}
	delivery->claim.found = HX_PROXY_BODY_FAILED;
	if (!is_used ||
	    hx_http_body_whole(&delivery->exchange->body, &loop->body_text, &body, &err) ==
		    HAPAX_OK)
		read_body(delivery, body, &loop->key_scratch, &err);
	take_whole(delivery, &err, hx_clock_mono_ns() - began_ns);
}

/* NULL: refused. */
static const struct hx_config_proxy_route *find_route(
	struct hx_delivery *delivery, struct hapax_bytes path)
{
	const struct hx_config *config = delivery->config->config;
	const struct hx_config_proxy_route *route;
	char space[HX_HTTP1_LINE_MAX];
	char loose_space[HX_HTTP1_LINE_MAX];
	struct hapax_bytes plain;
	const char *fault;
	struct hapax_bytes loosest = hx_http_path_loosest(path, loose_space, &fault);

	if (fault != NULL) {
		hx_delivery_refuse_path(delivery, fault);
		return NULL;
	}
	plain = hx_proxy_key_path(path, space);
	route = hx_config_proxy_route_find(config, plain);
	if (route == NULL) {
		hx_delivery_refuse(
			delivery, 404, PROBLEM("no-route"), "No route matches this request",
			"no route matches the path of the request");
		return NULL;
	}
	if (loosest.data != path.data && !hx_config_proxy_routes_agree(config, plain, loosest)) {
		hx_delivery_refuse_path(delivery, HX_DELIVERY_OTHER_ROUTE);
		return NULL;
	}
	if (hx_config_proxy_route_evades(config, route, loosest)) {
		hx_delivery_refuse_path(
			delivery,
			"a service that ignores letter case would use a route that checks "
			"signatures; send the path as that route has it");
		return NULL;
	}
	return route;
}

void hx_proxy_take_up(struct hx_delivery *delivery)
{
	const struct hx_config *config = delivery->config->config;
	const struct hx_http1_head *head = &delivery->exchange->head;
	struct hapax_bytes query;
	const struct hx_config_proxy_route *route =
		find_route(delivery, hx_http_path_split(head->path, &query));

	if (route == NULL)
		return;
	delivery->claim.proxy = route;
	hx_delivery_set_route(
		delivery, route->name, &route->target,
		config->gateway.route_count + (size_t)(route - config->proxy.routes));
	if (runs_once(route, head->method, true)) {
		if (route->strategy != NULL)
			read_whole(delivery);
		else
			take_key(delivery);
		return;
	}
	if (runs_once(route, head->method, false)) {
		hx_delivery_refuse(
			delivery, 400, PROBLEM("method"), "The method is not in upper case",
			"send the method in upper case; as it stands, the request would not be "
			"deduplicated");
		return;
	}
	delivery->claim.passes = true;
	if (route->secret_count > 0)
		read_whole(delivery);
	else
		ask(delivery);
}
