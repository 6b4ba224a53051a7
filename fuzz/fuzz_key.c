/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: strategies (src/key/), from their text and for any event; paths
 * (src/wire/json/json_path.c), dates (src/wire/date.c).
 *
 * Three lines and the data: a strategy, a path to exclude, a value for header, attr
 * and time. A key that is made is UTF-8 without controls and at most 255 bytes; the
 * same event has the same key; what is composite comes apart into as many parts, or
 * was hashed. Messages are UTF-8. JSON in a string has the keys that it has by itself.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/key.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "wire/date.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_MAX = 8192, SCRATCH_MAX = 1 << 22, PARTS_MAX = 65 };

static void must(int condition)
{
	if (!condition)
		abort();
}

/* The next line, as a C string of its own; the rest moves on. */
static char *take_line(struct hapax_bytes *rest)
{
	const char *end = rest->size == 0 ? NULL : memchr(rest->data, '\n', rest->size);
	size_t size = end == NULL ? rest->size : (size_t)(end - (const char *)rest->data);
	char *line = malloc(size + 1);

	must(line != NULL);
	if (size > 0)
		memcpy(line, rest->data, size);
	line[size] = '\0';
	if (rest->size > 0)
		*rest = hx_bytes(
			(const char *)rest->data + size + (end != NULL),
			rest->size - size - (end != NULL));
	return line;
}

static void check_parts(const struct hapax_key *key, const char *strategy)
{
	struct hapax_buf *buf = hapax_buf_new(1024);
	struct hapax_bytes parts[PARTS_MAX];
	size_t expected = 1;
	size_t count = 0;
	enum hapax_status status;

	if (strncmp(strategy, "composite:", 10) != 0 || key->kind != HAPAX_KEY_MADE) {
		hapax_buf_free(buf);
		return;
	}
	must(buf != NULL);
	status = hapax_key_split(
		hx_bytes(key->key, key->key_size), buf, parts, PARTS_MAX, &count, NULL);
	if (status == HAPAX_ERR_UNSUPPORTED) {
		/* Hashed, and not merely parts that look so: 64 digits follow. */
		must(strncmp(key->key, "sha256:", 7) == 0 && key->key_size == 71);
		must(strspn(key->key + 7, "0123456789abcdef") == 64);
	} else {
		must(status == HAPAX_OK);
		for (const char *at = strategy; *at != '\0'; at++) {
			if (*at == '\\' && at[1] != '\0')
				at++;
			else if (*at == ',')
				expected++;
		}
		must(count == expected);
	}
	hapax_buf_free(buf);
}

static void check_key(
	const struct hapax_key_strategy *strategy, const struct hapax_event *event,
	struct hapax_buf *scratch)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_key again = HAPAX_KEY_INIT;
	enum hapax_status status = hapax_key_make(strategy, event, scratch, &key, &err);

	must(hx_utf8_is_valid(hapax_bytes_from_text(err.message)));
	must(hx_utf8_is_valid(hapax_bytes_from_text(key.missing)));
	if (status != HAPAX_OK) {
		must(err.status == status && err.message[0] != '\0');
		must(status == HAPAX_ERR_INVALID || status == HAPAX_ERR_LIMIT);
		return;
	}
	must(key.key[key.key_size] == '\0');
	if (key.kind == HAPAX_KEY_NONE)
		must(key.key_size == 0 && key.missing[0] != '\0');
	else
		must(hapax_key_check_text(
			     hx_bytes(key.key, key.key_size), HAPAX_KEY_SIZE_MAX, NULL) ==
		     HAPAX_OK);
	must(hapax_key_make(strategy, event, scratch, &again, NULL) == HAPAX_OK);
	must(key.kind == again.kind && key.key_size == again.key_size);
	must(strcmp(key.key, again.key) == 0 ||
	     strcmp(hapax_key_strategy_text(strategy), "uuid7") == 0);
	must(memcmp(key.fingerprint, again.fingerprint, sizeof(key.fingerprint)) == 0);
	must(strcmp(key.tenant, again.tenant) == 0);
	check_parts(&key, hapax_key_strategy_text(strategy));
}

