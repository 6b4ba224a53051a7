/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_setup.h - the options that define how a key is made.
 *
 * `hapax key` and `hapax backtest` share them.
 */
#ifndef HX_CLI_INPUT_KEY_SETUP_H
#define HX_CLI_INPUT_KEY_SETUP_H

#include <hapax/key.h>

#include "cli/frame/command.h"
#include "cli/input/event_reader.h"

enum hx_key_option {
	HX_KEY_OPTION_STRATEGY = 100,
	HX_KEY_OPTION_INCLUDE,
	HX_KEY_OPTION_EXCLUDE,
	HX_KEY_OPTION_CANONICAL,
	HX_KEY_OPTION_ON_MISSING,
	HX_KEY_OPTION_INPUT,
	HX_KEY_OPTION_TENANT,
	HX_KEY_OPTION_TENANT_FROM,
	HX_KEY_OPTION_GROUP,
	HX_KEY_OPTION_GROUP_FROM,
};

/* In the order of enum hapax_canonical, enum hapax_on_missing, enum hx_event_form. */
extern const char *const hx_canonical_choices[];
extern const char *const hx_on_missing_choices[];
extern const char *const hx_event_form_choices[];

/* Their rows in a command's table of options. */
/* clang-format off */
#define HX_KEY_OPTION_ROWS \
	{HX_KEY_OPTION_STRATEGY, "strategy", 's', HX_OPTION_TEXT, "S", \
	 "key strategy; see 'hapax help key'", NULL}, \
	{HX_KEY_OPTION_INCLUDE, "include", 0, HX_OPTION_TEXT, "PATH", \
	 "content: hash only PATH; may be repeated", NULL}, \
	{HX_KEY_OPTION_EXCLUDE, "exclude", 0, HX_OPTION_TEXT, "PATH", \
	 "ignore PATH in the payload; may be repeated", NULL}, \
	{HX_KEY_OPTION_CANONICAL, "canonical", 0, HX_OPTION_CHOICE, "lossless|python", \
	 "content: form of the hashed text (default: lossless)", hx_canonical_choices}, \
	{HX_KEY_OPTION_ON_MISSING, "on-missing", 0, HX_OPTION_CHOICE, "reject|pass|content", \
	 "what to do with an event without a key (default: reject)", hx_on_missing_choices}, \
	{HX_KEY_OPTION_INPUT, "input", 0, HX_OPTION_CHOICE, "document|cloudevents|envelope", \
	 "form of the JSON input (default: document)", hx_event_form_choices}, \
	{HX_KEY_OPTION_TENANT, "tenant", 0, HX_OPTION_TEXT, "T", \
	 "tenant; with --tenant-from, of events without one", NULL}, \
	{HX_KEY_OPTION_TENANT_FROM, "tenant-from", 0, HX_OPTION_TEXT, "PATH", \
	 "take the tenant from PATH of the event", NULL}, \
	{HX_KEY_OPTION_GROUP, "group", 0, HX_OPTION_TEXT, "G", "group; with --group-from, of events without one", NULL}, \
	{HX_KEY_OPTION_GROUP_FROM, "group-from", 0, HX_OPTION_TEXT, "PATH", \
	 "take the group from PATH of the event", NULL}
/* clang-format on */

/* The event form that the options select. */
enum hx_event_form hx_key_setup_form(const struct hx_invocation *inv);

/*
 * Make the strategy that text and the options describe. flags are added to theirs. Without
 * has_include, --include is ignored. HX_EXIT_OK, or another code after a message. Owned: *ret, by
 * the caller.
 */
int hx_key_setup(
	const struct hx_invocation *inv, const char *text, unsigned flags, bool has_include,
	struct hapax_key_strategy **ret);

/* The text of --strategy; NULL after reporting that it is missing. */
const char *hx_key_setup_strategy(const struct hx_invocation *inv);

#endif
