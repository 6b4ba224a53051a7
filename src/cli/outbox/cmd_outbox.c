/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox.c - hapax outbox: events that are committed with a database change.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/macros.h"
#include "base/suggest.h"
#include "cli/frame/environment.h"
#include "wire/json/json_write.h"
#include "cli/outbox/cmd_outbox.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

static const char *const formats[] = {"text", "json", NULL};
static const char *const presets[] = {"debezium", "events", NULL};
static const char *const found_by[] = {"id", "ordering_key", "subject", NULL};

static const struct hx_option options[] = {
	{HX_OUTBOX_DB, "db", 0, HX_OPTION_TEXT, "URL", "postgres://... or sqlite:FILE ($HAPAX_DB)",
	 NULL},
	{HX_OUTBOX_TOPIC, "topic", 't', HX_OPTION_TEXT, "NAME", "add: where the event goes", NULL},
	{HX_OUTBOX_KEY, "key", 'k', HX_OPTION_TEXT, "TEXT",
	 "add, retry: ordering key, whose events keep their order", NULL},
	{HX_OUTBOX_ID, "id", 0, HX_OPTION_TEXT, "ID", "add: the event's id (a new UUIDv7)", NULL},
	{HX_OUTBOX_TYPE, "type", 0, HX_OPTION_TEXT, "TYPE", "add: the event's type", NULL},
	{HX_OUTBOX_SOURCE, "source", 0, HX_OPTION_TEXT, "URI",
	 "add, relay: the event's source, where it has none", NULL},
	{HX_OUTBOX_SUBJECT, "subject", 0, HX_OPTION_TEXT, "TEXT", "add: the event's subject", NULL},
	{HX_OUTBOX_CONTENT_TYPE, "content-type", 0, HX_OPTION_TEXT, "TYPE",
	 "add: the payload's type (application/json)", NULL},
	{HX_OUTBOX_HEADER, "header", 'H', HX_OPTION_TEXT, "NAME=VALUE",
	 "add: a header of the message; may be given again", NULL},
	{HX_OUTBOX_TO, "to", 0, HX_OPTION_TEXT, "URL",
	 "relay: where to: amqp:// kafka:// redis:// http://", NULL},
	{HX_OUTBOX_BATCH, "batch", 0, HX_OPTION_COUNT, "N",
	 "relay: rows under way at a time (1000)", NULL},
	{HX_OUTBOX_ATTEMPTS, "attempts", 0, HX_OPTION_COUNT, "N",
	 "relay: attempts before a row is parked (10)", NULL},
	{HX_OUTBOX_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "relay: how long its partitions stay its own (30s)", NULL},
	{HX_OUTBOX_RETRY, "retry", 0, HX_OPTION_TEXT, "D",
	 "relay: pause after a first failure (1s), doubling", NULL},
	{HX_OUTBOX_DRAIN, "drain", 0, HX_OPTION_FLAG, NULL,
	 "relay: end when nothing is pending any more", NULL},
	{HX_OUTBOX_PRESET, "preset", 0, HX_OPTION_CHOICE, "debezium|events",
	 "init: take over a table that is there", presets},
	{HX_OUTBOX_TABLE, "table", 0, HX_OPTION_TEXT, "NAME", "init: its name, if it is another",
	 NULL},
	{HX_OUTBOX_COLUMN, "column", 0, HX_OPTION_TEXT, "FIELD=NAME",
	 "init: a column's name, if it is another", NULL},
	{HX_OUTBOX_EXISTING, "existing", 0, HX_OPTION_FLAG, NULL,
	 "init: rows that are there are events, too", NULL},
	{HX_OUTBOX_PARKED, "parked", 0, HX_OPTION_FLAG, NULL,
	 "status: list what is parked, with the reason", NULL},
	{HX_OUTBOX_ALL, "all", 0, HX_OPTION_FLAG, NULL, "retry: all that is parked", NULL},
	{HX_OUTBOX_OLDER, "older", 0, HX_OPTION_TEXT, "D", "purge: sent longer ago than that (7d)",
	 NULL},
	{HX_OUTBOX_QUERY, "query", 0, HX_OPTION_TEXT, "SQL",
	 "audit, rebuild: what should have events", NULL},
	{HX_OUTBOX_BY, "by", 0, HX_OPTION_CHOICE, "id|ordering_key|subject",
	 "audit: what it is found by (id)", found_by},
	{HX_OUTBOX_OUTPUT, "output", 'o', HX_OPTION_CHOICE, "text|json", "the form of the output",
	 formats},
	{.name = NULL},
};

