/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: URLs and their options (src/wire/url.c).
 *
 * The parts lie in the text one behind the other, and put together they are the text again.
 * Options stay within their members and their ranges. A message about a URL in which every letter
 * of a secret is an S has no S.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/url.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct place {
	unsigned char before[8];
	char name[8];
	int db;
	bool is_late;
	int64_t wait_ms;
	uint16_t port;
	unsigned char behind[8];
};

static const struct hx_url_option rows[] = {
	{"name", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct place, name)},
	{"db", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct place, db), .max = 15},
	{"start", HX_URL_WORD, "early|late", HX_URL_MEMBER(struct place, is_late)},
	{"wait", HX_URL_TIME, "0s..1h", HX_URL_MEMBER(struct place, wait_ms), .max = 3600000},
	{"port", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct place, port), .min = 1, .max = 65535},
	{.kind = HX_URL_END},
};

static const struct hx_url_options options = {.of = "a test", .rows = rows};

static void must(int condition)
{
	if (!condition)
		abort();
}

/* The part begins at *at, behind mark, unless it is missing; *at moves to its end. */
static void step(const char **at, struct hapax_bytes part, const char *mark)
{
	if (part.data == NULL)
		return;
	must(strncmp(*at, mark, strlen(mark)) == 0);
	*at += strlen(mark);
	must(part.data == *at);
	*at += part.size;
}

static void check_parts(const char *text, const struct hx_url *url)
{
	const char *at = text;
	struct hapax_bytes list = url->hosts, host;
	size_t hosts = 0;

	step(&at, url->scheme, "");
	must(url->scheme.size > 0 && *at++ == ':');
	if (url->has_authority)
		at += 2;
	must(url->rest.data == at);
	step(&at, url->user, "");
	step(&at, url->password, ":");
	step(&at, url->hosts, url->user.data == NULL ? "" : "@");
	step(&at, url->path, "");
	must(at == (const char *)url->rest.data + url->rest.size);
	step(&at, url->query, "?");
	must(*at == '\0');
	while (hx_url_next(&list, ',', &host))
		hosts += host.size + 1;
	must(hosts == (url->has_authority ? url->hosts.size + 1 : 0));
}

static void check_options(struct hapax_bytes query)
{
	static const unsigned char zeros[8];
	struct place place;
	struct hapax_error err = {0};
	enum hapax_status status;

	memset(&place, 0, sizeof(place));
	status = hx_url_options_read(&options, query, true, &place, &err);
	must(memcmp(place.before, zeros, 8) == 0 && memcmp(place.behind, zeros, 8) == 0);
	must(memchr(place.name, '\0', sizeof(place.name)) != NULL || status != HAPAX_OK);
	must(place.db >= 0 && place.db <= 15 && place.wait_ms >= 0 && place.wait_ms <= 3600000);
	must((status == HAPAX_OK) == (err.message[0] == '\0'));
}

/* Whatever a secret is made of: with a '@' behind it, it is not in a message. */
static void check_secret(const char *text, size_t size)
{
	static const char secret_at[] = "@h";
	char *copy = malloc(size + 16);
	struct hx_url url;
	struct hapax_error err = {0};
	struct place place;

	must(copy != NULL);
	memcpy(copy, "a://u:", 6);
	for (size_t i = 0; i < size; i++) {
		copy[6 + i] = text[i];
		if (text[i] == '\0' || strchr("&=?", text[i]) == NULL)
			copy[6 + i] = 'S';
	}
	memcpy(copy + 6 + size, secret_at, sizeof(secret_at));
	must(hx_url_split(copy, &url));
	memset(&place, 0, sizeof(place));
	if (hx_url_options_read(&options, url.query, true, &place, &err) != HAPAX_OK)
		must(strchr(err.message, 'S') == NULL);
	free(copy);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = calloc(size + 1, 1);
	struct hx_url url;

	must(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	if (hx_url_split(text, &url)) {
		check_parts(text, &url);
		check_options(url.query);
	}
	check_secret(text, strlen(text));
	free(text);
	return 0;
}
