/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/proxy_body.h"

#include "base/bytes.h"
#include "config/config.h"
#include "wire/media_type.h"

bool hx_proxy_body_is_used(const struct hx_config_proxy_route *route)
{
	return hapax_key_strategy_needs(route->strategy) & HAPAX_KEY_NEEDS_DATA;
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

enum hapax_status hx_proxy_body_key(
	const struct hx_config_proxy_route *route, const struct hx_http1_head *head,
	struct hapax_bytes body, struct hapax_buf *scratch, struct hapax_key *ret_key,
	struct hapax_error *err)
{
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
	ret_key->size = sizeof(*ret_key);
	return hapax_key_make(route->strategy, &event, scratch, ret_key, err);
}
