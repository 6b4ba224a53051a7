/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/proxy_body.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "config/config.h"
#include "wire/media_type.h"

static bool uses_body(const struct hapax_key_strategy *strategy)
{
	return hapax_key_strategy_needs(strategy) & HAPAX_KEY_NEEDS_DATA;
}

bool hx_proxy_body_is_used(const struct hx_config_proxy_route *route)
{
	if (route->secret_count > 0)
		return true;
	for (size_t i = 0; i < route->pass_count; i++) {
		if (uses_body(route->passes[i].strategy))
			return true;
	}
	return uses_body(route->strategy);
}

/* Some senders call JSON text: Amazon SNS sends text/plain. */
static enum hapax_data_kind kind_of(const struct hx_http1_head *head, struct hapax_bytes body)
{
	const char *text = body.data;

	if ((body.size > 0 && (text[0] == '{' || text[0] == '[')) ||
	    hx_media_type_is_json(hx_http1_known(head, HX_HTTP1_CONTENT_TYPE)))
		return HAPAX_DATA_JSON;
	return HAPAX_DATA_BYTES;
}

static enum hx_proxy_body_end find_key(
	const struct hx_config_proxy_route *route, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_key *ret_key, struct hapax_error *err)
{
	ret_key->size = sizeof(*ret_key);
	for (size_t i = 0; i < route->pass_count; i++) {
		if (hapax_key_make(route->passes[i].strategy, event, scratch, ret_key, err) !=
		    HAPAX_OK)
			return HX_PROXY_BODY_FAILED;
		if (ret_key->kind == HAPAX_KEY_MADE &&
		    hx_bytes_equal(
			    hx_bytes(ret_key->key, ret_key->key_size), route->passes[i].value))
			return HX_PROXY_BODY_PASSES;
	}
	if (hapax_key_make(route->strategy, event, scratch, ret_key, err) != HAPAX_OK)
		return HX_PROXY_BODY_FAILED;
	return HX_PROXY_BODY_KEY;
}

/* OK if the route checks no signatures. */
static enum hapax_status check_signature(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	const struct hapax_event *event, struct hapax_buf *scratch, struct hapax_error *err)
{
	const struct hx_webhook webhook = {
		.scheme = route->signature,
		.secrets = route->secrets,
		.secret_count = route->secret_count,
		.tolerance_ms = route->tolerance_ms,
		.now_ms = hx_clock_wall_ms(),
		.fields = event->headers,
		.field_count = event->header_count,
		.content_type = hx_http1_known(head, HX_HTTP1_CONTENT_TYPE),
		.origin = hapax_bytes_from_text(route->public_url),
		.target = head->path,
		.body = event->data};

	if (route->secret_count == 0)
		return HAPAX_OK;
	return hx_webhook_signature_check(&webhook, scratch, err);
}

enum hx_proxy_body_end hx_proxy_body_read(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes body, bool needs_key, struct hapax_buf *scratch,
	struct hapax_key *ret_key, struct hapax_error *err)
{
	enum hapax_status status;
	struct hapax_field fields[HX_HTTP1_FIELDS_MAX];
	struct hapax_event event = HAPAX_EVENT_INIT;

	/* A field that does not reach the upstream decides nothing. */
	for (size_t i = 0; i < head->field_count; i++) {
		if (!hx_http1_is_hop(head, head->fields[i].name))
			fields[event.header_count++] = head->fields[i];
	}
	event.headers = fields;
	event.data = body;
	event.data_kind = kind_of(head, body);
	status = check_signature(route, head, &event, scratch, err);
	if (status != HAPAX_OK)
		return status == HAPAX_ERR_INVALID ? HX_PROXY_BODY_UNSIGNED : HX_PROXY_BODY_FAILED;
	if (!needs_key)
		return HX_PROXY_BODY_PASSES;
	return find_key(route, &event, scratch, ret_key, err);
}
