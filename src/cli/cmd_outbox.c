/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_outbox.c - hapax outbox: events that commit with the change they tell of.
 */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/duration.h"
#include "cli/environment.h"
#include "cli/json_out.h"
#include "cli/outbox.h"
#include "cli/report.h"
#include "cli/text.h"

static const char *const formats[] = {"text", "json", NULL};
static const char *const presets[] = {"debezium", "events", NULL};
static const char *const found_by[] = {"id", "ordering_key", "subject", NULL};

static const struct hx_option options[] = {
	{HX_OUTBOX_DB, "db", 0, HX_OPTION_TEXT, "URL", "postgres://... or sqlite:FILE ($HAPAX_DB)",
         NULL},
	{HX_OUTBOX_TOPIC, "topic", 't', HX_OPTION_TEXT, "NAME", "add: where the event goes", NULL},
	{HX_OUTBOX_KEY, "key", 'k', HX_OPTION_TEXT, "TEXT",
         "add: ordering key; its events keep their order", NULL},
	{HX_OUTBOX_ID, "id", 0, HX_OPTION_TEXT, "ID", "add: the event's id (a new UUIDv7)", NULL},
	{HX_OUTBOX_TYPE, "type", 0, HX_OPTION_TEXT, "TYPE", "add: the event's type", NULL},
	{HX_OUTBOX_SOURCE, "source", 0, HX_OPTION_TEXT, "URI",
         "the event's source; relay: where it has none", NULL},
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
	struct hx_json_out json;

	hx_json_out_init(&json, out);
	hx_json_out_object_begin(&json, NULL);
	hx_json_out_unsigned(&json, "pending", status->pending);
	hx_json_out_unsigned(&json, "retrying", status->retrying);
	hx_json_out_unsigned(&json, "waiting", status->waiting);
	hx_json_out_unsigned(&json, "parked", status->parked);
	hx_json_out_unsigned(&json, "parked_keys", status->parked_keys);
	hx_json_out_unsigned(&json, "sent", status->sent);
	hx_json_out_signed(&json, "oldest_ms", status->oldest_ms);
	hx_json_out_unsigned(&json, "relays", status->relays);
	hx_json_out_unsigned(&json, "partitions", status->partitions);
	hx_json_out_object_end(&json);
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
			out, ", which hold up %" PRIu64 " keys with %" PRIu64 " events",
			status->parked_keys, status->waiting);
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

static const struct {
	const char *name;
	const char *usage;
	size_t operands_max;
	int (*run)(struct hx_invocation *inv, char **operands, size_t count);
} actions[] = {
	{"init", "init [--preset NAME] --db URL", 0, hx_outbox_init},
	{"add", "add --db URL --topic NAME [--key TEXT] [FILE|-]", 1, hx_outbox_add},
	{"status", "status [--parked] --db URL", 0, run_status},
	{"relay", "relay --to URL --db URL", 0, hx_outbox_relay},
	{"retry", "retry ID... | --key TEXT | --all   --db URL", SIZE_MAX, hx_outbox_retry},
	{"park", "park ID... --db URL", SIZE_MAX, hx_outbox_park},
	{"purge", "purge [--older D] --db URL", 0, hx_outbox_purge},
	{"audit", "audit --query SQL [--by COLUMN] --db URL", 0, hx_outbox_audit},
	{"rebuild", "rebuild --query SQL --db URL", 0, hx_outbox_rebuild},
};

static int run(struct hx_invocation *inv)
{
	const char *name = inv->options.operands[0];
	size_t count = inv->options.operand_count - 1;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, name) != 0)
			continue;
		if (count <= actions[i].operands_max)
			return actions[i].run(inv, inv->options.operands + 1, count);
		(void)hx_report_usage(inv->command->name, "there was an argument too many");
		hx_report_hint("usage: hapax outbox %s", actions[i].usage);
		return HX_EXIT_USAGE;
	}
	(void)hx_report_usage(inv->command->name, "unknown action '%s'", name);
	hx_report_hint("there are init, add, status, relay, retry, park, purge, audit and rebuild");
	return HX_EXIT_USAGE;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "it was done; the relay was stopped, or drained"},
	{HX_EXIT_NO, "nothing was retried or parked; events are missing (audit)"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax outbox init --db sqlite:shop.db", "make the table, beside the business data"},
	{"echo '{\"order\":17}' | hapax outbox add --db sqlite:shop.db -t orders -k order-17",
         "an event by hand; applications add theirs in their own transactions"},
	{"hapax outbox status --db sqlite:shop.db", "what is pending, parked, sent"},
	{NULL, NULL},
};

const struct command hx_cmd_outbox = {
	.name = "outbox",
	.summary = "events that commit with the change they tell of, and their relay",
	.usage = "ACTION [OPTION]... --db URL",
	.description =
		"An event is a row of the table hapax_outbox, written in the transaction of the\n"
		"change that it tells of, so that both are there or neither. A relay publishes\n"
		"rows, waits for the broker's confirmation, then marks them sent. After a crash in\n"
		"between a message comes again with the same id, by which consumers de-duplicate.\n"
		"\n"
		"init     make the table, or bring it up to date. In PostgreSQL applications then\n"
		"         call SELECT hapax_outbox_add(topic, payload, ordering_key, type). With\n"
		"         --preset rows of a table that is there become events by a trigger:\n"
		"         Debezium's outbox, or outbox_events (queue_name, payload, status)\n"
		"add      one event, with the file's bytes as its payload; prints its id\n"
		"status   what is pending, parked, sent, and who relays\n"
		"relay    publish until stopped; any number may run. Events of one ordering key\n"
		"         keep the order of their commits; one that fails is tried again, then\n"
		"         parked, and only its own key waits for it. --to one of\n"
		"           amqp://user:password@host/vhost: the topic is the routing key, of\n"
		"           the exchange in ?exchange=NAME, else a queue; &declare=quorum makes\n"
		"           queues that are not there\n"
		"           kafka://host[,host...][/topic], properties of librdkafka behind ?\n"
		"           redis://host[/db][/stream], where ?maxlen=N trims streams\n"
		"           http://host/path: CloudEvents\n"
		"retry    parked events go out again\n"
		"park     an event that has not gone out stays, and its key waits\n"
		"purge    remove events that were sent long ago, in small steps\n"
		"audit    print the first column of a query's rows that have no event\n"
		"rebuild  add events for rows of a query (id, topic, payload, ordering_key, type)\n"
		"         whose id has none\n",
	.operands_min = 1,
	.operands_max = SIZE_MAX,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run,
};
