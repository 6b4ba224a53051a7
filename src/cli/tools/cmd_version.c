/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_version.c - hapax version: print the version, and what was built into it.
 */
#include <hapax/hapax.h>

#include "base/macros.h"
#include "base/revision.h"
#include "cli/frame/command.h"

static const struct hx_option options[] = {HX_OPTION_OUTPUT_ROW, {.name = NULL}};

static const struct {
	const char *name;
	bool is_there;
} features[] = {
	{"daemon", HX_HAVE_DAEMON},     {"kafka", HX_HAVE_KAFKA},   {"postgres", HX_HAVE_POSTGRES},
	{"rabbitmq", HX_HAVE_RABBITMQ}, {"sqlite", HX_HAVE_SQLITE}, {"tls", HX_HAVE_TLS},
};

static int run_version(struct hx_invocation *inv)
{
	struct hx_json_write json;

	if (inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_printf(&inv->out, "hapax %s\n", hapax_version());
		return HX_EXIT_OK;
	}
	hx_out_json(&json, &inv->out);
	hx_json_write_text(&json, "version", hapax_version());
	hx_json_write_text(&json, "revision", HX_REVISION);
	hx_json_write_begin(&json, "features", '[');
	for (size_t i = 0; i < HX_COUNT(features); i++)
		if (features[i].is_there)
			hx_json_write_text(&json, NULL, features[i].name);
	hx_json_write_end(&json, ']');
	hx_json_write_end(&json, '}');
	return HX_EXIT_OK;
}

static const struct command_example examples[] = {
	{"hapax version", "print the installed version"},
	{"hapax version -o json", "print the revision and the built-in features, too"},
	{NULL, NULL},
};

const struct command hx_cmd_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "[-o text|json]",
	.description =
		"The JSON form also has the revision, and the optional features that are built in.\n",
	.options = options,
	.examples = examples,
	.run = run_version,
};
