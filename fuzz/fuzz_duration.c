/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: durations (src/base/duration.c) and sizes (src/base/size.c) as text.
 *
 * What parses must come back from its formatted text; so must every number from
 * its own. What does not parse is refused with a message, and nothing is written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/size.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void duration_comes_back(int64_t ms)
{
	char text[HX_DURATION_TEXT_SIZE];
	int64_t again = -1;

	hx_duration_format(ms, text);
	must(memchr(text, '\0', sizeof(text)) != NULL);
	must(hx_duration_parse(hapax_bytes_from_text(text), &again, NULL) == HAPAX_OK);
	must(again == ms);
}

static void size_comes_back(uint64_t bytes)
{
	char text[HX_SIZE_TEXT_SIZE];
	uint64_t again = ~bytes;

	hx_size_format(bytes, text);
	must(memchr(text, '\0', sizeof(text)) != NULL);
	must(hx_size_parse(hapax_bytes_from_text(text), &again, NULL) == HAPAX_OK);
	must(again == bytes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_bytes text = {data, size};
	int64_t ms = -1;
	uint64_t bytes = 0;

	if (hx_duration_parse(text, &ms, &err) == HAPAX_OK) {
		must(ms >= 0);
		duration_comes_back(ms);
	} else {
		must(err.status == HAPAX_ERR_INVALID && err.message[0] != '\0' && ms == -1);
	}
	err.status = HAPAX_OK;
	if (hx_size_parse(text, &bytes, &err) == HAPAX_OK)
		size_comes_back(bytes);
	else
		must(err.status == HAPAX_ERR_INVALID && err.message[0] != '\0');
	if (size >= sizeof(bytes)) {
		memcpy(&bytes, data, sizeof(bytes));
		size_comes_back(bytes);
		duration_comes_back((int64_t)(bytes >> 1));
	}
	return 0;
}