static void try_all(
	const char *text, const char *exclude, const struct hapax_event *event,
	struct hapax_buf *scratch)
{
	for (unsigned round = 0; round < 6; round++) {
		struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
		struct hapax_key_strategy *strategy = NULL;
		struct hapax_error err = {HAPAX_OK, 0, ""};

		options.flags = HAPAX_KEY_PRODUCER | (round % 2 == 0 ? HAPAX_KEY_RELATIVE : 0);
		options.on_missing = (enum hapax_on_missing)(round % 3);
		options.canonical = (enum hapax_canonical)(round / 3);
		if (exclude[0] != '\0' && round != 5) {
			options.exclude = &exclude;
			options.exclude_count = 1;
		}
		if (round == 4) {
			options.include = &exclude;
			options.include_count = exclude[0] != '\0';
			options.tenant_from = exclude;
		}
		if (hapax_key_strategy_new(text, &options, &strategy, &err) != HAPAX_OK) {
			must(err.status == HAPAX_ERR_INVALID && err.message[0] != '\0');
			continue;
		}
		must(strcmp(hapax_key_strategy_text(strategy), text) == 0);
		must(hx_utf8_is_valid(hapax_bytes_from_text(text)));
		check_key(strategy, event, scratch);
		hapax_key_strategy_free(strategy);
	}
}

/* The data as the string s of a document. */
static void wrap(struct hapax_bytes data, struct hapax_buf *out)
{
	const unsigned char *at = data.data;

	must(hx_buf_append(out, "{\"s\":\"", 6) == HAPAX_OK);
	for (size_t i = 0; i < data.size; i++) {
		char escape[8];
		bool is_plain = at[i] >= 0x20 && at[i] != '"' && at[i] != '\\';

		(void)snprintf(escape, sizeof(escape), "\\u%04x", at[i]);
		must(hx_buf_append(
			     out, is_plain ? (const void *)&at[i] : escape, is_plain ? 1 : 6) ==
		     HAPAX_OK);
	}
	must(hx_buf_append(out, "\"}", 2) == HAPAX_OK);
}

/* field:PATH of the data and field:s|json.PATH of the data in a string. */
static void check_nested(
	const char *text, const struct hapax_event *event, struct hapax_buf *scratch)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_key_strategy *plain = NULL;
	struct hapax_key_strategy *nested = NULL;
	struct hapax_buf *document = hapax_buf_new(8 * INPUT_MAX);
	struct hapax_event wrapped = *event;
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_key same = HAPAX_KEY_INIT;
	const char *colon = strstr(text, "field:") == text ? strchr(text, ':') : NULL;
	const char *path = colon == NULL ? "" : colon + 1;
	char longer[INPUT_MAX + 32];

	must(document != NULL);
	options.flags = HAPAX_KEY_RELATIVE;
	(void)snprintf(
		longer, sizeof(longer), "field:s|json%s%s",
		path[0] == '/' || path[0] == '[' ? "" : ".", path);
	if (path[0] != '\0' && hapax_key_strategy_new(text, &options, &plain, NULL) == HAPAX_OK &&
	    hapax_key_strategy_new(longer, &options, &nested, NULL) == HAPAX_OK) {
		enum hapax_status status = hapax_key_make(plain, event, scratch, &key, NULL);

		wrap(event->data, document);
		wrapped.data = hapax_buf_bytes(document);
		must(hapax_key_make(nested, &wrapped, scratch, &same, NULL) == status);
		must(strcmp(key.key, same.key) == 0);
	}
	hapax_key_strategy_free(plain);
	hapax_key_strategy_free(nested);
	hapax_buf_free(document);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_bytes rest = hx_bytes(data, size);
	struct hapax_buf *scratch = hapax_buf_new(SCRATCH_MAX);
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_field field;
	char *strategy;
	char *exclude;
	char *value;

	if (size > INPUT_MAX) {
		hapax_buf_free(scratch);
		return 0;
	}
	must(scratch != NULL);
	strategy = take_line(&rest);
	exclude = take_line(&rest);
	value = take_line(&rest);
	field = (struct hapax_field){HX_BYTES_LIT("id"), hapax_bytes_from_text(value)};
	event.data = rest;
	event.headers = &field;
	event.header_count = 1;
	event.attributes = &field;
	event.attribute_count = 1;
	(void)hx_date_parse(hapax_bytes_from_text(value), &event.time_ms);
	try_all(strategy, exclude, &event, scratch);
	check_nested(strategy, &event, scratch);
	event.data_kind = HAPAX_DATA_BYTES;
	try_all(strategy, exclude, &event, scratch);
	(void)hapax_key_check_text(hapax_bytes_from_text(value), 1024, NULL);
	free(strategy);
	free(exclude);
	free(value);
	hapax_buf_free(scratch);
	return 0;
}
