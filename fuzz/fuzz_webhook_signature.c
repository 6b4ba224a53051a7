/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: signatures of webhooks, in headers, forms and queries (src/wire/webhook_signature.c).
 *
 * The first byte chooses the scheme; then lines: the signature, its time, the id, the content type,
 * the target; the rest is the body. The corpus has a valid delivery of each scheme. What is valid
 * is so again, and not with another secret, body, id or time.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/webhook_signature.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

enum { NOW = 1614265330 };

static const char *const names[][3] = {
	[HX_WEBHOOK_GITHUB] = {"X-Hub-Signature-256"},
	[HX_WEBHOOK_SHOPIFY] = {"X-Shopify-Hmac-Sha256"},
	[HX_WEBHOOK_SLACK] = {"X-Slack-Signature", "X-Slack-Request-Timestamp"},
	[HX_WEBHOOK_STANDARD] = {"webhook-signature", "webhook-timestamp", "webhook-id"},
	[HX_WEBHOOK_STRIPE] = {"Stripe-Signature"},
	[HX_WEBHOOK_TWILIO] = {"X-Twilio-Signature"},
};

static struct hapax_bytes take_line(const unsigned char **data, size_t *size)
{
	const unsigned char *begin = *data;
	const unsigned char *end = *size == 0 ? NULL : memchr(begin, '\n', *size);
	size_t length = end == NULL ? *size : (size_t)(end - begin);

	*data += end == NULL ? length : length + 1;
	*size -= end == NULL ? length : length + 1;
	return hx_bytes(begin, length);
}

static bool is_valid(const struct hx_webhook *webhook)
{
	struct hapax_buf scratch;
	struct hapax_error err;
	enum hapax_status status;

	hx_buf_init(&scratch, 1024 * 1024);
	status = hx_webhook_signature_check(webhook, &scratch, &err);
	hx_buf_done(&scratch);
	must(status == HAPAX_OK || status == HAPAX_ERR_INVALID);
	return status == HAPAX_OK;
}

static void check_others(const struct hx_webhook *valid)
{
	const struct hapax_bytes other = HX_BYTES_LIT("another secret");
	const struct hapax_bytes both[] = {other, valid->secrets[0]};
	struct hx_webhook changed = *valid;

	must(is_valid(valid));
	changed.secrets = &other;
	must(!is_valid(&changed));
	changed.secrets = both;
	changed.secret_count = 2;
	must(is_valid(&changed));
	changed = *valid;
	changed.now_ms += 1000 * 1000;
	must(is_valid(&changed) ==
	     (valid->scheme == HX_WEBHOOK_GITHUB || valid->scheme == HX_WEBHOOK_SHOPIFY ||
	      valid->scheme == HX_WEBHOOK_TWILIO));
	if (valid->scheme == HX_WEBHOOK_TWILIO)
		return;
	changed = *valid;
	changed.body = HX_BYTES_LIT("no sender signed this");
	must(!is_valid(&changed));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const struct hapax_bytes secret = HX_BYTES_LIT("12345");
	struct hapax_bytes lines[3];
	struct hapax_field fields[3];
	struct hx_webhook webhook = {
		.secrets = &secret,
		.secret_count = 1,
		.tolerance_ms = 300 * 1000,
		.now_ms = INT64_C(1000) * NOW,
		.fields = fields,
		.origin = HX_BYTES_LIT("https://mycompany.com")};

	if (size == 0)
		return 0;
	webhook.scheme = (enum hx_webhook_scheme)(1 + data[0] % HX_WEBHOOK_TWILIO);
	data++;
	size--;
	for (size_t i = 0; i < 3; i++)
		lines[i] = take_line(&data, &size);
	for (size_t i = 0; i < 3 && names[webhook.scheme][i] != NULL; i++)
		fields[webhook.field_count++] = (struct hapax_field){
			hapax_bytes_from_text(names[webhook.scheme][i]), lines[i]};
	webhook.content_type = take_line(&data, &size);
	webhook.target = take_line(&data, &size);
	webhook.body = hx_bytes(data, size);
	if (is_valid(&webhook))
		check_others(&webhook);
	return 0;
}
