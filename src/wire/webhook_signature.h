/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_signature.h - the signature that the sender of a webhook puts into a header.
 *
 * Each scheme is an HMAC, with a secret that sender and receiver share, over the body and what the
 * sender adds to it:
 *
 *	github              body
 *	shopify             body
 *	slack               "v0:" time ":" body
 *	standard-webhooks   id "." time "." body
 *	stripe              time "." body
 *	twilio              URL and the form's fields, in order; or URL with a digest of the body
 *
 * Only what is signed is known to come from the sender. github, shopify and twilio sign neither the
 * delivery's id nor its time: a client that has a signed delivery can send it again with another id.
 *
 *	status = hx_webhook_signature_check(&webhook, scratch, &err);
 *	if (status == HAPAX_ERR_INVALID)
 *		return refuse(401, err.message);
 *
 * A digest is compared whole, with every secret: the time that it takes tells nothing about it.
 *
 * Threads: any; nothing is kept.
 */
#ifndef HX_WEBHOOK_SIGNATURE_H
#define HX_WEBHOOK_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

enum hx_webhook_scheme {
	HX_WEBHOOK_NONE = 0,
	HX_WEBHOOK_GITHUB = 1,
	HX_WEBHOOK_SHOPIFY = 2,
	HX_WEBHOOK_SLACK = 3,
	HX_WEBHOOK_STANDARD = 4,
	HX_WEBHOOK_STRIPE = 5,
	HX_WEBHOOK_TWILIO = 6,
};

/* "none", "github", ...; ends with NULL. */
extern const char *const hx_webhook_scheme_names[];

enum {
	/* Two while a secret is replaced; a few more for several accounts. */
	HX_WEBHOOK_SECRETS_MAX = 8,
	HX_WEBHOOK_SECRET_SIZE_MAX = 1024,

	/* Fields of a form; Twilio sends a few dozen. */
	HX_WEBHOOK_FORM_FIELDS_MAX = 512,
};

/* A delivery. */
struct hx_webhook {
	enum hx_webhook_scheme scheme;     /* not NONE */
	const struct hapax_bytes *secrets; /* 1 to HX_WEBHOOK_SECRETS_MAX */
	size_t secret_count;
	int64_t tolerance_ms; /* how far its time may be from now_ms */
	int64_t now_ms;       /* since 1970 */
	const struct hapax_field *fields;
	size_t field_count;
	struct hapax_bytes content_type;
	struct hapax_bytes origin; /* twilio: "https://example.com", as the sender has it */
	struct hapax_bytes target; /* path and query */
	struct hapax_bytes body;
};

/*
 * Does a secret make the signature of the delivery? INVALID: it does not; the message says why, and
 * may be shown to the sender. LIMIT, NO_MEMORY: scratch, for a form.
 */
enum hapax_status hx_webhook_signature_check(
	const struct hx_webhook *webhook, struct hapax_buf *scratch, struct hapax_error *err);

/*
 * The bytes of a secret from its text in a file: those of standard-webhooks are whsec_ and Base64.
 * Writes at most text.size bytes. False: it is empty, too long or not Base64.
 */
bool hx_webhook_secret_read(
	enum hx_webhook_scheme scheme, struct hapax_bytes text, unsigned char *out,
	size_t *ret_size);

#endif
