/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - a table of handlers by event type, each with a key strategy and options.
 *
 * It does the job of a decorator in other languages. The rows are copied, sorted by type, and do
 * not change afterwards. Scratch buffers for making keys are kept for the next call.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/thread.h"
#include "processor/hapax_process.h"
#include "processor/processor.h"
#include "processor/request_key.h"

enum {
	/* More rows than any program needs; found by binary search. */
	ROWS_MAX = 65536,
	/* 40 times the largest body that doors accept, which is always enough. */
	SCRATCH_BYTES_MAX = 40 * 16 * 1024 * 1024,
	SPARE_MAX = 64,
	/* Enough for events of about 25 KB; larger buffers are rare and freed after the call. */
	KEPT_BYTES_MAX = 1024 * 1024,
};

struct row {
	char *type; /* NULL: every type without a row of its own; the last row */
	unsigned flags;
	struct hapax_key_strategy *strategy; /* NULL: unprotected */
	struct hapax_key_strategy *shadow;
	struct hapax_run_options options; /* complete */
	hapax_handler_fn *handler;
	void *context;
};

struct hapax_registry {
	struct hapax_processor *processor;
	struct row *rows;
	size_t count; /* rows with a type */
	struct row *rest;
	struct hx_mutex mutex;
	struct hapax_buf *spare[SPARE_MAX]; /* Locks: mutex */
	size_t spare_count;
};

static struct hapax_bytes type_of(const struct row *row)
{
	assert(row->type != NULL);
	return hapax_bytes_from_text(row->type);
}

static enum hapax_status copy_type(struct row *row, const char *type, struct hapax_error *err)
{
	size_t size;

	if (type == NULL)
		return HAPAX_OK;
	size = strlen(type) + 1;
	row->type = hx_alloc(size);
	if (row->type == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	memcpy(row->type, type, size);
	return HAPAX_OK;
}

static const char *what_is_wrong(const struct hapax_registration *from)
{
	bool is_protected = !(from->flags & HAPAX_REGISTRATION_UNPROTECTED);

	if (from->handler == NULL)
		return "it has no handler";
	if (from->type != NULL && from->type[0] == '\0')
		return "its type is empty";
	if (is_protected && from->strategy == NULL)
		return "it has no key strategy";
	return NULL;
}

static enum hapax_status make_row(
	struct hapax_registry *registry, const struct hapax_registration *from, struct row *row,
	struct hapax_error *err)
{
	bool is_protected = !(from->flags & HAPAX_REGISTRATION_UNPROTECTED);
	enum hapax_status status = copy_type(row, from->type, err);

	row->flags = from->flags;
	row->handler = from->handler;
	row->context = from->context;
	if (status == HAPAX_OK && is_protected)
		status = hapax_key_strategy_new(
			from->strategy, from->key_options, &row->strategy, err);
	if (status == HAPAX_OK && from->shadow != NULL)
		status = hapax_key_strategy_new(from->shadow, from->key_options, &row->shadow, err);
	if (status == HAPAX_OK)
		status = hx_run_options_complete(
			registry->processor, from->options, &row->options, err);
	if (status == HAPAX_OK && !is_protected)
		row->options.is_disabled = 1;
	/* A row without a strategy has no key, and must not claim one. */
	assert(status != HAPAX_OK || (row->strategy != NULL) == is_protected);
	assert(status != HAPAX_OK || (row->shadow != NULL) == (from->shadow != NULL));
	return status;
}

static bool read_row(
	const struct hapax_registration *rows, size_t index, struct hapax_registration *ret)
{
	size_t size = rows->size;

	*ret = (struct hapax_registration)HAPAX_REGISTRATION_INIT;
	if (size < sizeof(size) || size > sizeof(*ret))
		return false;
	memcpy(ret, (const unsigned char *)rows + index * size, size);
	return ret->size == size;
}

/* The position of a type: the first row that is not below it. */
static size_t find_place(const struct hapax_registry *registry, struct hapax_bytes type)
{
	size_t low = 0;
	size_t high = registry->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hx_bytes_compare(type_of(&registry->rows[middle]), type) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	assert(low == high);
	assert(low <= registry->count);
	return low;
}

/* Move a row to its position. False: the type already has a row. */
static bool insert(struct hapax_registry *registry, struct row *room, struct row row)
{
	size_t place;

	if (row.type == NULL) {
		if (registry->rest != NULL)
			return false;
		assert(room >= registry->rows + registry->count);
		registry->rest = room;
		*room = row;
		return true;
	}
	place = find_place(registry, type_of(&row));
	if (place < registry->count &&
	    hx_bytes_equal(type_of(&registry->rows[place]), type_of(&row)))
		return false;
	memmove(&registry->rows[place + 1], &registry->rows[place],
		(registry->count - place) * sizeof(row));
	registry->rows[place] = row;
	registry->count++;
	/* Sorted, without duplicates: find_place() halves it. */
	assert(place == 0 ||
	       hx_bytes_compare(type_of(&registry->rows[place - 1]), type_of(&row)) < 0);
	assert(place + 1 == registry->count ||
	       hx_bytes_compare(type_of(&row), type_of(&registry->rows[place + 1])) < 0);
	/* The last place is that of the row without a type. */
	assert(&registry->rows[place] < room);
	assert(&registry->rows[registry->count] <= room);
	return true;
}

static void free_row(struct row *row)
{
	hx_free(row->type);
	hapax_key_strategy_free(row->strategy);
	hapax_key_strategy_free(row->shadow);
}

static enum hapax_status add_row(
	struct hapax_registry *registry, const struct hapax_registration *rows, size_t index,
	struct row *room, struct hapax_error *err)
{
	struct hapax_registration from;
	const char *wrong = "it has an unknown size";
	struct hapax_error inner;
	enum hapax_status status;
	struct row row = {0};

