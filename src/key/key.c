/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.c - make the scope, key and fingerprint of an event.
 */
#include "key/key.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "key/content.h"

static enum hapax_status null_argument(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an argument is NULL or not initialized");
}

/* An older caller has fewer members; the others are as in INIT. */
static bool read_event(const struct hapax_event *given, struct hapax_event *event)
{
	*event = (struct hapax_event)HAPAX_EVENT_INIT;
	if (given == NULL || given->size < sizeof(given->size) || given->size > sizeof(*event))
		return false;
	memcpy(event, given, given->size);
	return (event->data.data != NULL || event->data.size == 0) &&
		(event->attributes != NULL || event->attribute_count == 0) &&
		(event->headers != NULL || event->header_count == 0) &&
		(event->meta != NULL || event->meta_count == 0);
}

void hx_key_next_run_id(const struct hapax_key_strategy *strategy, struct hapax_key *ret)
{
	int64_t now_ms = strategy->clock->wall_ms(strategy->clock->context);

	_Static_assert((int)HAPAX_RUN_ID_SIZE == (int)HX_UUID_SIZE, "a run id is a UUID");
	hx_uuid7_next(strategy->uuids, now_ms, ret->run_id);
	ret->has_run_id = 1;
}

/* The key could not be made: why says what was missing. */
static enum hapax_status apply_policy(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	const struct hapax_error *why, struct hapax_error *err)
{
	struct hapax_error content = {HAPAX_OK, 0, ""};
	enum hx_key_made made;

	ret->kind = HAPAX_KEY_NONE;
	ret->key_size = 0;
	ret->key[0] = '\0';
	(void)snprintf(ret->missing, sizeof(ret->missing), "%s", why->message);
	switch (strategy->on_missing) {
	case HAPAX_ON_MISSING_REJECT: break;
	case HAPAX_ON_MISSING_PASS: return HAPAX_OK;
	case HAPAX_ON_MISSING_CONTENT:
		made = hx_content_make_any(strategy, view, "content:", ret, &content);
		if (made == HX_KEY_MADE) {
			ret->kind = HAPAX_KEY_CONTENT;
			return HAPAX_OK;
		}
		if (made == HX_KEY_FAILED)
			return hx_error_set(err, content.status, 0, "%s", content.message);
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "%s; %s", content.message, why->message);
	}
	return hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s", why->message);
}

static enum hapax_status make_key(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	struct hapax_error why = {HAPAX_OK, 0, ""};

	switch (strategy->type->make(strategy, view, ret, &why)) {
	case HX_KEY_MADE:
		assert(ret->key_size >= 1);
		assert(ret->key_size <= HAPAX_KEY_SIZE_MAX);
		return HAPAX_OK;
	case HX_KEY_MISSING:
	case HX_KEY_ABSENT: return apply_policy(strategy, view, ret, &why, err);
	case HX_KEY_FAILED: break;
	}
	assert(why.status != HAPAX_OK);
	return hx_error_set(err, why.status, 0, "%s", why.message);
}

/* Like HAPAX_KEY_INIT, but unused array elements stay unset. */
static void init_key(struct hapax_key *key)
{
	key->size = sizeof(*key);
	key->kind = HAPAX_KEY_NONE;
	key->key_size = 0;
	key->key[0] = '\0';
	key->has_fingerprint = 0;
	key->is_fingerprint = 0;
	key->has_run_id = 0;
	key->missing[0] = '\0';
	key->also_size = 0;
	key->also[0] = '\0';
	key->has_also_fingerprint = 0;
}

/* Copy only the part in use: a key is a kilobyte, mostly unused. */
static void copy_key(const struct hapax_key *source, struct hapax_key *target)
{
	target->kind = source->kind;
	target->key_size = source->key_size;
	memcpy(target->key, source->key, source->key_size + 1);
	target->tenant_size = source->tenant_size;
	memcpy(target->tenant, source->tenant, source->tenant_size + 1);
	target->group_size = source->group_size;
	memcpy(target->group, source->group, source->group_size + 1);
	target->has_fingerprint = source->has_fingerprint;
	target->is_fingerprint = source->is_fingerprint;
	memset(target->fingerprint, 0, sizeof(target->fingerprint));
	if (source->has_fingerprint)
		memcpy(target->fingerprint, source->fingerprint, sizeof(target->fingerprint));
	target->has_run_id = source->has_run_id;
	memset(target->run_id, 0, sizeof(target->run_id));
	if (source->has_run_id)
		memcpy(target->run_id, source->run_id, sizeof(target->run_id));
	memcpy(target->missing, source->missing, strlen(source->missing) + 1);
	target->also_size = source->also_size;
	memcpy(target->also, source->also, source->also_size + 1);
	target->has_also_fingerprint = source->has_also_fingerprint;
	memset(target->also_fingerprint, 0, sizeof(target->also_fingerprint));
	if (source->has_also_fingerprint)
		memcpy(target->also_fingerprint, source->also_fingerprint,
		       sizeof(target->also_fingerprint));
}

static bool is_key(const struct hapax_key *key)
{
	return key != NULL && key->size >= sizeof(key->size) && key->size <= sizeof(*key);
}

/* An older caller gets only what it has room for. */
static void return_key(const struct hapax_key *source, struct hapax_key *target)
{
	if (target->size < sizeof(*target)) {
		struct hapax_key whole = HAPAX_KEY_INIT;

		copy_key(source, &whole);
		whole.size = target->size;
		memcpy(target, &whole, whole.size);
		return;
	}
	copy_key(source, target);
}

