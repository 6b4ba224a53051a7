/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy.c - parse the text of a strategy.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "key/key.h"

static enum hapax_status no_memory(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a key strategy");
}

enum hapax_status hx_key_refuse_argument(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	if (argument.data == NULL)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "strategy '%s' takes no argument", strategy->type->name);
}

enum hapax_status hx_key_new_paths(
	const char *const *texts, size_t count, unsigned flags, struct hx_key_path **ret,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	if (count > HX_KEY_PATHS_MAX) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "too many paths: %zu, limit %d", count,
			HX_KEY_PATHS_MAX);
	}
	*ret = hx_alloc_zero(count, sizeof(**ret));
	if (*ret == NULL)
		return no_memory(err);
	for (size_t i = 0; status == HAPAX_OK && i < count; i++) {
		status = hx_key_path_parse(
			&(*ret)[i], hapax_bytes_from_text(texts[i]),
			(flags & HX_KEY_PATHS_RELATIVE) != 0, (flags & HX_KEY_PATHS_WILDCARDS) != 0,
			err);
	}
	return status;
}

/* Copy a path up to its comma; "\," is a comma within the path. */
static size_t next_path(const char *text, size_t size, char *to, size_t *ret_read)
{
	size_t written = 0;
	size_t at = 0;

	while (at < size && text[at] != ',') {
		if (text[at] == '\\' && at + 1 < size) {
			if (text[at + 1] != ',')
				to[written++] = text[at];
			at++;
		}
		to[written++] = text[at++];
	}
	*ret_read = at;
	return written;
}

enum hapax_status hx_key_read_paths(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	const char *text = argument.data;
	char path[HX_KEY_STRATEGY_SIZE_MAX];
	size_t at = 0;

	if (argument.size == 0) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "strategy '%s' needs a path: %s",
			strategy->type->name, strategy->type->syntax);
	}
	assert(argument.size < sizeof(path));
	strategy->paths = hx_alloc_zero(HX_KEY_PATHS_MAX, sizeof(*strategy->paths));
	if (strategy->paths == NULL)
		return no_memory(err);
	while (at <= argument.size) {
		size_t done;
		size_t size = next_path(text + at, argument.size - at, path, &done);
		enum hapax_status status;

		if (strategy->path_count == HX_KEY_PATHS_MAX) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "too many paths: limit %d",
				HX_KEY_PATHS_MAX);
		}
		status = hx_key_path_parse(
			&strategy->paths[strategy->path_count], hx_bytes(path, size),
			(strategy->flags & HAPAX_KEY_RELATIVE) != 0, false, err);
		if (status != HAPAX_OK)
			return status;
		strategy->path_count++;
		at += done + 1;
	}
	return HAPAX_OK;
}

enum hapax_status hx_key_read_uuids(
	struct hapax_key_strategy *strategy, struct hapax_bytes argument, struct hapax_error *err)
{
	enum hapax_status status = hx_key_refuse_argument(strategy, argument, err);

	if (status != HAPAX_OK)
		return status;
	strategy->uuids = hx_alloc_zero(1, sizeof(*strategy->uuids));
	if (strategy->uuids == NULL)
		return no_memory(err);
	hx_uuid7_init(strategy->uuids);
	return HAPAX_OK;
}

static enum hapax_status unknown_strategy(
	const char *text, size_t name_size, struct hapax_error *err)
{
	char names[160];
	size_t used = 0;

	for (size_t i = 0; hx_key_types[i] != NULL; i++) {
		int size = snprintf(
			names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : ", ",
			hx_key_types[i]->name);

		used += (size_t)size;
		assert(used < sizeof(names));
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "unknown key strategy '%.*s'; use %s",
		(int)(name_size < 40 ? name_size : 40), text, names);
}

static enum hapax_status read_text(
	struct hapax_key_strategy *strategy, const char *text, struct hapax_error *err)
{
	size_t size = strlen(text);
	const char *colon = memchr(text, ':', size);
	size_t name_size = colon == NULL ? size : (size_t)(colon - text);
	struct hapax_bytes argument = {NULL, 0};

	if (colon != NULL)
		argument = hx_bytes(colon + 1, size - name_size - 1);
	for (size_t i = 0; hx_key_types[i] != NULL; i++) {
		const char *name = hx_key_types[i]->name;

		if (strlen(name) == name_size && memcmp(name, text, name_size) == 0)
			strategy->type = hx_key_types[i];
	}
	if (strategy->type == NULL)
		return unknown_strategy(text, name_size, err);
	if ((strategy->type->flags & HX_KEY_TYPE_PRODUCER) &&
	    !(strategy->flags & HAPAX_KEY_PRODUCER)) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"strategy '%s' cannot detect duplicates: it makes a new key for every "
			"delivery; use it in producers only",
			strategy->type->name);
	}
	return strategy->type->parse(strategy, argument, err);
}

