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

/* Collect every value of an option, in the order given. */
static size_t all_of(
	const struct hx_invocation *inv, int id, const char *texts[PATHS_MAX], bool *ret_too_many)
{
	size_t count = 0;

	for (size_t i = 0; i < inv->options.count; i++) {
		const struct hx_option_value *value = &inv->options.values[i];

		if (value->option->id != id)
			continue;
		if (count == PATHS_MAX)
			*ret_too_many = true;
		else
			texts[count++] = value->text;
	}
	return count;
}

static const char *text_of(const struct hx_invocation *inv, int id)
{
	const struct hx_option_value *value = hx_options_get(&inv->options, id);

	return value == NULL ? NULL : value->text;
}

static int64_t choice_of(const struct hx_invocation *inv, int id)
{
	const struct hx_option_value *value = hx_options_get(&inv->options, id);

	return value == NULL ? 0 : value->number;
}

enum hx_event_form hx_key_setup_form(const struct hx_invocation *inv)
{
	return (enum hx_event_form)choice_of(inv, HX_KEY_OPTION_INPUT);
}

const char *hx_key_setup_strategy(const struct hx_invocation *inv)
{
	const char *text = text_of(inv, HX_KEY_OPTION_STRATEGY);

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
	bool too_many = false;

	options.flags = flags;
	if (hx_key_setup_form(inv) == HX_EVENT_DOCUMENT)
		options.flags |= HAPAX_KEY_RELATIVE;
	options.exclude = exclude;
	options.exclude_count = all_of(inv, HX_KEY_OPTION_EXCLUDE, exclude, &too_many);
	if (has_include) {
		options.include = include;
		options.include_count = all_of(inv, HX_KEY_OPTION_INCLUDE, include, &too_many);
	}
	options.canonical = (enum hapax_canonical)choice_of(inv, HX_KEY_OPTION_CANONICAL);
	options.on_missing = (enum hapax_on_missing)choice_of(inv, HX_KEY_OPTION_ON_MISSING);
	options.tenant = text_of(inv, HX_KEY_OPTION_TENANT);
	options.tenant_from = text_of(inv, HX_KEY_OPTION_TENANT_FROM);
	options.group = text_of(inv, HX_KEY_OPTION_GROUP);
	options.group_from = text_of(inv, HX_KEY_OPTION_GROUP_FROM);
	if (too_many)
		return hx_report_usage(
			inv->command->name, "too many paths: the limit is %d", PATHS_MAX);
	if (hapax_key_strategy_new(text, &options, ret, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	if (err.status == HAPAX_ERR_INVALID)
		return hx_report_usage(inv->command->name, "%s", err.message);
	return hx_report_error(inv->command->name, &err);
}