static enum hapax_status make_fingerprint(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *key,
	struct hapax_error *err)
{
	struct hapax_error why = {HAPAX_OK, 0, ""};

	if (strategy->flags & HAPAX_KEY_NO_FINGERPRINT) {
		key->has_fingerprint = 0;
		return HAPAX_OK;
	}
	if (key->has_fingerprint)
		return HAPAX_OK;
	key->has_fingerprint = 1;
	if (hx_content_fingerprint(strategy, view, key->fingerprint, &why) == HX_KEY_MADE)
		return HAPAX_OK;
	return hx_error_set(err, why.status, 0, "%s", why.message);
}

/* By one strategy, regardless of its other one. */
static enum hapax_status make_one(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_key *ret, struct hapax_error *err)
{
	struct hx_key_view view;
	enum hapax_status status;

	init_key(ret);
	hx_view_init(&view, event, scratch);
	status = hx_key_scope_make(strategy, &view, ret, err);
	if (status == HAPAX_OK)
		status = make_key(strategy, &view, ret, err);
	if (status == HAPAX_OK)
		status = make_fingerprint(strategy, &view, ret, err);
	hx_view_done(&view);
	return status;
}

static bool is_also_used(const struct hapax_key_strategy *strategy)
{
	return strategy->also != NULL &&
		strategy->clock->wall_ms(strategy->clock->context) < strategy->also_until_ms;
}

/*
 * Add the key by the old strategy to the new one, which is made, or found missing. An event that
 * has none needs none; one that has no other keeps its old key alone.
 */
static enum hapax_status make_also(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, enum hapax_status made, struct hapax_key *key,
	struct hapax_error *err)
{
	struct hapax_error why;
	struct hapax_key also;
	enum hapax_status status = make_one(strategy->also, event, scratch, &also, &why);

	if (status == HAPAX_ERR_INVALID || (status == HAPAX_OK && also.kind == HAPAX_KEY_NONE))
		return made;
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "key_also: %s", why.message);
	if (key->kind == HAPAX_KEY_NONE) {
		key->size = sizeof(*key);
		copy_key(&also, key);
		return HAPAX_OK;
	}
	if (also.key_size == key->key_size && memcmp(also.key, key->key, key->key_size) == 0)
		return HAPAX_OK;
	key->also_size = also.key_size;
	memcpy(key->also, also.key, also.key_size + 1);
	key->has_also_fingerprint = also.has_fingerprint;
	if (also.has_fingerprint)
		memcpy(key->also_fingerprint, also.fingerprint, sizeof(also.fingerprint));
	return HAPAX_OK;
}

enum hapax_status hapax_key_make(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_key *ret_key, struct hapax_error *err)
{
	struct hapax_event complete;
	struct hapax_key key;
	enum hapax_status status;
	bool is_missing;

	if (strategy == NULL || !read_event(event, &complete) || scratch == NULL ||
	    !is_key(ret_key))
		return null_argument(err);
	status = make_one(strategy, &complete, scratch, &key, err);
	/* What the old strategy accepted before the change is not rejected until it ends. */
	is_missing = status == HAPAX_ERR_INVALID && key.missing[0] != '\0';
	if ((status == HAPAX_OK || is_missing) && is_also_used(strategy))
		status = make_also(strategy, &complete, scratch, status, &key, err);
	if (status == HAPAX_OK)
		return_key(&key, ret_key);
	return status;
}

enum hapax_status hapax_event_fingerprint(
	const struct hapax_event *event, struct hapax_buf *scratch,
	unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err)
{
	struct hapax_error why = {HAPAX_OK, 0, ""};
	struct hapax_event complete;
	struct hx_key_view view;
	enum hx_key_made made;

	if (!read_event(event, &complete) || scratch == NULL || ret_fingerprint == NULL)
		return null_argument(err);
	hx_view_init(&view, &complete, scratch);
	made = hx_view_fingerprint(&view, HX_JSON_ALL, ret_fingerprint, &why);
	hx_view_done(&view);
	if (made == HX_KEY_MADE)
		return HAPAX_OK;
	return hx_error_set(err, why.status, 0, "%s", why.message);
}

enum hapax_status hapax_key_canonical_text(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch, struct hapax_buf *out, struct hapax_error *err)
{
	struct hapax_error why = {HAPAX_OK, 0, ""};
	struct hapax_bytes text = {NULL, 0};
	struct hapax_event complete;
	struct hx_key_view view;
	enum hapax_status status;

	if (strategy == NULL || !read_event(event, &complete) || scratch == NULL || out == NULL ||
	    out == scratch)
		return null_argument(err);
	if (!(strategy->type->flags & HX_KEY_TYPE_CONTENT)) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "strategy '%s' does not use canonical text",
			strategy->type->name);
	}
	hx_view_init(&view, &complete, scratch);
	if (hx_content_text(strategy, &view, &text, &why) != HX_KEY_MADE) {
		status = hx_error_set(err, why.status, 0, "%s", why.message);
	} else {
		status = hx_buf_append(out, text.data, text.size);
		if (status != HAPAX_OK)
			(void)hx_error_set(err, status, 0, "the canonical text is too long");
	}
	hx_view_done(&view);
	return status;
}