const char *hx_outbox_text(const struct hx_invocation *inv, enum hx_outbox_option option)
{
	const struct hx_option_value *value = hx_options_get(&inv->options, (int)option);

	return value == NULL ? NULL : value->text;
}

int hx_outbox_duration(
	const struct hx_invocation *inv, enum hx_outbox_option option, int64_t *ret_ms)
{
	const char *text = hx_outbox_text(inv, option);
	struct hapax_error err;

	*ret_ms = 0;
	if (text == NULL)
		return HX_EXIT_OK;
	if (hx_duration_parse(hapax_bytes_from_text(text), ret_ms, &err) != HAPAX_OK)
		return hx_report_usage(inv->command->name, "'%s': %s", text, err.message);
	if (*ret_ms <= 0)
		return hx_report_usage(inv->command->name, "'%s' is no time to wait", text);
	return HX_EXIT_OK;
}

bool hx_outbox_is_json(const struct hx_invocation *inv)
{
	const struct hx_option_value *value = hx_options_get(&inv->options, HX_OUTBOX_OUTPUT);

	return value != NULL && value->number == 1;
}

const char *hx_outbox_url(const struct hx_invocation *inv)
{
	const char *url = hx_outbox_text(inv, HX_OUTBOX_DB);

	if (url == NULL)
		url = hx_environment("HAPAX_DB");
	if (url != NULL)
		return url;
	(void)hx_report_usage(inv->command->name, "no database was named");
	hx_report_hint(
		"--db postgres://HOST/DATABASE or --db sqlite:FILE, where the business data lies");
	return NULL;
}

int hx_outbox_open(const struct hx_invocation *inv, struct hapax_outbox **ret_outbox)
{
	const char *url = hx_outbox_url(inv);
	struct hapax_error err;

	if (url == NULL)
		return HX_EXIT_USAGE;
	if (hapax_outbox_open(url, ret_outbox, &err) != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	return HX_EXIT_OK;
}

/* ------------------------------------------------------------------ status */

static void status_json(struct hx_out *out, const struct hapax_outbox_status *status)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_unsigned(&json, "pending", status->pending);
	hx_json_write_unsigned(&json, "retrying", status->retrying);
	hx_json_write_unsigned(&json, "waiting", status->waiting);
	hx_json_write_unsigned(&json, "parked", status->parked);
	hx_json_write_unsigned(&json, "parked_keys", status->parked_keys);
	hx_json_write_unsigned(&json, "sent", status->sent);
	hx_json_write_signed(&json, "oldest_ms", status->oldest_ms);
	hx_json_write_unsigned(&json, "relays", status->relays);
	hx_json_write_unsigned(&json, "partitions", status->partitions);
	hx_json_write_end(&json, '}');
}

static void status_text(struct hx_out *out, const struct hapax_outbox_status *status)
{
	char oldest[HX_DURATION_TEXT_SIZE];

	hx_duration_format(status->oldest_ms, oldest);
	hx_out_field(out, "pending");
	hx_out_printf(out, "%" PRIu64, status->pending);
	if (status->pending > 0)
		hx_out_printf(out, ", the oldest for %s", oldest);
	if (status->retrying > 0)
		hx_out_printf(out, "; %" PRIu64 " to be tried again", status->retrying);
	hx_out_text(out, "\n");
	hx_out_field(out, "parked");
	hx_out_printf(out, "%" PRIu64, status->parked);
	if (status->parked > 0)
		hx_out_printf(
			out, ", of %" PRIu64 " ordering key%s; %" PRIu64 " wait behind them",
			status->parked_keys, status->parked_keys == 1 ? "" : "s", status->waiting);
	hx_out_text(out, "\n");
	hx_out_field(out, "sent");
	hx_out_printf(out, "%" PRIu64 "\n", status->sent);
	hx_out_field(out, "relays");
	hx_out_printf(
		out, "%" PRIu64 ", which hold %" PRIu64 " of 64 partitions\n", status->relays,
		status->partitions);
}

