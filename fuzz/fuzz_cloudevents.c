/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: events by HTTP (src/wire/cloudevents*.c), with base64.c and media_type.c.
 *
 * The first byte chooses the mode. Binary: the lines of the input are fields, up to an
 * empty one, and the body follows. What is taken keeps the rules: required attributes,
 * names, no attribute twice, values in UTF-8. A binary event is encoded again and must be
 * read as the same; a structured one must be the only event of a batch of itself.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/cloudevents/cloudevents.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_MAX = 4096, FIELDS_MAX = 80, SCRATCH_MAX = 64 * 1024 };

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check_name(struct hapax_bytes name)
{
	const unsigned char *at = name.data;

	must(name.size > 0 && name.size <= HX_CLOUDEVENT_NAME_MAX);
	for (size_t i = 0; i < name.size; i++)
		must((at[i] >= 'a' && at[i] <= 'z') || (at[i] >= '0' && at[i] <= '9'));
}

static void check_event(const struct hx_cloudevent *event)
{
	must(event->id.size > 0 && event->source.size > 0 && event->type.size > 0);
	must(event->attribute_count >= 4);
	must(event->attribute_count <= HX_CLOUDEVENT_ATTRIBUTES_MAX);
	for (size_t i = 0; i < event->attribute_count; i++) {
		check_name(event->attributes[i].name);
		must(event->attributes[i].value.data != NULL);
		must(hx_utf8_is_valid(event->attributes[i].value));
		for (size_t k = 0; k < i; k++)
			must(!hx_bytes_equal(event->attributes[i].name, event->attributes[k].name));
	}
}

static void must_be_same(const struct hx_cloudevent *a, const struct hx_cloudevent *b)
{
	must(a->attribute_count == b->attribute_count);
	for (size_t i = 0; i < a->attribute_count; i++) {
		must(hx_bytes_equal(a->attributes[i].name, b->attributes[i].name));
		must(hx_bytes_equal(a->attributes[i].value, b->attributes[i].value));
	}
	must(hx_bytes_equal(a->data, b->data));
	must(a->data_kind == b->data_kind && a->time_ms == b->time_ms);
}

/* "name: value" lines; returns the offset of the body. */
static size_t split_fields(
	const unsigned char *data, size_t size, struct hapax_field *fields, size_t *ret_count)
{
	size_t at = 0;

	*ret_count = 0;
	while (at < size && *ret_count < FIELDS_MAX) {
		const unsigned char *line = data + at;
		const unsigned char *end = memchr(line, '\n', size - at);
		size_t length = end == NULL ? size - at : (size_t)(end - line);
		const unsigned char *colon = length == 0 ? NULL : memchr(line, ':', length);

		at += length + (end != NULL);
		if (colon == NULL)
			break;
		fields[*ret_count].name = hx_bytes(line, (size_t)(colon - line));
		fields[(*ret_count)++].value =
			hx_bytes(colon + 1, length - 1 - (size_t)(colon - line));
	}
	return at;
}

/* The same event from values that were encoded by us. */
static void check_encoded(
	const struct hx_cloudevent *event, struct hapax_bytes content_type, struct hapax_bytes body)
{
	static struct hapax_field fields[HX_CLOUDEVENT_ATTRIBUTES_MAX];
	static char names[HX_CLOUDEVENT_ATTRIBUTES_MAX][HX_CLOUDEVENT_NAME_MAX + 3];
	static struct hapax_buf values[HX_CLOUDEVENT_ATTRIBUTES_MAX];
	struct hx_cloudevent again;
	struct hapax_buf scratch;
	size_t count = event->attribute_count - (event->datacontenttype.data != NULL);

	for (size_t i = 0; i < count; i++) {
		struct hapax_bytes name = event->attributes[i].name;

		memcpy(names[i], "cE-", 3);
		memcpy(names[i] + 3, name.data, name.size);
		hx_buf_init(&values[i], SCRATCH_MAX);
		must(hx_cloudevent_encode(&values[i], event->attributes[i].value) == HAPAX_OK);
		fields[i].name = hx_bytes(names[i], name.size + 3);
		fields[i].value = hx_bytes(values[i].data, values[i].size);
	}
	hx_buf_init(&scratch, SCRATCH_MAX);
	must(hx_cloudevent_read_binary(&again, fields, count, content_type, body, &scratch, NULL) ==
	     HAPAX_OK);
	must_be_same(event, &again);
	hx_buf_done(&scratch);
	for (size_t i = 0; i < count; i++)
		hx_buf_done(&values[i]);
}

