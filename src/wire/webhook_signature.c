/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/webhook_signature.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/hmac.h"
#include "base/sha1.h"
#include "wire/base64.h"
#include "wire/http1/http1_text.h"
#include "wire/http1/http_path.h"
#include "wire/media_type.h"
#include "wire/percent.h"

const char *const hx_webhook_scheme_names[] = {
	"none", "github", "shopify", "slack", "standard-webhooks", "stripe", "twilio", NULL,
};

/* A time has at most these digits: until the year 33658. */
enum { TIME_DIGITS_MAX = 12, PARTS_MAX = 8 };

static const struct scheme {
	const char *header; /* that has the signatures */
	const char *prefix; /* of each that counts; others are of another version */
	char separator;     /* between them; NUL: there is only one */
	bool is_base64;     /* else hexadecimal digits */
	const char *time;   /* header that has the time; "": header does, as t=; NULL: none */
	const char *id;     /* header that has the id; NULL: none */
	const char *form;   /* of what is signed: I, T, B stand for id, time, body */
} schemes[] = {
	[HX_WEBHOOK_GITHUB] = {"X-Hub-Signature-256", "sha256=", '\0', false, NULL, NULL, "B"},
	[HX_WEBHOOK_SHOPIFY] = {"X-Shopify-Hmac-Sha256", "", '\0', true, NULL, NULL, "B"},
	[HX_WEBHOOK_SLACK] =
		{"X-Slack-Signature", "v0=", '\0', false, "X-Slack-Request-Timestamp", NULL,
		 "v0:T:B"},
	[HX_WEBHOOK_STANDARD] =
		{"webhook-signature", "v1,", ' ', true, "webhook-timestamp", "webhook-id", "I.T.B"},
	[HX_WEBHOOK_STRIPE] = {"Stripe-Signature", "v1=", ',', false, "", NULL, "T.B"},
	/* URL and fields, by HMAC-SHA-1: see sign_url(). */
	[HX_WEBHOOK_TWILIO] = {"X-Twilio-Signature", "", '\0', true, NULL, NULL, NULL},
};

/* The digests that the secrets make; of SHA-1, with zeros behind it. */
struct digests {
	size_t size; /* of each */
	unsigned char bytes[HX_WEBHOOK_SECRETS_MAX][HX_SHA256_SIZE];
};

/* INVALID: the header is missing or occurs twice. */
static enum hapax_status find(
	const struct hx_webhook *webhook, const char *name, struct hapax_bytes *ret,
	struct hapax_error *err)
{
	const struct hapax_field *found = NULL;

	for (size_t i = 0; i < webhook->field_count; i++) {
		if (!hx_http1_text_equal(webhook->fields[i].name, hapax_bytes_from_text(name)))
			continue;
		if (found != NULL)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "the header '%s' occurs twice", name);
		found = &webhook->fields[i];
	}
	if (found == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the header '%s' is missing", name);
	*ret = found->value;
	return HAPAX_OK;
}

/* Take the next element from rest. False: none is left. */
static bool next(struct hapax_bytes *rest, char separator, struct hapax_bytes *ret)
{
	const char *at = rest->data;
	const char *end;

	if (at == NULL)
		return false;
	end = separator == '\0' || rest->size == 0 ? NULL : memchr(at, separator, rest->size);
	*ret = hx_bytes(at, end == NULL ? rest->size : (size_t)(end - at));
	*rest = end == NULL ? hx_bytes(NULL, 0) : hx_bytes(end + 1, rest->size - ret->size - 1);
	return true;
}

static bool take_prefix(struct hapax_bytes *text, const char *prefix)
{
	size_t size = strlen(prefix);

	if (text->size < size || (size > 0 && memcmp(text->data, prefix, size) != 0))
		return false;
	*text = hx_bytes((const char *)text->data + size, text->size - size);
	return true;
}

/* The time in Stripe's header: a second one could be read instead of the first. */
static enum hapax_status find_own_time(
	struct hapax_bytes header, struct hapax_bytes *ret, struct hapax_error *err)
{
	struct hapax_bytes element;
	size_t count = 0;

	while (next(&header, ',', &element)) {
		if (!take_prefix(&element, "t="))
			continue;
		*ret = element;
		count++;
	}
	if (count != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the signature has %s time",
			count == 0 ? "no" : "more than one");
	return HAPAX_OK;
}

static enum hapax_status check_time(
	const struct hx_webhook *webhook, struct hapax_bytes text, struct hapax_error *err)
{
	const char *digits = text.data;
	int64_t seconds = 0;
	int64_t distance_ms;

	if (text.size == 0 || text.size > TIME_DIGITS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the time of the signature is invalid");
	for (size_t i = 0; i < text.size; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "the time of the signature is invalid");
		seconds = 10 * seconds + (digits[i] - '0');
	}
	distance_ms = webhook->now_ms - 1000 * seconds;
	if (distance_ms < 0)
		distance_ms = -distance_ms;
	if (distance_ms > webhook->tolerance_ms)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the time of the signature is too far from the current time");
	return HAPAX_OK;
}

