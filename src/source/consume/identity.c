/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - finds the key of a message.
 */
#include "source/consume/identity.h"

#include <string.h>

#include "base/error.h"

/*
 * The default strategies. Headers are tried in this order; the second is NATS', the third of
 * RabbitMQ's plug-in, the fifth document D's, the last that of Debezium's event router.
 */
static const char *const texts[HX_IDENTITY_DEFAULTS] = {
	"event-id",
	"header:Idempotency-Key",
	"header:Nats-Msg-Id",
	"header:x-deduplication-header",
	"header:message-id",
	"header:eventId",
	"header:id",
	"composite:meta.origin,meta.topic,meta.partition,meta.offset,meta.time",
	"composite:meta.origin,meta.topic,meta.offset",
};

enum { EVENT_ID = 0, HEADER_FIRST = 1, PLACE = 7, PLACE_WITHOUT_PARTITION = 8 };

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
	enum hapax_status status = HAPAX_OK;

	memset(identity, 0, sizeof(*identity));
	if (options != NULL)
		identity->on_missing = options->on_missing;
	if (strategy != NULL)
		return hapax_key_strategy_new(strategy, options, &identity->asked, err);
	if (options != NULL && options->include_count > 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "'include' needs strategy content or hybrid");
	for (size_t i = 0; i < HX_IDENTITY_DEFAULTS && status == HAPAX_OK; i++)
		status = make_usual(&identity->usual[i], texts[i], options, err);
	if (status != HAPAX_OK)
		hx_identity_done(identity);
	return status;
}

void hx_identity_done(struct hx_identity *identity)
{
	hapax_key_strategy_free(identity->asked);
	for (size_t i = 0; i < HX_IDENTITY_DEFAULTS; i++)
		hapax_key_strategy_free(identity->usual[i]);
	memset(identity, 0, sizeof(*identity));
}

static const struct hapax_key_strategy *choose(
	const struct hx_identity *identity, const struct hx_envelope *envelope)
{
	if (identity->asked != NULL)
		return identity->asked;
	if (envelope->is_cloudevent)
		return identity->usual[EVENT_ID];
	for (size_t i = HEADER_FIRST; i < PLACE; i++) {
		if (hx_envelope_header(envelope, texts[i] + strlen("header:")).size > 0)
			return identity->usual[i];
	}
	return identity->usual[envelope->partition[0] != '\0' ? PLACE : PLACE_WITHOUT_PARTITION];
}

enum hapax_status hx_identity_make(
	const struct hx_identity *identity, const struct hx_envelope *envelope,
	struct hapax_buf *scratch, struct hapax_key *ret_key, bool *ret_lacks_id,
	struct hapax_error *err)
{
	const struct hapax_key_strategy *strategy = choose(identity, envelope);

	*ret_lacks_id = identity->asked == NULL &&
		(strategy == identity->usual[PLACE] ||
		 strategy == identity->usual[PLACE_WITHOUT_PARTITION]);
	return hapax_key_make(strategy, &envelope->event, scratch, ret_key, err);
}