static void run_binary(const unsigned char *data, size_t size, struct hapax_buf *scratch)
{
	static struct hapax_field fields[FIELDS_MAX];
	struct hapax_bytes content_type = {NULL, 0};
	struct hx_cloudevent event;
	struct hapax_error err;
	struct hapax_bytes body;
	size_t count;
	size_t at = split_fields(data, size, fields, &count);

	body = hx_bytes(data + at, size - at);
	for (size_t i = 0; i < count; i++) {
		if (hx_bytes_equal(fields[i].name, HX_BYTES_LIT("T")))
			content_type = fields[i].value;
	}
	if (hx_cloudevent_read_binary(&event, fields, count, content_type, body, scratch, &err) !=
	    HAPAX_OK) {
		must(strncmp(err.message, "header '", 8) == 0);
		return;
	}
	check_event(&event);
	must(hx_bytes_equal(event.data, body));
	check_encoded(&event, content_type, body);
}

/* The only event of a batch of itself. */
static void check_batch(const struct hx_cloudevent *event)
{
	static unsigned char text[INPUT_MAX + 2];
	struct hx_cloudevents_batch batch;
	struct hx_cloudevent again;
	struct hapax_buf scratch;

	hx_buf_init(&scratch, SCRATCH_MAX);
	text[0] = '[';
	memcpy(text + 1, event->text.data, event->text.size);
	text[event->text.size + 1] = ']';
	must(hx_cloudevents_batch_init(
		     &batch, hx_bytes(text, event->text.size + 2), 1, &scratch, NULL) == HAPAX_OK);
	must(batch.count == 1 && hx_cloudevents_batch_next(&batch, &again));
	must_be_same(event, &again);
	must(!hx_cloudevents_batch_next(&batch, &again));
	hx_buf_done(&scratch);
}

static void run_structured(struct hapax_bytes text, struct hapax_buf *scratch)
{
	struct hx_cloudevent event;
	struct hapax_error err;

	if (hx_cloudevent_read_structured(&event, text, scratch, &err) != HAPAX_OK) {
		must(strncmp(err.message, "line ", 5) == 0);
		return;
	}
	check_event(&event);
	check_batch(&event);
}

static void run_batched(struct hapax_bytes text, struct hapax_buf *scratch)
{
	struct hx_cloudevents_batch batch;
	struct hx_cloudevent event;
	size_t count = 0;

	if (hx_cloudevents_batch_init(&batch, text, 100, scratch, NULL) != HAPAX_OK)
		return;
	while (hx_cloudevents_batch_next(&batch, &event)) {
		check_event(&event);
		count++;
	}
	must(count == batch.count);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_buf scratch;
	enum hx_cloudevents_mode mode;

	if (size == 0 || size > INPUT_MAX)
		return 0;
	hx_buf_init(&scratch, SCRATCH_MAX);
	switch (data[0]) {
	case 'b': run_binary(data + 1, size - 1, &scratch); break;
	case 's': run_structured(hx_bytes(data + 1, size - 1), &scratch); break;
	case 'l': run_batched(hx_bytes(data + 1, size - 1), &scratch); break;
	default: (void)hx_cloudevents_detect(hx_bytes(data, size), &mode, NULL); break;
	}
	hx_buf_done(&scratch);
	return 0;
}
