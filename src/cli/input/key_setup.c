/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_setup.c - make a key strategy from options.
 */
#include "cli/input/key_setup.h"

#include "cli/frame/report.h"

const char *const hx_canonical_choices[] = {"lossless", "python", NULL};
const char *const hx_on_missing_choices[] = {"reject", "pass", "content", NULL};
const char *const hx_event_form_choices[] = {"document", "cloudevents", "envelope", NULL};

/* As many as a strategy takes. */
enum { PATHS_MAX = 64 };

enum hx_event_form hx_key_setup_form(const struct hx_invocation *inv)
{
	return (enum hx_event_form)hx_options_number(&inv->options, HX_KEY_OPTION_INPUT);
}

const char *hx_key_setup_strategy(const struct hx_invocation *inv)
{
	const char *text = hx_options_text(&inv->options, HX_KEY_OPTION_STRATEGY);

	if (text != NULL)
		return text;
	(void)hx_report_usage(inv->command->name, "missing option --strategy");
	hx_report_hint("'hapax help key' lists the strategies");
	return NULL;
}

int hx_key_setup(
	const struct hx_invocation *inv, const char *text, unsigned flags, bool has_include,
	struct hapax_key_strategy **ret)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	const char *include[PATHS_MAX];
	const char *exclude[PATHS_MAX];
	struct hapax_error err;

	options.flags = flags;
	if (hx_key_setup_form(inv) == HX_EVENT_DOCUMENT)
		options.flags |= HAPAX_KEY_RELATIVE;
	options.exclude = exclude;
	options.exclude_count =
		hx_options_all(&inv->options, HX_KEY_OPTION_EXCLUDE, exclude, PATHS_MAX);
	if (has_include) {
		options.include = include;
		options.include_count =
			hx_options_all(&inv->options, HX_KEY_OPTION_INCLUDE, include, PATHS_MAX);
	}
	options.canonical =
		(enum hapax_canonical)hx_options_number(&inv->options, HX_KEY_OPTION_CANONICAL);
	options.on_missing =
		(enum hapax_on_missing)hx_options_number(&inv->options, HX_KEY_OPTION_ON_MISSING);
	options.tenant = hx_options_text(&inv->options, HX_KEY_OPTION_TENANT);
	options.tenant_from = hx_options_text(&inv->options, HX_KEY_OPTION_TENANT_FROM);
	options.group = hx_options_text(&inv->options, HX_KEY_OPTION_GROUP);
	options.group_from = hx_options_text(&inv->options, HX_KEY_OPTION_GROUP_FROM);
	if (options.exclude_count > PATHS_MAX || options.include_count > PATHS_MAX)
		return hx_report_usage(
			inv->command->name, "too many paths: the limit is %d", PATHS_MAX);
	if (hapax_key_strategy_new(text, &options, ret, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	if (err.status == HAPAX_ERR_INVALID)
		return hx_report_usage(inv->command->name, "%s", err.message);
	return hx_report_error(inv->command->name, &err);
}