static bool hashes_content(const struct hapax_key_strategy *strategy)
{
	return (strategy->type->flags & HX_KEY_TYPE_CONTENT) != 0 ||
		strategy->on_missing == HAPAX_ON_MISSING_CONTENT;
}

/* Content strategies use data only. */
static enum hapax_status check_selected(
	const struct hx_key_path *paths, size_t count, struct hapax_error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (paths[i].source != HX_KEY_DATA || paths[i].json.step_count == 0) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"invalid path '%s': include and exclude select data only",
				paths[i].text);
		}
	}
	return HAPAX_OK;
}

/* A path without a name would exclude everything, or something unpredictable. */
static enum hapax_status check_excluded(
	const struct hx_key_path *paths, size_t count, struct hapax_error *err)
{
	for (size_t i = 0; i < count; i++) {
		size_t named = 0;

		for (size_t step = 0; step < paths[i].json.step_count; step++)
			named += paths[i].json.steps[step].kind == HX_JSON_STEP_NAME;
		if (named == 0) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"invalid path '%s': it would exclude everything; name a member",
				paths[i].text);
		}
	}
	return HAPAX_OK;
}

static enum hapax_status read_selection(
	struct hapax_key_strategy *strategy, const struct hapax_key_options *options,
	struct hapax_error *err)
{
	unsigned flags = hx_key_paths_flags(strategy) | HX_KEY_PATHS_WILDCARDS;
	enum hapax_status status = HAPAX_OK;

	strategy->include_count = options->include_count;
	strategy->exclude_count = options->exclude_count;
	/* It is for the other one. */
	if (strategy->also != NULL && strategy->also->include_count > 0 &&
	    !hashes_content(strategy))
		strategy->include_count = 0;
	if (strategy->include_count > 0 && !hashes_content(strategy)) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"include has no effect on strategy '%s'; use content or hybrid",
			strategy->type->name);
	}
	if (strategy->include_count > 0) {
		status = hx_key_new_paths(
			options->include, strategy->include_count, flags, &strategy->include, err);
	}
	if (status == HAPAX_OK && strategy->exclude_count > 0) {
		status = hx_key_new_paths(
			options->exclude, options->exclude_count, flags, &strategy->exclude, err);
	}
	if (status == HAPAX_OK)
		status = check_selected(strategy->include, strategy->include_count, err);
	if (status == HAPAX_OK)
		status = check_selected(strategy->exclude, strategy->exclude_count, err);
	if (status == HAPAX_OK)
		status = check_excluded(strategy->exclude, strategy->exclude_count, err);
	return status;
}

/* The parts of an event that the paths use; templates have already counted theirs. */
static unsigned needs_of(const struct hapax_key_strategy *strategy)
{
	unsigned needs = strategy->needs;

	if (hashes_content(strategy) || !(strategy->flags & HAPAX_KEY_NO_FINGERPRINT))
		needs |= HAPAX_KEY_NEEDS_DATA;
	/* A document contains its time. */
	if ((needs & HAPAX_KEY_NEEDS_TIME) && (strategy->flags & HAPAX_KEY_RELATIVE))
		needs |= HAPAX_KEY_NEEDS_DATA;
	for (size_t i = 0; i < strategy->path_count; i++) {
		if (strategy->paths[i].source == HX_KEY_DATA)
			needs |= HAPAX_KEY_NEEDS_DATA;
	}
	if ((strategy->tenant.from != NULL && strategy->tenant.from->source == HX_KEY_DATA) ||
	    (strategy->group.from != NULL && strategy->group.from->source == HX_KEY_DATA))
		needs |= HAPAX_KEY_NEEDS_DATA;
	return needs;
}

static enum hapax_status check_options(
	const char *text, const struct hapax_key_options *options, struct hapax_error *err)
{
	if ((unsigned)options->on_missing > HAPAX_ON_MISSING_CONTENT ||
	    (unsigned)options->canonical > HAPAX_CANONICAL_PYTHON)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an option has an unknown value");
	if ((options->include == NULL && options->include_count > 0) ||
	    (options->exclude == NULL && options->exclude_count > 0))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a list of paths is NULL");
	if (strlen(text) >= HX_KEY_STRATEGY_SIZE_MAX) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "key strategy is too long: %zu bytes, limit %d",
			strlen(text), HX_KEY_STRATEGY_SIZE_MAX - 1);
	}
	if (!hx_utf8_is_valid(hapax_bytes_from_text(text)))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the key strategy is not UTF-8");
	return HAPAX_OK;
}

/* Make the strategy that is used as well, with the options that it takes. */
static enum hapax_status make_also(
	struct hapax_key_strategy *strategy, const struct hapax_key_options *options,
	struct hapax_error *err)
{
	struct hapax_key_options own = *options;
	struct hapax_error why;
	enum hapax_status status;

