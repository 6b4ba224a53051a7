/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preset.c - the senders of webhooks, as rows.
 *
 * What all of them have in common: any client can send, so a status of the handler other than 2xx
 * is never final. A delivery has no credential of a client. No sender promises that a retry has the
 * same bytes; Stripe changes pending_webhooks in it. A delivery whose outcome is unknown runs again
 * when the sender retries.
 *
 * wait and max_run together are below the time after which the sender gives up, so that it gets an
 * answer, never an early 2xx. That time is documented for GitHub (10 s), Shopify (5 s), Slack (3 s),
 * Twilio and SNS (15 s); Standard Webhooks recommends at least 15 s; Stripe and PayPal publish none.
 * ttl covers the time in which the sender retries, or lets its users do so.
 */
#include "config/preset.h"

#include <string.h>

#include "base/bytes.h"

#define OF_ALL                \
	"methods: [POST]\n"   \
	"credential: none\n"  \
	"fingerprint: none\n" \
	"required: true\n"    \
	"on_lapse: retry\n"   \
	"outcomes: {ok: [2xx], transient: [3xx, 4xx, 5xx]}\n"

const char *const hx_preset_names[] = {
	"none",   "github", "paypal", "shopify", "slack", "sns", "standard-webhooks",
	"stripe", "twilio", NULL,
};

/* In the order of their names. */
static const char *const settings[] = {
	NULL,
	/* github: it retries only if a person asks for it, within 3 days and with the same GUID. */
	OF_ALL "signature: github\n"
	       "key: header:X-GitHub-Delivery\n"
	       "wait: 1s\nmax_run: 8s\nttl: 7d\n",
	/* paypal: 3 days. */
	OF_ALL "key: field:data.id\n"
	       "wait: 1s\nmax_run: 8s\nttl: 7d\n",
	/* shopify: 4 hours. An action of a shop is one event in several topics. */
	OF_ALL "signature: shopify\n"
	       "key: composite:header.X-Shopify-Topic,header.X-Shopify-Event-Id\n"
	       "wait: 500ms\nmax_run: 4s\nttl: 2d\n",
	/* slack: three times, the last after 5 minutes. The handshake has no event. */
	OF_ALL "signature: slack\n"
	       "key: field:data.event_id\n"
	       "pass: ['data.type=url_verification']\n"
	       "wait: 500ms\nmax_run: 2s\nttl: 1d\n",
	/* sns: an hour, and only after 5xx: 409 would lose the message. */
	OF_ALL "key: field:data.MessageId\n"
	       "pass: ['data.Type=SubscriptionConfirmation', 'data.Type=UnsubscribeConfirmation']\n"
	       "busy_status: 503\n"
	       "wait: 2s\nmax_run: 12s\nttl: 1d\n",
	/* standard-webhooks: days, as the sender likes. */
	OF_ALL "signature: standard-webhooks\n"
	       "key: header:webhook-id\n"
	       "wait: 2s\nmax_run: 12s\nttl: 7d\n",
	/* stripe: 3 days. */
	OF_ALL "signature: stripe\n"
	       "key: field:data.id\n"
	       "wait: 1s\nmax_run: 8s\nttl: 7d\n",
	/* twilio: at once, if its URL asks for retries. */
	OF_ALL "signature: twilio\n"
	       "key: header:I-Twilio-Idempotency-Token\n"
	       "wait: 2s\nmax_run: 12s\nttl: 1d\n",
};
_Static_assert(HX_COUNT(settings) == HX_COUNT(hx_preset_names) - 1, "every name has its settings");

const char *hx_preset_settings(const char *name)
{
	for (size_t i = 0; i < HX_COUNT(settings); i++) {
		if (strcmp(hx_preset_names[i], name) == 0)
			return settings[i];
	}
	return NULL;
}
