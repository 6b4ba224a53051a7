/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_signature.c - the secrets with which the signatures of a route are checked.
 *
 * A route whose secrets cannot be used is a fault: it would let everything pass.
 */
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/io.h"
#include "config/complete/complete.h"
#include "wire/http1/http1_text.h"

enum { FILE_SIZE_MAX = HX_WEBHOOK_SECRETS_MAX * (HX_WEBHOOK_SECRET_SIZE_MAX + 2) };

static void fault(
	struct hx_complete *complete, const struct hx_config_proxy_route *route,
	enum hapax_status status, const char *why)
{
	hx_fault(
		complete->faults, status, &route->place, "route '%.64s': secret_file %s",
		route->name, why);
}

/* The next line, without blanks around it. False: none is left. */
static bool next_line(struct hapax_bytes *rest, struct hapax_bytes *ret)
{
	const char *at = rest->data;
	const char *end;

	if (rest->size == 0)
		return false;
	end = memchr(at, '\n', rest->size);
	*ret = hx_bytes(at, end == NULL ? rest->size : (size_t)(end - at));
	*rest = end == NULL ? hx_bytes(NULL, 0) : hx_bytes(end + 1, rest->size - ret->size - 1);
	if (ret->size > 0 && at[ret->size - 1] == '\r')
		ret->size--;
	*ret = hx_http1_trim(*ret);
	return true;
}

/* Every line that is not empty. */
static void read_secrets(
	struct hx_complete *complete, struct hx_config_proxy_route *route, struct hapax_bytes text)
{
	struct hapax_bytes *secrets = hx_complete_alloc(
		complete, &route->place, HX_WEBHOOK_SECRETS_MAX, sizeof(*secrets));
	unsigned char *bytes = hx_complete_alloc(complete, &route->place, text.size + 1, 1);
	struct hapax_bytes line;
	size_t count = 0;

	if (secrets == NULL || bytes == NULL)
		return;
	while (next_line(&text, &line)) {
		if (line.size == 0)
			continue;
		if (count == HX_WEBHOOK_SECRETS_MAX) {
			fault(complete, route, HAPAX_ERR_LIMIT, "has too many lines");
			return;
		}
		if (!hx_webhook_secret_read(route->signature, line, bytes, &secrets[count].size)) {
			fault(complete, route, HAPAX_ERR_INVALID,
			      "has a secret that is too long, or not Base64 as it must be for "
			      "standard-webhooks");
			return;
		}
		secrets[count].data = bytes;
		bytes += secrets[count++].size;
	}
	if (count == 0)
		fault(complete, route, HAPAX_ERR_INVALID, "has no secret; write one in each line");
	route->secrets = secrets;
	route->secret_count = count;
}

void hx_complete_signature(struct hx_complete *complete, struct hx_config_proxy_route *route)
{
	struct hapax_error err;
	struct hapax_buf text;
	enum hapax_status status;

	if (route->secret_file[0] == '\0')
		return;
	if (route->signature == HX_WEBHOOK_NONE) {
		fault(complete, route, HAPAX_ERR_INVALID,
		      "needs signature; the signatures of sns and paypal cannot be checked here");
		return;
	}
	if (route->strategy == NULL) {
		fault(complete, route, HAPAX_ERR_INVALID, "needs key");
		return;
	}
	if (route->signature == HX_WEBHOOK_TWILIO && route->public_url[0] == '\0') {
		fault(complete, route, HAPAX_ERR_INVALID,
		      "needs public_url: Twilio signs the URL that it calls");
		return;
	}
	hx_buf_init(&text, FILE_SIZE_MAX);
	status = hx_io_read_all(complete->io, route->secret_file, FILE_SIZE_MAX, &text, &err);
	if (status == HAPAX_OK)
		read_secrets(complete, route, hapax_buf_bytes(&text));
	else
		hx_fault(
			complete->faults, status, &route->place, "route '%.64s': secret_file: %s",
			route->name, err.message);
	if (text.data != NULL)
		explicit_bzero(text.data, text.capacity);
	hx_buf_done(&text);
}
