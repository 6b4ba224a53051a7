/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.c - select data, write it canonically, hash it.
 */
#include "key/content.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"
#include "key/nested.h"
#include "key/part.h"

static bool selects(const struct hapax_key_strategy *strategy)
{
	return strategy->include_count > 0 || strategy->exclude_count > 0;
}

/* Mark the excluded paths, which need not exist. */
static enum hx_key_made drop_excluded(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	struct hapax_error *err)
{
	for (size_t i = 0; i < strategy->exclude_count; i++) {
		if (hx_nested_unfold(view, &strategy->exclude[i], err) == HX_KEY_FAILED)
			return HX_KEY_FAILED;
		hx_json_path_drop(&strategy->exclude[i].json, &view->tree);
	}
	return HX_KEY_MADE;
}

/* Mark the included paths. */
static enum hx_key_made keep_included(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	struct hapax_error *err)
{
	for (size_t i = 0; i < strategy->include_count; i++) {
		enum hx_key_made made = hx_nested_unfold(view, &strategy->include[i], err);

		if (made != HX_KEY_MADE)
			return made;
		if (!hx_json_path_keep(&strategy->include[i].json, &view->tree)) {
			(void)hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "'%s' is missing",
				strategy->include[i].text);
			return HX_KEY_MISSING;
		}
	}
	return HX_KEY_MADE;
}

enum hx_key_made hx_content_fingerprint(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	unsigned char out[HAPAX_FINGERPRINT_SIZE], struct hapax_error *err)
{
	enum hx_json_select select = HX_JSON_ALL;
	enum hx_key_made made;

	if (strategy->exclude_count > 0) {
		made = hx_view_read(view, err);
		if (made == HX_KEY_MADE) {
			made = drop_excluded(strategy, view, err);
			select = HX_JSON_REST;
		}
		if (made == HX_KEY_FAILED)
			return made;
	}
	return hx_view_fingerprint(view, select, out, err);
}

static enum hx_key_made nothing(const char *what, struct hapax_error *err)
{
	(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "cannot make a key: %s", what);
	return HX_KEY_MISSING;
}

static enum hx_json_dialect dialect_of(const struct hapax_key_strategy *strategy)
{
	return strategy->canonical == HAPAX_CANONICAL_PYTHON ? HX_JSON_PYTHON : HX_JSON_LOSSLESS;
}

/*
 * The canonical text of the selected data without excluded paths. Brackets alone identify nothing:
 * all events with no value left would share a key.
 */
static enum hx_key_made write_selected(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	enum hx_json_select select, struct hapax_bytes *ret, struct hapax_error *err)
{
	enum hx_key_made made = hx_view_read(view, err);

	if (made == HX_KEY_MADE && select == HX_JSON_MARKED)
		made = keep_included(strategy, view, err);
	if (made == HX_KEY_MADE)
		made = drop_excluded(strategy, view, err);
	if (made != HX_KEY_MADE)
		return made;
	if (select != HX_JSON_ALL && !hx_json_canonical_has_value(&view->tree, select) &&
	    hx_json_canonical_has_value(&view->tree, HX_JSON_ALL))
		return nothing("include and exclude leave no value", err);
	return hx_view_canonical(view, dialect_of(strategy), select, ret, err);
}

/* Select everything that is not excluded. */
static enum hx_json_select rest(const struct hapax_key_strategy *strategy)
{
	return strategy->exclude_count > 0 ? HX_JSON_REST : HX_JSON_ALL;
}

enum hx_key_made hx_content_text(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view,
	struct hapax_bytes *ret, struct hapax_error *err)
{
	/* All events without data would share a key. */
	if (view->event->data.size == 0)
		return nothing("the event has no data", err);
	if (view->event->data_kind == HAPAX_DATA_BYTES && !selects(strategy)) {
		*ret = view->event->data;
		return HX_KEY_MADE;
	}
	return write_selected(
		strategy, view, strategy->include_count > 0 ? HX_JSON_MARKED : rest(strategy), ret,
		err);
}

static void set_digest(
	const struct hapax_key_strategy *strategy, struct hapax_bytes text, const char *prefix,
	struct hapax_key *ret)
{
	unsigned char digest[HX_SHA256_SIZE];

	hx_sha256(text.data, text.size, digest);
	hx_key_set_digest(ret, prefix, digest);
	/* With included paths, the key covers less than the fingerprint. */
	if (strategy->include_count > 0 || strategy->canonical != HAPAX_CANONICAL_LOSSLESS)
		return;
	memcpy(ret->fingerprint, digest, sizeof(ret->fingerprint));
	ret->has_fingerprint = 1;
	ret->is_fingerprint = prefix[0] == '\0';
}

enum hx_key_made hx_content_make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, const char *prefix,
	struct hapax_key *ret, struct hapax_error *err)
{
	struct hapax_bytes text = {NULL, 0};
	enum hx_key_made made = hx_content_text(strategy, view, &text, err);

	if (made == HX_KEY_MADE)
		set_digest(strategy, text, prefix, ret);
	return made;
}

enum hx_key_made hx_content_make_any(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, const char *prefix,
	struct hapax_key *ret, struct hapax_error *err)
{
	enum hx_key_made made = hx_content_make(strategy, view, prefix, ret, err);
	struct hapax_bytes text = {NULL, 0};
	unsigned char digest[HX_SHA256_SIZE];

	if (made != HX_KEY_MISSING || view->event->data.size == 0)
		return made;
	if (strategy->include_count > 0)
		made = write_selected(strategy, view, rest(strategy), &text, err);
	/* Data without a canonical form is hashed as received. */
	if (made == HX_KEY_MISSING &&
	    hx_view_canonical(view, dialect_of(strategy), HX_JSON_ALL, &text, NULL) ==
		    HX_KEY_MISSING) {
		text = view->event->data;
		made = HX_KEY_MADE;
	}
	if (made != HX_KEY_MADE)
		return made;
	hx_sha256(text.data, text.size, digest);
	hx_key_set_digest(ret, prefix, digest);
	return HX_KEY_MADE;
}
