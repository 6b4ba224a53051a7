/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_claim.c - hapax claim: claim a key and print its token.
 */
#include <inttypes.h>

#include <hapax/hapax.h>

#include "base/limits.h"
#include "base/owner.h"
#include "cli/frame/key_command.h"
#include "cli/input/duration_text.h"
#include "cli/input/payload.h"
#include "cli/print/outcome_out.h"

enum { OPTION_PAYLOAD = 1, OPTION_LEASE, OPTION_ON_LAPSE, OPTION_OWNER };

/* In the order of enum hapax_on_lapse. */
static const char *const on_lapse_choices[] = {"retry", "park", NULL};

static const struct hx_option options[] = {
	{OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "how long the claim lasts without renewal (default: 30s)", NULL},
	{OPTION_ON_LAPSE, "on-lapse", 0, HX_OPTION_CHOICE, "retry|park",
	 "after the lease lapses, run again or park (default: retry)", on_lapse_choices},
	{OPTION_PAYLOAD, "payload", 0, HX_OPTION_TEXT, "FILE|-",
	 "also compare the SHA-256 of the payload", NULL},
	{OPTION_OWNER, "owner", 0, HX_OPTION_TEXT, "TEXT",
	 "name of the holder, shown by 'lookup' and 'explain'", NULL},
	{.name = NULL},
};

static int print(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	bool is_acquired = op->outcome == HAPAX_OUTCOME_ACQUIRED;

	if (inv->settings.format == HX_FORMAT_JSON)
		hx_outcome_out_json(&inv->out, op);
	else if (is_acquired)
		/* Only the token: token=$(hapax claim KEY). */
		hx_out_printf(&inv->out, "%" PRIu64 "\n", op->token);
	else
		hx_outcome_out_text(&inv->out, op, hx_settings_now_ms(store));
	if (is_acquired)
		hx_settings_tidy(store);
	return hx_outcome_out_exit(op->outcome);
}

static int run_claim(struct hx_invocation *inv)
{
	const struct hx_option_value *lease = hx_options_get(&inv->options, OPTION_LEASE);
	const struct hx_option_value *on_lapse = hx_options_get(&inv->options, OPTION_ON_LAPSE);
	const struct hx_option_value *payload = hx_options_get(&inv->options, OPTION_PAYLOAD);
	const struct hx_option_value *owner = hx_options_get(&inv->options, OPTION_OWNER);
	const char *name = inv->command->name;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	char owner_text[HX_OWNER_SIZE_MAX + 1];
	struct hapax_op op;
	int code = hx_key_command_init(inv, HAPAX_OP_CLAIM, &op);

	if (code == HX_EXIT_OK && lease != NULL)
		code = hx_duration_text_read(
			name, "--lease", lease->text, HX_LEASE_MS_MAX, &op.lease_ms);
	if (on_lapse != NULL)
		op.on_lapse = (enum hapax_on_lapse)on_lapse->number;
	hx_owner_text(owner_text);
	op.owner = hapax_bytes_from_text(owner != NULL ? owner->text : owner_text);
	if (code == HX_EXIT_OK && payload != NULL) {
		code = hx_payload_fingerprint(name, payload->text, fingerprint);
		op.fingerprint = fingerprint;
	}
	hapax_attempt_id(attempt_id);
	op.attempt_id = attempt_id;
	return code == HX_EXIT_OK ? hx_key_command_run(inv, HX_OPEN_CREATE, &op, print) : code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "acquired: do the work, then complete or release it"},
	{HX_EXIT_NO, "duplicate: the work is done"},
	{HX_EXIT_MISMATCH, "mismatch: the key was used with a different payload"},
	{HX_EXIT_NO_INPUT, "the payload could not be read; nothing changed"},
	{HX_EXIT_BUSY, "in progress (retry later), or parked (run 'hapax resolve')"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"token=$(hapax claim order-21) && hapax complete order-21 --token \"$token\"",
	 "claim, do the work, complete"},
	{"hapax claim order-22 --lease 5m --on-lapse park -o json",
	 "claim for five minutes; park the key if the lease lapses"},
	{NULL, NULL},
};

const struct command hx_cmd_claim = {
	.name = "claim",
	.summary = "claim a key and print its token",
	.usage = "KEY [--lease D] [OPTION]...",
	.description =
		"Of any number of concurrent callers, exactly one acquires KEY. It gets a fencing token,\n"
		"which 'renew', 'complete', 'release' and 'park' require. The others get 'in_progress' or\n"
		"'duplicate'. If the holder does not renew its lease, the lease lapses and the next claim\n"
		"takes over with a higher token. In a script ('hapax run' does this for one command):\n"
		"\n"
		"  token=$(hapax claim \"$id\" --lease 10m); case $? in\n"
		"  0)  if do_the_work; then hapax complete \"$id\" --token \"$token\"\n"
		"      else hapax release \"$id\" --token \"$token\"; fi ;;\n"
		"  1)  ;;                         # duplicate: nothing to do\n"
		"  75) exit 75 ;;                 # in progress: retry later\n"
		"  *)  exit 1 ;;                  # not decided: see the message\n"
		"  esac\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL,
	.operands_min = 1,
	.operands_max = 1,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_claim,
};