/* Make the digests of what the scheme signs. */
static enum hapax_status sign_body(
	const struct hx_webhook *webhook, const struct scheme *scheme, struct hapax_bytes header,
	struct digests *ret, struct hapax_error *err)
{
	struct hapax_bytes time = hx_bytes(NULL, 0);
	struct hapax_bytes id = hx_bytes(NULL, 0);
	struct hapax_bytes parts[PARTS_MAX];
	size_t count = 0;
	enum hapax_status status = HAPAX_OK;

	if (scheme->time != NULL)
		status = scheme->time[0] == '\0' ? find_own_time(header, &time, err)
						 : find(webhook, scheme->time, &time, err);
	if (status == HAPAX_OK && scheme->time != NULL)
		status = check_time(webhook, time, err);
	if (status == HAPAX_OK && scheme->id != NULL)
		status = find(webhook, scheme->id, &id, err);
	if (status != HAPAX_OK)
		return status;
	for (const char *at = scheme->form; *at != '\0'; at++) {
		assert(count < PARTS_MAX);
		parts[count++] = *at == 'I' ? id
			: *at == 'T'        ? time
			: *at == 'B'        ? webhook->body
					    : hx_bytes(at, 1);
	}
	ret->size = HX_SHA256_SIZE;
	for (size_t i = 0; i < webhook->secret_count; i++)
		hx_hmac_sha256(webhook->secrets[i], parts, count, ret->bytes[i]);
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ twilio */

static int compare_bytes(struct hapax_bytes a, struct hapax_bytes b)
{
	size_t size = a.size < b.size ? a.size : b.size;
	int order = size == 0 ? 0 : memcmp(a.data, b.data, size);

	return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_fields(const void *a, const void *b)
{
	const struct hapax_field *x = a;
	const struct hapax_field *y = b;
	int order = compare_bytes(x->name, y->name);

	return order != 0 ? order : compare_bytes(x->value, y->value);
}

/* Decode a name or value of a form to the end of out, which has room. */
static bool decode(struct hapax_bytes text, struct hapax_buf *out, struct hapax_bytes *ret)
{
	unsigned char *at = out->data + out->size;
	size_t size;

	if (text.size > 0)
		memcpy(at, text.data, text.size);
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] == '+')
			at[i] = ' ';
	}
	/* It never becomes longer, and is decoded where it lies. */
	if (!hx_percent_decode(hx_bytes(at, text.size), at, &size))
		return false;
	out->size += size;
	*ret = hx_bytes(at, size);
	return true;
}

/* Read the fields of a form into fields, decoded into out. */
static enum hapax_status read_form(
	struct hapax_bytes form, struct hapax_field *fields, size_t *ret_count,
	struct hapax_buf *out, struct hapax_error *err)
{
	struct hapax_bytes name;
	struct hapax_bytes value;
	size_t count = 0;

	while (hx_percent_query_next(&form, &name, &value)) {
		if (count == HX_WEBHOOK_FORM_FIELDS_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "the form has more than %d fields",
				HX_WEBHOOK_FORM_FIELDS_MAX);
		if (!decode(name, out, &fields[count].name) ||
		    !decode(value, out, &fields[count].value))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "the form has an invalid percent sign");
		count++;
	}
	*ret_count = count;
	return HAPAX_OK;
}

/* Append names and values in order, each pair once. */
static enum hapax_status add_form(
	struct hapax_bytes form, struct hapax_buf *text, struct hapax_error *err)
{
	struct hapax_field fields[HX_WEBHOOK_FORM_FIELDS_MAX];
	/* The decoded fields lie behind the room for their sorted copy. */
	struct hapax_buf decoded = {
		text->data + text->size + form.size, 0, form.size, form.size, NULL};
	size_t count = 0;
	enum hapax_status status = read_form(form, fields, &count, &decoded, err);

	if (status != HAPAX_OK)
		return status;
	qsort(fields, count, sizeof(fields[0]), compare_fields);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && compare_fields(&fields[i - 1], &fields[i]) == 0)
			continue;
		(void)hx_buf_append(text, fields[i].name.data, fields[i].name.size);
		(void)hx_buf_append(text, fields[i].value.data, fields[i].value.size);
	}
	return HAPAX_OK;
}

