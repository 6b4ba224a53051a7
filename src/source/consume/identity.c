/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - finds the key of a message.
 */
#include "source/consume/identity.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/*
 * In this order; the second is NATS', the third of RabbitMQ's plug-in, the fifth document D's, the
 * last that of Debezium's event router.
 */
static const char *const header_names[HX_IDENTITY_HEADERS] = {
	"Idempotency-Key", "Nats-Msg-Id", "x-deduplication-header", "message-id", "eventId", "id",
};

/* Options that apply to all default strategies. */
static enum hapax_status make_usual(
	struct hapax_key_strategy **ret, const char *text, const struct hapax_key_options *options,
	struct hapax_error *err)
{
	struct hapax_key_options usual = HAPAX_KEY_OPTIONS_INIT;

	if (options != NULL) {
		usual = *options;
		usual.include = NULL;
		usual.include_count = 0;
	}
	return hapax_key_strategy_new(text, &usual, ret, err);
}

enum hapax_status hx_identity_init(
	struct hx_identity *identity, const char *strategy, const struct hapax_key_options *options,
	struct hapax_error *err)
{
	enum hapax_status status;
	char text[64];

	memset(identity, 0, sizeof(*identity));
	if (strategy != NULL)
		return hapax_key_strategy_new(strategy, options, &identity->asked, err);
	if (options != NULL && options->include_count > 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "include needs the strategy content or hybrid");
	status = make_usual(&identity->event_id, "event-id", options, err);
	for (size_t i = 0; i < HX_IDENTITY_HEADERS && status == HAPAX_OK; i++) {
		(void)snprintf(text, sizeof(text), "header:%s", header_names[i]);
		status = make_usual(&identity->headers[i], text, options, err);
	}
	if (status == HAPAX_OK)
		status = make_usual(
			&identity->place,
			"composite:meta.origin,meta.topic,meta.partition,meta.offset,meta.time",
			options, err);
	if (status == HAPAX_OK)
		status = make_usual(
			&identity->place_whole, "composite:meta.origin,meta.topic,meta.offset",
			options, err);
	if (status != HAPAX_OK)
		hx_identity_done(identity);
	return status;
}

void hx_identity_done(struct hx_identity *identity)
{
	hapax_key_strategy_free(identity->asked);
	hapax_key_strategy_free(identity->event_id);
	for (size_t i = 0; i < HX_IDENTITY_HEADERS; i++)
		hapax_key_strategy_free(identity->headers[i]);
	hapax_key_strategy_free(identity->place);
	hapax_key_strategy_free(identity->place_whole);
	memset(identity, 0, sizeof(*identity));
}

static const struct hapax_key_strategy *choose(
	const struct hx_identity *identity, const struct hx_envelope *envelope)
{
	if (identity->asked != NULL)
		return identity->asked;
	if (envelope->is_cloudevent)
		return identity->event_id;
	for (size_t i = 0; i < HX_IDENTITY_HEADERS; i++) {
		if (hx_envelope_header(envelope, header_names[i]).size > 0)
			return identity->headers[i];
	}
	return envelope->partition[0] != '\0' ? identity->place : identity->place_whole;
}

enum hapax_status hx_identity_make(
	const struct hx_identity *identity, const struct hx_envelope *envelope,
	struct hapax_buf *scratch, struct hapax_key *ret_key, struct hapax_error *err)
{
	return hapax_key_make(choose(identity, envelope), &envelope->event, scratch, ret_key, err);
}