	if (options->also == NULL)
		return HAPAX_OK;
	own.also = NULL;
	own.include_count = 0;
	strategy->also_until_ms = options->also_until_ms;
	status = hapax_key_strategy_new(options->also, &own, &strategy->also, &why);
	if (status == HAPAX_OK && options->include_count > 0 && hashes_content(strategy->also)) {
		hapax_key_strategy_free(strategy->also);
		strategy->also = NULL;
		own.include_count = options->include_count;
		status = hapax_key_strategy_new(options->also, &own, &strategy->also, &why);
	}
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "key_also: %s", why.message);
	return HAPAX_OK;
}

static enum hapax_status fill(
	struct hapax_key_strategy *strategy, const char *text,
	const struct hapax_key_options *options, struct hapax_error *err)
{
	size_t size = strlen(text) + 1;
	enum hapax_status status;

	strategy->flags = options->flags;
	strategy->on_missing = options->on_missing;
	strategy->canonical = options->canonical;
	strategy->clock = options->clock != NULL ? options->clock : hapax_clock_system();
	strategy->text = hx_alloc(size);
	if (strategy->text == NULL)
		return no_memory(err);
	memcpy(strategy->text, text, size);
	status = make_also(strategy, options, err);
	if (status == HAPAX_OK)
		status = read_text(strategy, text, err);
	if (status == HAPAX_OK)
		status = read_selection(strategy, options, err);
	if (status == HAPAX_OK)
		status = hx_key_scope_parse(strategy, options, err);
	if (status == HAPAX_OK) {
		strategy->needs = needs_of(strategy);
		if (strategy->also != NULL)
			strategy->needs |= strategy->also->needs;
	}
	return status;
}

enum hapax_status hapax_key_strategy_new(
	const char *text, const struct hapax_key_options *options,
	struct hapax_key_strategy **ret_strategy, struct hapax_error *err)
{
	struct hapax_key_options complete = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_key_strategy *strategy;
	struct hapax_error why = {HAPAX_OK, 0, ""};
	enum hapax_status status;

	if (text == NULL || ret_strategy == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an argument is NULL");
	if (options != NULL) {
		/* An older caller has fewer members; a newer one is refused. */
		if (options->size < sizeof(options->size) || options->size > sizeof(complete))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the options are not initialized; use "
				"HAPAX_KEY_OPTIONS_INIT");
		memcpy(&complete, options, options->size);
	}
	status = check_options(text, &complete, err);
	if (status != HAPAX_OK)
		return status;
	strategy = hx_alloc_zero(1, sizeof(*strategy));
	if (strategy == NULL)
		return no_memory(err);
	status = fill(strategy, text, &complete, &why);
	if (status != HAPAX_OK) {
		hapax_key_strategy_free(strategy);
		return hx_error_set(err, status, 0, "%s", why.message);
	}
	*ret_strategy = strategy;
	return HAPAX_OK;
}

void hapax_key_strategy_free(struct hapax_key_strategy *strategy)
{
	if (strategy == NULL)
		return;
	hapax_key_strategy_free(strategy->also);
	hx_key_pieces_free(strategy->pieces, strategy->piece_count);
	hx_free(strategy->paths);
	hx_free(strategy->include);
	hx_free(strategy->exclude);
	hx_free(strategy->tenant.from);
	hx_free(strategy->group.from);
	hx_free(strategy->uuids);
	hx_free(strategy->text);
	hx_free(strategy);
}

const char *hapax_key_strategy_text(const struct hapax_key_strategy *strategy)
{
	return strategy->text;
}

int hapax_key_strategy_takes_include(const struct hapax_key_strategy *strategy)
{
	return hashes_content(strategy);
}

unsigned hapax_key_strategy_needs(const struct hapax_key_strategy *strategy)
{
	return strategy->needs;
}

static const struct hx_key_type *type_at(size_t index)
{
	for (size_t i = 0; hx_key_types[i] != NULL; i++) {
		if (i == index)
			return hx_key_types[i];
	}
	return NULL;
}

const char *hapax_key_strategy_syntax(size_t index)
{
	const struct hx_key_type *type = type_at(index);

	return type == NULL ? NULL : type->syntax;
}

const char *hapax_key_strategy_summary(size_t index)
{
	const struct hx_key_type *type = type_at(index);

	return type == NULL ? NULL : type->summary;
}

const char *hapax_on_missing_name(enum hapax_on_missing on_missing)
{
	switch (on_missing) {
	case HAPAX_ON_MISSING_REJECT: return "reject";
	case HAPAX_ON_MISSING_PASS: return "pass";
	case HAPAX_ON_MISSING_CONTENT: return "content";
	}
	return "unknown";
}

const char *hapax_canonical_name(enum hapax_canonical canonical)
{
	switch (canonical) {
	case HAPAX_CANONICAL_LOSSLESS: return "lossless";
	case HAPAX_CANONICAL_PYTHON: return "python";
	}
	return "unknown";
}