/* A body that is not a form has its digest in the query. */
static enum hapax_status check_body_digest(
	const struct hx_webhook *webhook, struct hapax_error *err)
{
	struct hapax_bytes query;
	struct hapax_bytes name;
	struct hapax_bytes value;
	unsigned char claimed[HX_SHA256_SIZE];
	unsigned char digest[HX_SHA256_SIZE];

	if (webhook->body.size == 0)
		return HAPAX_OK;
	(void)hx_http_path_split(webhook->target, &query);
	hx_sha256(webhook->body.data, webhook->body.size, digest);
	while (hx_percent_query_next(&query, &name, &value)) {
		if (hx_bytes_equal(name, HX_BYTES_LIT("bodySHA256")) &&
		    value.size == sizeof(claimed) * 2 && hx_hex_decode(value, claimed) &&
		    hx_sha256_equal(claimed, digest))
			return HAPAX_OK;
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"the body is not a form, and its digest is not in the query (bodySHA256)");
}

/* Make the digests of URL and form. */
static enum hapax_status sign_url(
	const struct hx_webhook *webhook, struct hapax_buf *scratch, struct digests *ret,
	struct hapax_error *err)
{
	bool is_form = hx_http1_text_equal(
		hx_media_type_essence(webhook->content_type),
		HX_BYTES_LIT("application/x-www-form-urlencoded"));
	enum hapax_status status;

	hx_buf_clear(scratch);
	status = hx_buf_reserve(
		scratch, webhook->origin.size + webhook->target.size + 2 * webhook->body.size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory for the form");
	(void)hx_buf_append(scratch, webhook->origin.data, webhook->origin.size);
	(void)hx_buf_append(scratch, webhook->target.data, webhook->target.size);
	status = is_form ? add_form(webhook->body, scratch, err) : check_body_digest(webhook, err);
	ret->size = HX_SHA1_SIZE;
	for (size_t i = 0; i < webhook->secret_count && status == HAPAX_OK; i++) {
		if (!hx_hmac_sha1(webhook->secrets[i], hapax_buf_bytes(scratch), ret->bytes[i]))
			status = hx_error_set(
				err, HAPAX_ERR_UNSUPPORTED, 0, "SHA-1 is not available here");
	}
	return status;
}

/* ------------------------------------------------------------------ the signature */

/* False: it is not a signature of that size. */
static bool read_signature(
	const struct scheme *scheme, struct hapax_bytes text, size_t size,
	unsigned char out[HX_SHA256_SIZE])
{
	/* Base64 of that length can have up to two bytes more. */
	unsigned char bytes[HX_SHA256_SIZE + 2];
	size_t got = size;

	if (text.size != (scheme->is_base64 ? hx_base64_size(size) : 2 * size))
		return false;
	if (scheme->is_base64 ? !hx_base64_decode(text, bytes, &got) : !hx_hex_decode(text, bytes))
		return false;
	memset(out, 0, HX_SHA256_SIZE);
	memcpy(out, bytes, size);
	return got == size;
}

enum hapax_status hx_webhook_signature_check(
	const struct hx_webhook *webhook, struct hapax_buf *scratch, struct hapax_error *err)
{
	const struct scheme *scheme = &schemes[webhook->scheme];
	unsigned char given[HX_SHA256_SIZE] = {0};
	struct digests digests = {.size = 0};
	struct hapax_bytes header = hx_bytes(NULL, 0);
	struct hapax_bytes element;
	bool is_equal = false;
	enum hapax_status status;

	assert(webhook->scheme != HX_WEBHOOK_NONE && webhook->secret_count > 0 &&
	       webhook->secret_count <= HX_WEBHOOK_SECRETS_MAX);
	status = find(webhook, scheme->header, &header, err);
	if (status == HAPAX_OK)
		status = webhook->scheme == HX_WEBHOOK_TWILIO
			? sign_url(webhook, scratch, &digests, err)
			: sign_body(webhook, scheme, header, &digests, err);
	if (status != HAPAX_OK)
		return status;
	while (next(&header, scheme->separator, &element)) {
		if (!take_prefix(&element, scheme->prefix) ||
		    !read_signature(scheme, element, digests.size, given))
			continue;
		for (size_t i = 0; i < webhook->secret_count; i++)
			is_equal |= hx_sha256_equal(given, digests.bytes[i]);
	}
	if (!is_equal)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the signature in '%s' does not match",
			scheme->header);
	return HAPAX_OK;
}

bool hx_webhook_secret_read(
	enum hx_webhook_scheme scheme, struct hapax_bytes text, unsigned char *out,
	size_t *ret_size)
{
	if (text.size == 0 || text.size > HX_WEBHOOK_SECRET_SIZE_MAX)
		return false;
	if (scheme == HX_WEBHOOK_STANDARD) {
		(void)take_prefix(&text, "whsec_");
		return hx_base64_decode(text, out, ret_size) && *ret_size > 0;
	}
	memcpy(out, text.data, text.size);
	*ret_size = text.size;
	return true;
}