	if (read_row(rows, index, &from))
		wrong = what_is_wrong(&from);
	if (wrong != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "registration %zu: %s", index, wrong);
	status = make_row(registry, &from, &row, &inner);
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, 0, "registration %zu: %s", index, inner.message);
	else if (!insert(registry, room, row))
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"registration %zu: type '%s' is registered twice", index,
			from.type == NULL ? "" : from.type);
	if (status != HAPAX_OK)
		free_row(&row);
	return status;
}

enum hapax_status hapax_registry_new(
	struct hapax_processor *processor, const struct hapax_registration *rows, size_t count,
	struct hapax_registry **ret_registry, struct hapax_error *err)
{
	struct hapax_registry *registry;
	enum hapax_status status = HAPAX_OK;

	if (processor == NULL || rows == NULL || count == 0 || count > ROWS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a processor and 1 to %d registrations are required", ROWS_MAX);
	registry = hx_alloc_zero(1, sizeof(*registry));
	if (registry == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	registry->processor = processor;
	hx_mutex_init(&registry->mutex);
	/* One more: the row without a type comes after the others. */
	registry->rows = hx_alloc_zero(count + 1, sizeof(*registry->rows));
	if (registry->rows == NULL) {
		hapax_registry_free(registry);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	}
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = add_row(registry, rows, i, &registry->rows[count], err);
	if (status != HAPAX_OK) {
		hapax_registry_free(registry);
		return status;
	}
	assert(registry->count + (registry->rest != NULL) == count);
	*ret_registry = registry;
	return HAPAX_OK;
}

void hapax_registry_free(struct hapax_registry *registry)
{
	if (registry == NULL)
		return;
	for (size_t i = 0; registry->rows != NULL && i < registry->count; i++)
		free_row(&registry->rows[i]);
	if (registry->rest != NULL)
		free_row(registry->rest);
	assert(registry->spare_count <= SPARE_MAX);
	for (size_t i = 0; i < registry->spare_count; i++)
		hapax_buf_free(registry->spare[i]);
	hx_mutex_done(&registry->mutex);
	hx_free(registry->rows);
	hx_free(registry);
}

static struct hapax_buf *take_scratch(struct hapax_registry *registry)
{
	struct hapax_buf *scratch = NULL;

	hx_mutex_lock(&registry->mutex);
	assert(registry->spare_count <= SPARE_MAX);
	if (registry->spare_count > 0)
		scratch = registry->spare[--registry->spare_count];
	hx_mutex_unlock(&registry->mutex);
	return scratch != NULL ? scratch : hapax_buf_new(SCRATCH_BYTES_MAX);
}

static void give_scratch(struct hapax_registry *registry, struct hapax_buf *scratch)
{
	assert(scratch->size <= scratch->capacity);
	hx_mutex_lock(&registry->mutex);
	if (registry->spare_count < SPARE_MAX && scratch->capacity <= KEPT_BYTES_MAX) {
		registry->spare[registry->spare_count++] = scratch;
		scratch = NULL;
	}
	hx_mutex_unlock(&registry->mutex);
	hapax_buf_free(scratch);
}

static struct hapax_bytes attribute(const struct hapax_event *event, struct hapax_bytes name)
{
	for (size_t i = 0; i < event->attribute_count; i++) {
		if (hx_bytes_equal(event->attributes[i].name, name))
			return event->attributes[i].value;
	}
	return hx_bytes(NULL, 0);
}

static struct hapax_bytes pack_cause(
	const struct hapax_event *event, struct hapax_bytes type,
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX])
{
	const struct hapax_cause cause = {
		.id = attribute(event, HX_BYTES_LIT("id")),
		.type = type,
		.source = attribute(event, HX_BYTES_LIT("source")),
		.time_ms = event->time_ms == HAPAX_TIME_UNKNOWN ? 0 : event->time_ms,
	};

	return hapax_cause_write(&cause, buffer);
}

static const struct row *find_row(const struct hapax_registry *registry, struct hapax_bytes type)
{
	size_t place = find_place(registry, type);

	if (place < registry->count && hx_bytes_equal(type_of(&registry->rows[place]), type))
		return &registry->rows[place];
	return registry->rest;
}

/* The keys of the event: that of the row and that of its shadow. */
struct keys {
	struct hapax_key key;
	struct hapax_key shadow;
	bool has_shadow;
	struct hapax_request_key claimed[2];
};

static enum hapax_status make_keys(
	struct hapax_registry *registry, const struct row *row, const struct hapax_event *event,
	struct keys *keys, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	struct hapax_buf *scratch;

	keys->key = (struct hapax_key)HAPAX_KEY_INIT;
	keys->shadow = (struct hapax_key)HAPAX_KEY_INIT;
	keys->has_shadow = false;
	if (row->strategy == NULL && row->shadow == NULL)
		return HAPAX_OK;
	scratch = take_scratch(registry);
	if (scratch == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory; nothing ran");
	if (row->strategy != NULL)
		status = hapax_key_make(row->strategy, event, scratch, &keys->key, err);
	/* A failing shadow is ignored; it must never cause the refusal of an event. */
	if (status == HAPAX_OK && row->shadow != NULL)
		keys->has_shadow =
			hapax_key_make(row->shadow, event, scratch, &keys->shadow, NULL) ==
			HAPAX_OK;
	give_scratch(registry, scratch);
	return status;
}

enum hapax_status hapax_registry_process(
	struct hapax_registry *registry, struct hapax_bytes type, const struct hapax_event *event,
	struct hapax_answer *answer, struct hapax_buf *buf, struct hapax_error *err)
{
	unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hx_run_origin origin = {.event = event};
	struct hapax_run_options options;
	enum hapax_status status;
	const struct row *row;
	struct keys keys;

	if (registry == NULL || event == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a registry and an event are required");
	if (type.size == 0)
		type = attribute(event, HX_BYTES_LIT("type"));
	row = find_row(registry, type);
	if (row == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "no handler is registered for type '%.*s'",
			(int)(type.size > 128 ? 128 : type.size), (const char *)type.data);
	status = make_keys(registry, row, event, &keys, err);
	if (status != HAPAX_OK)
		return status;
	assert(!keys.has_shadow || row->shadow != NULL);
	assert(row->strategy != NULL || keys.key.kind == HAPAX_KEY_NONE);
	options = row->options;
	/*
	 * A part is missing and the strategy says pass: run, and report that the run is
	 * unprotected.
	 */
	if (keys.key.kind == HAPAX_KEY_NONE)
		options.is_disabled = 1;
	hx_request_key_set(&request, &keys.key, keys.claimed);
	request.options = &options;
	if (!options.omits_cause)
		request.cause = pack_cause(event, type, cause);
	if (keys.has_shadow)
		origin.shadow = &keys.shadow;
	return hx_processor_process(
		registry->processor, &request, &origin, row->handler, row->context, answer, buf,
		err);
}
