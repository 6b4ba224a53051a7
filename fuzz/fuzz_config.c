/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: YAML and the schema (src/config), from a text to a config and back.
 *
 * What is refused has a place and a reason, and leaves no memory behind. What is taken
 * dumps as YAML that is taken, too, and dumps as the same again; and as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "config/config.h"
#include "config/dump.h"
#include "wire/json/json.h"

enum { TEXT_MAX = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static struct hx_config *load(struct hapax_bytes text, struct hapax_buf *faults)
{
	struct hx_config_source source = {.path = "f", .text = &text};
	struct hx_config *config = NULL;
	struct hapax_error err = {.message = ""};
	enum hapax_status status = hx_config_load(&source, &config, faults, &err);

	must((status == HAPAX_OK) == (config != NULL));
	if (status != HAPAX_OK) {
		must(err.status == status && strstr(err.message, ": ") != NULL);
		must(faults == NULL ||
		     (faults->size > 0 && faults->data[faults->size - 1] == '\n'));
	}
	return config;
}

static void check_json(const struct hx_config *config)
{
	struct hx_json_token token;
	struct hx_json json;
	struct hapax_buf out;

	hx_buf_init(&out, TEXT_MAX);
	must(hx_config_dump_json(config, &out) == HAPAX_OK);
	must(hx_json_init(&json, hx_bytes(out.data, out.size), NULL, 0, NULL) == HAPAX_OK);
	do {
		must(hx_json_next(&json, &token, NULL) == HAPAX_OK);
	} while (token.type != HX_JSON_END);
	hx_buf_done(&out);
}

/* A password in a URL is not dumped, so that what is read back differs in it, once. */
static void check_dump(const struct hx_config *config)
{
	struct hapax_buf first, second;
	struct hx_config *again;

	hx_buf_init(&first, TEXT_MAX);
	hx_buf_init(&second, TEXT_MAX);
	must(hx_config_dump(config, &first) == HAPAX_OK);
	again = load(hx_bytes(first.data, first.size), NULL);
	must(again != NULL);
	must(hx_config_dump(again, &second) == HAPAX_OK);
	must(hx_bytes_equal(hx_bytes(first.data, first.size), hx_bytes(second.data, second.size)));
	hx_config_release(again);
	hx_buf_done(&first);
	hx_buf_done(&second);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	int64_t live = hx_alloc_live();
	struct hapax_buf faults;
	struct hx_config *config;

	hx_buf_init(&faults, 64 * 1024);
	config = load(hx_bytes(data, size), &faults);
	if (config != NULL) {
		check_json(config);
		check_dump(config);
		(void)hx_config_route_find(
			config, hx_bytes(data, size), hx_bytes(data, size), HX_BYTES_LIT(""));
		(void)hx_config_scope_find(config, hx_bytes(data, size), HX_BYTES_LIT("g"));
	}
	hx_config_release(config);
	hx_buf_done(&faults);
	must(hx_alloc_live() == live);
	return 0;
}