static int run_status(struct hx_invocation *inv, char **operands, size_t count)
{
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	int code;

	(void)operands;
	(void)count;
	if (hx_options_get(&inv->options, HX_OUTBOX_PARKED) != NULL)
		return hx_outbox_parked(inv);
	code = hx_outbox_open(inv, &outbox);
	if (code != HX_EXIT_OK)
		return code;
	if (hapax_outbox_status(outbox, &status, &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	else if (hx_outbox_is_json(inv))
		status_json(&inv->out, &status);
	else
		status_text(&inv->out, &status);
	hapax_outbox_close(outbox);
	return code;
}

/* ------------------------------------------------------------------ actions */

struct action {
	const char *name;
	const char *summary;
	const char *usage;
	size_t operands_max;
	int (*run)(struct hx_invocation *inv, char **operands, size_t count);
	const char *description; /* like that of a command */
};

static const struct action actions[] = {
	{"init", "make the table, or bring it up to date", "[--preset NAME] --db URL", 0,
	 hx_outbox_init,
	 "Make the table hapax_outbox beside the business data, or bring it up to date; what\n"
	 "is there stays. In PostgreSQL applications then call, in their transactions,\n"
	 "SELECT hapax_outbox_add_json(topic, payload, ordering_key, type), or\n"
	 "hapax_outbox_add() for any bytes; in C, and on SQLite, hapax_outbox_add().\n"
	 "\n"
	 "With --preset each row of a table that applications fill already becomes an event,\n"
	 "by a trigger, in the transaction that inserts it:\n"
	 "  debezium  outbox (id, aggregatetype, aggregateid, type, payload); the topic is\n"
	 "            outbox.event.AGGREGATETYPE, the ordering key aggregateid\n"
	 "  events    outbox_events (id, queue_name, payload, status), where status becomes\n"
	 "            'processed' when the event was sent\n"
	 "--column FIELD=NAME names another column: FIELD is id, topic, key, type, payload or\n"
	 "status; prefix=TEXT, pending=WORD and processed=WORD are the words.\n"},
	{"add", "add one event by hand; prints its id",
	 "--db URL --topic NAME [--key TEXT] [FILE|-]", 1, hx_outbox_add,
	 "Add one event, with the bytes of the file, or of standard input, as its payload:\n"
	 "16 MiB at most. Applications add theirs in the transaction of the change.\n"},
	{"status", "what is pending, parked, sent, and who relays", "[--parked] --db URL", 0,
	 run_status,
	 "Events are pending until a relay has published them, then sent. One that cannot be\n"
	 "published is parked, and later ones of its ordering key wait behind it: --parked\n"
	 "lists these, with the reason.\n"},
	{"relay", "publish what is pending, until it is stopped", "--to URL --db URL", 0,
	 hx_outbox_relay,
	 "Any number of relays may run. Events of one ordering key keep the order of their\n"
	 "commits; one that fails is tried again, later and later, then parked, and only its\n"
	 "own key waits for it. An outage is waited out. --to is one of\n"
	 "  amqp://user:password@host/vhost   the topic is the routing key, of the exchange\n"
	 "                    in ?exchange=NAME, else a queue; &declare=quorum makes queues\n"
	 "                    that are not there\n"
	 "  kafka://host[,host...][/topic]    properties of librdkafka stand behind ?; 'man\n"
	 "                    hapax' lists them\n"
	 "  redis://host[/db][/stream]        ?maxlen=N trims streams\n"
	 "  http://host/path                  CloudEvents; a path that ends with / is\n"
	 "                    followed by the topic\n"
	 "Others on this machine see passwords in it. 'hapax serve' does the same, with the\n"
	 "URLs in a file (outbox:).\n"},
	{"retry", "parked events go out again", "ID... | --key TEXT | --all   --db URL", SIZE_MAX,
	 hx_outbox_retry,
	 "Parked events are pending again, with the attempts of new ones, and so is what waited\n"
	 "behind them.\n"},
	{"park", "events that have not gone out stay", "ID... --db URL", SIZE_MAX, hx_outbox_park,
	 "An event that has not gone out stays, and its ordering key waits, until 'retry'. One\n"
	 "that is under way at this moment may go out all the same.\n"},
	{"purge", "remove events that were sent long ago", "[--older D] --db URL", 0,
	 hx_outbox_purge,
	 "Sent events are removed, a thousand at a time with a pause behind. It may be stopped\n"
	 "at any time. Whoever audits asks for what is younger.\n"},
	{"audit", "which rows of a query have no event", "--query SQL [--by COLUMN] --db URL", 0,
	 hx_outbox_audit,
	 "Print the first column of each row of the query that is no event's id (--by: its\n"
	 "ordering key, or subject), and exit with 1 if there is any. The query only reads.\n"
	 "What was purged counts as missing.\n"},
	{"rebuild", "add events for rows of a query that have none", "--query SQL --db URL", 0,
	 hx_outbox_rebuild,
	 "Add an event for each row of the query whose id has none. Its columns are id, topic\n"
	 "and payload; it may have ordering_key, type, source, subject and content_type.\n"},
};

enum { ACTION_COUNT = HX_COUNT(actions) };

static const struct action *find_action(const char *name)
{
	for (size_t i = 0; i < ACTION_COUNT; i++)
		if (strcmp(actions[i].name, name) == 0)
			return &actions[i];
	return NULL;
}

/* Does a summary belong to that action ("add, retry: ...")? Without a name it belongs to all. */
static bool is_of(const char *summary, const char *name, const char **ret_rest)
{
	const char *colon = strstr(summary, ": ");
	size_t size = strspn(summary, "abcdefghijklmnopqrstuvwxyz, ");
	const char *place = strstr(summary, name);

	*ret_rest = summary;
	if (colon == NULL || summary + size != colon)
		return true;
	*ret_rest = colon + 2;
	return place != NULL && place < colon;
}

/* Refuse an option without effect here: it was meant to have one. */
static int check_options(const struct hx_invocation *inv, const struct action *action)
{
	for (size_t i = 0; i < inv->options.count; i++) {
		const struct hx_option *option = inv->options.values[i].option;
		const char *rest;

		if (is_of(option->summary, action->name, &rest))
			continue;
		(void)hx_report_usage(
			inv->command->name, "'%s' has no option '--%s'", action->name,
			option->name);
		hx_report_hint("'hapax outbox %s --help' lists its options", action->name);
		return HX_EXIT_USAGE;
	}
	return HX_EXIT_OK;
}

static int run_outbox(struct hx_invocation *inv)
{
	const char *name = inv->options.operands[0];
	size_t count = inv->options.operand_count - 1;
	const struct action *action = find_action(name);
	struct hx_suggest suggest;

	if (action != NULL && check_options(inv, action) != HX_EXIT_OK)
		return HX_EXIT_USAGE;
	if (action != NULL && count <= action->operands_max)
		return action->run(inv, inv->options.operands + 1, count);
	if (action != NULL) {
		(void)hx_report_usage(inv->command->name, "there was an argument too many");
		hx_report_hint("usage: hapax outbox %s %s", action->name, action->usage);
		return HX_EXIT_USAGE;
	}
	hx_suggest_init(&suggest, name);
	for (size_t i = 0; i < ACTION_COUNT; i++)
		hx_suggest_consider(&suggest, actions[i].name);
	(void)hx_report_usage(inv->command->name, "unknown action '%s'", name);
	if (suggest.best != NULL)
		hx_report_hint("did you mean 'hapax outbox %s'?", suggest.best);
	else
		hx_report_hint(
			"there are init, add, status, relay, retry, park, purge, audit and rebuild");
	return HX_EXIT_USAGE;
}

static void list_actions(struct hx_out *out)
{
	hx_out_text(out, "\nActions, of which 'hapax outbox ACTION --help' tells more:\n");
	for (size_t i = 0; i < ACTION_COUNT; i++)
		hx_cmd_help_item(out, actions[i].name, actions[i].summary);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "it was done; the relay was stopped, or drained"},
	{HX_EXIT_NO, "nothing was retried or parked; events are missing (audit)"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax outbox init --db sqlite:shop.db", "make the table, beside the business data"},
	{"echo '{\"order\":17}' | hapax outbox add --db sqlite:shop.db -t orders --id order-17",
	 "an event by hand; applications add theirs in their own transactions"},
	{"hapax outbox status --db sqlite:shop.db", "what is pending, parked, sent"},
	{"hapax outbox park order-17 --db sqlite:shop.db", "not this one, not now"},
	{"hapax outbox status --parked -o json --db sqlite:shop.db", "what is parked, and why"},
	{"hapax outbox relay --drain --db sqlite:shop.db --to http://localhost:8080/in/",
	 "publish what is pending, then end; without --drain it goes on"},
	{"hapax outbox audit --db sqlite:shop.db --query \"VALUES ('order-17'), ('order-18')\"",
	 "which of these have no event; with a SELECT from your own tables in its place"},
	{"hapax outbox rebuild --db sqlite:shop.db --query \"SELECT 8 id,'t' topic,1 payload\"",
	 "add what is missing; with these columns, and others, from your own tables"},
	{"hapax outbox retry --all --db sqlite:shop.db", "what was parked goes out again"},
	{"hapax outbox purge --older 30d --db sqlite:shop.db", "keep sent events for a month"},
	{NULL, NULL},
};

/* The help of one action: its own options and examples. */
static const struct command *refine(const struct hx_options *given)
{
	static struct hx_option own_options[HX_COUNT(options)];
	static struct command_example own_examples[HX_COUNT(examples)];
	static struct command help;
	static char name[32], begin[48];
	const struct action *action =
		given->operand_count == 0 ? NULL : find_action(given->operands[0]);
	size_t count = 0;

	if (action == NULL)
		return NULL;
	(void)snprintf(name, sizeof(name), "outbox %s", action->name);
	(void)snprintf(begin, sizeof(begin), "hapax outbox %s ", action->name);
	for (const struct hx_option *option = options; option->name != NULL; option++) {
		const char *rest;

		if (!is_of(option->summary, action->name, &rest))
			continue;
		own_options[count] = *option;
		own_options[count++].summary = rest;
	}
	own_options[count] = (struct hx_option){.name = NULL};
	count = 0;
	for (const struct command_example *example = examples; example->line != NULL; example++)
		if (strstr(example->line, begin) != NULL)
			own_examples[count++] = *example;
	own_examples[count] = (struct command_example){NULL, NULL};
	help = (struct command){
		.name = name,
		.summary = action->summary,
		.usage = action->usage,
		.description = action->description,
		.options = own_options,
		.exits = exits,
		.examples = own_examples,
	};
	return &help;
}

const struct command hx_cmd_outbox = {
	.name = "outbox",
	.summary = "events that commit with the change they tell of, and their relay",
	.usage = "ACTION [OPTION]... --db URL",
	.description =
		"An event is a row of the table hapax_outbox, written in the transaction of the\n"
		"change that it tells of, so that both are there or neither. A relay publishes\n"
		"rows, waits for the broker's confirmation, then marks them sent. After a crash in\n"
		"between a message comes again with the same id, by which consumers de-duplicate.\n",
	.list = list_actions,
	.operands_min = 1,
	.operands_max = SIZE_MAX,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_outbox,
	.refine = refine,
};
