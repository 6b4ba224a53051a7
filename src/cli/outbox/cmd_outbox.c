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
#include "cli/frame/environment.h"
#include "wire/json/json_write.h"
#include "cli/outbox/cmd_outbox.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

static const char *const presets[] = {"debezium", "events", NULL};
static const char *const found_by[] = {"id", "ordering_key", "subject", NULL};

static const struct hx_option options[] = {
	{HX_OUTBOX_DB, "db", 0, HX_OPTION_TEXT, "URL",
	 "postgres://HOST/DATABASE or sqlite:FILE (default: $HAPAX_DB)", NULL},
	{HX_OUTBOX_TOPIC, "topic", 't', HX_OPTION_TEXT, "NAME", "add: topic of the event", NULL},
	{HX_OUTBOX_KEY, "ordering-key", 0, HX_OPTION_TEXT, "TEXT",
	 "add, retry: events with the same one keep their order", NULL},
	{HX_OUTBOX_ID, "id", 0, HX_OPTION_TEXT, "ID", "add: ID of the event (default: a UUIDv7)",
	 NULL},
	{HX_OUTBOX_TYPE, "type", 0, HX_OPTION_TEXT, "TYPE", "add: type of the event", NULL},
	{HX_OUTBOX_SOURCE, "source", 0, HX_OPTION_TEXT, "URI",
	 "add, relay: source of events that have none", NULL},
	{HX_OUTBOX_SUBJECT, "subject", 0, HX_OPTION_TEXT, "TEXT", "add: subject of the event",
	 NULL},
	{HX_OUTBOX_CONTENT_TYPE, "content-type", 0, HX_OPTION_TEXT, "TYPE",
	 "add: type of the payload (default: application/json)", NULL},
	{HX_OUTBOX_HEADER, "header", 'H', HX_OPTION_TEXT, "NAME:VALUE",
	 "add: header of the message; may be repeated", NULL},
	{HX_OUTBOX_TO, "to", 0, HX_OPTION_TEXT, "URL",
	 "relay: amqp://, kafka://, redis:// or http:// destination", NULL},
	{HX_OUTBOX_HEADERS, "headers", 0, HX_OPTION_TEXT, "NAME=COLUMN,...",
	 "relay: headers of each message, such as eventId=id", NULL},
	{HX_OUTBOX_BATCH, "batch", 0, HX_OPTION_COUNT, "N",
	 "relay: maximum rows in progress (default: 1000)", NULL},
	{HX_OUTBOX_ATTEMPTS, "attempts", 0, HX_OPTION_COUNT, "N",
	 "relay: attempts before an event is parked (default: 10)", NULL},
	{HX_OUTBOX_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "relay: how long others wait if this one dies (default: 30s)", NULL},
	{HX_OUTBOX_BACKOFF, "backoff", 0, HX_OPTION_TEXT, "D",
	 "relay: pause after the first failure; doubles (default: 1s)", NULL},
	{HX_OUTBOX_RETENTION, "retention", 0, HX_OPTION_TEXT, "D",
	 "relay: how long to keep sent events; 0: forever (default: 7d)", NULL},
	{HX_OUTBOX_UNTIL_EMPTY, "until-empty", 0, HX_OPTION_FLAG, NULL,
	 "relay: exit when no event is pending", NULL},
	{HX_OUTBOX_PRESET, "preset", 0, HX_OPTION_CHOICE, "debezium|events",
	 "init: take events from an existing table", presets},
	{HX_OUTBOX_TABLE, "table", 0, HX_OPTION_TEXT, "NAME",
	 "init: name of that table, if it differs", NULL},
	{HX_OUTBOX_COLUMN, "column", 0, HX_OPTION_TEXT, "FIELD=NAME",
	 "init: name of a column, if it differs", NULL},
	{HX_OUTBOX_EXISTING, "existing", 0, HX_OPTION_FLAG, NULL,
	 "init: also publish the rows that it already has", NULL},
	{HX_OUTBOX_PARKED, "parked", 0, HX_OPTION_FLAG, NULL,
	 "status: list parked events with the reason", NULL},
	{HX_OUTBOX_ALL, "all", 0, HX_OPTION_FLAG, NULL, "retry: all parked events", NULL},
	{HX_OUTBOX_OLDER, "older", 0, HX_OPTION_TEXT, "D",
	 "purge: minimum time since an event was sent (default: 7d)", NULL},
	{HX_OUTBOX_QUERY, "query", 0, HX_OPTION_TEXT, "SQL",
	 "audit, rebuild: rows that must have events", NULL},
	{HX_OUTBOX_BY, "by", 0, HX_OPTION_CHOICE, "id|ordering_key|subject",
	 "audit: what the first column holds (default: id)", found_by},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

const char *hx_outbox_url(const struct hx_invocation *inv)
{
	const char *url = hx_options_text(&inv->options, HX_OUTBOX_DB);

	if (url == NULL)
		url = hx_environment("HAPAX_DB");
	if (url != NULL)
		return url;
	(void)hx_report_usage(inv->command->name, "missing option --db");
	hx_report_hint("use the database of the business data: "
		       "postgres://HOST/DATABASE or sqlite:FILE");
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
		hx_out_printf(out, "; %" PRIu64 " to be retried", status->retrying);
	hx_out_text(out, "\n");
	hx_out_field(out, "parked");
	hx_out_printf(out, "%" PRIu64, status->parked);
	if (status->parked > 0)
		hx_out_printf(
			out, ", of %" PRIu64 " ordering key%s; %" PRIu64 " wait behind them",
			status->parked_keys, hx_text_plural(status->parked_keys), status->waiting);
	hx_out_text(out, "\n");
	hx_out_line(out, "sent", "%" PRIu64, status->sent);
	hx_out_line(
		out, "relays", "%" PRIu64 ", holding %" PRIu64 " of 64 partitions", status->relays,
		status->partitions);
}

static int run_status(struct hx_invocation *inv)
{
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	int code;

	if (hx_options_has(&inv->options, HX_OUTBOX_PARKED))
		return hx_outbox_parked(inv);
	code = hx_outbox_open(inv, &outbox);
	if (code != HX_EXIT_OK)
		return code;
	if (hapax_outbox_status(outbox, &status, &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	else if (inv->settings.format == HX_FORMAT_JSON)
		status_json(&inv->out, &status);
	else
		status_text(&inv->out, &status);
	hapax_outbox_close(outbox);
	return code;
}

/* ------------------------------------------------------------------ actions */

/* Of every action, besides its own. */
#define DATABASE_EXITS                                                                 \
	{HX_EXIT_STORE, "the database or the broker is unavailable; nothing changed"}, \
	{                                                                              \
		HX_EXIT_IO, "I/O error, or the outcome is unknown"                     \
	}

static const struct command_exit done_exits[] = {
	{HX_EXIT_OK, "done"},
	DATABASE_EXITS,
	{0, NULL},
};

static const struct command_exit add_exits[] = {
	{HX_EXIT_OK, "the event was added"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	DATABASE_EXITS,
	{0, NULL},
};

static const struct command_exit relay_exits[] = {
	{HX_EXIT_OK, "stopped by TERM or INT, or empty with --until-empty"},
	{HX_EXIT_NO, "--until-empty: events are parked"},
	DATABASE_EXITS,
	{0, NULL},
};

static const struct command_exit event_exits[] = {
	{HX_EXIT_OK, "at least one event was changed"},
	{HX_EXIT_NO, "no event was changed"},
	DATABASE_EXITS,
	{0, NULL},
};

static const struct command_exit audit_exits[] = {
	{HX_EXIT_OK, "every row has an event"},
	{HX_EXIT_NO, "at least one row has no event"},
	DATABASE_EXITS,
	{0, NULL},
};

static const struct command_action actions[] = {
	{.name = "init",
	 .summary = "create or update the outbox table",
	 .usage = "--db URL [--preset NAME] [OPTION]...",
	 .description =
		 "Creates the table hapax_outbox next to the business data, or updates it; its rows\n"
		 "stay. In PostgreSQL, applications then call, in their transactions,\n"
		 "SELECT hapax_outbox_add_json(topic, payload, ordering_key, type), or\n"
		 "hapax_outbox_add() for any bytes. In C, and on SQLite: hapax_outbox_add().\n"
		 "\n"
		 "With --preset, a trigger turns each new row of an existing table into an event, in\n"
		 "the transaction that inserts it:\n"
		 "  debezium  outbox (id, aggregatetype, aggregateid, type, payload); the topic is\n"
		 "            outbox.event.AGGREGATETYPE, the ordering key is aggregateid\n"
		 "  events    outbox_events (id, queue_name, payload, status); status becomes\n"
		 "            'processed' when the event has been sent\n"
		 "--column FIELD=NAME sets the name of a column: FIELD is id, topic, key, type, payload\n"
		 "or status. prefix=TEXT, pending=WORD and processed=WORD set the values.\n",
	 .exits = done_exits,
	 .run = hx_outbox_init},
	{.name = "add",
	 .summary = "add one event manually and print its ID",
	 .usage = "--db URL --topic NAME [OPTION]... [FILE|-]",
	 .description =
		 "Adds one event. Its payload is FILE or standard input, at most 16 MiB. Applications\n"
		 "add their events in the transaction of the change instead.\n",
	 .operands = {0, 1},
	 .exits = add_exits,
	 .run = hx_outbox_add},
	{.name = "status",
	 .summary = "show pending, parked and sent events, and the relays",
	 .usage = "--db URL [--parked] [OPTION]...",
	 .description =
		 "An event is pending until a relay has published it; then it is sent. An event that\n"
		 "cannot be published is parked, and later events with its ordering key wait. --parked\n"
		 "lists parked events with the reason.\n",
	 .exits = done_exits,
	 .run = run_status},
	{.name = "relay",
	 .summary = "publish pending events until stopped",
	 .usage = "--db URL --to URL [OPTION]...",
	 .description =
		 "Publishes events in the order of their commits, per ordering key. An event that fails\n"
		 "is retried with backoff, then parked; only its own ordering key waits. During an\n"
		 "outage the relay waits. Any number of relays may run; one of them deletes events that\n"
		 "were sent longer than --retention ago. --to is one of\n"
		 "  amqp://user:password@host/vhost   the topic is the routing key for the exchange in\n"
		 "                    ?exchange=NAME, otherwise a queue; &declare=quorum creates\n"
		 "                    missing queues\n"
		 "  kafka://host[,host...][/topic]    librdkafka properties follow ?; 'man hapax'\n"
		 "                    lists them\n"
		 "  redis://host[/db][/stream]        ?maxlen=N trims streams\n"
		 "  http://host/path                  CloudEvents; the topic is appended to a path\n"
		 "                    that ends with /\n"
		 "Other users of this machine can see a password in --to. 'hapax serve' relays as well,\n"
		 "with the URLs in its configuration file (outbox:).\n",
	 .exits = relay_exits,
	 .run = hx_outbox_relay},
	{.name = "retry",
	 .summary = "publish parked events again",
	 .usage = "--db URL ID... | --ordering-key TEXT | --all",
	 .description =
		 "Makes parked events pending again, with all their attempts, and the events that\n"
		 "waited for them.\n",
	 .operands = {0, SIZE_MAX},
	 .exits = event_exits,
	 .run = hx_outbox_retry},
	{.name = "park",
	 .summary = "hold pending events back",
	 .usage = "--db URL ID...",
	 .description =
		 "Holds events back that have not been published, and the later events with their\n"
		 "ordering keys, until 'hapax outbox retry'. An event that a relay is publishing at\n"
		 "this moment may still be published.\n",
	 .operands = {1, SIZE_MAX},
	 .exits = event_exits,
	 .run = hx_outbox_park},
	{.name = "purge",
	 .summary = "delete events that were sent long ago",
	 .usage = "--db URL [--older D]",
	 .description =
		 "Deletes sent events, 1000 at a time with a pause in between. It can be stopped at any\n"
		 "time. 'hapax outbox audit' reports deleted events as missing.\n",
	 .exits = done_exits,
	 .run = hx_outbox_purge},
	{.name = "audit",
	 .summary = "list the rows of a query that have no event",
	 .usage = "--db URL --query SQL [--by COLUMN]",
	 .description =
		 "Prints the first column of each row of the query that is not the ID of an event (or,\n"
		 "with --by, its ordering key or subject). The query must not write. Events that were\n"
		 "purged count as missing.\n",
	 .exits = audit_exits,
	 .run = hx_outbox_audit},
	{.name = "rebuild",
	 .summary = "add the missing events for the rows of a query",
	 .usage = "--db URL --query SQL",
	 .description =
		 "Adds an event for each row of the query whose ID has none. The columns id, topic and\n"
		 "payload are required; ordering_key, type, source, subject and content_type are\n"
		 "optional.\n",
	 .exits = done_exits,
	 .run = hx_outbox_rebuild},
	{.name = NULL},
};

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "done"},
	{HX_EXIT_NO, "retry, park: no event was changed; audit: events are missing"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	DATABASE_EXITS,
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax outbox init --db sqlite:shop.db", "create the table next to the business data"},
	{"echo '{\"order\":17}' | hapax outbox add --db sqlite:shop.db -t orders --id order-17",
	 "add one event; applications add theirs in their own transactions"},
	{"hapax outbox status --db sqlite:shop.db", "count pending, parked and sent events"},
	{"hapax outbox park order-17 --db sqlite:shop.db", "hold one event back"},
	{"hapax outbox status --parked -o json --db sqlite:shop.db", "list parked events"},
	{"hapax outbox relay --until-empty --db sqlite:shop.db --to http://localhost:8080/in/",
	 "publish pending events, then exit; without --until-empty, continue"},
	{"hapax outbox audit --db sqlite:shop.db --query \"VALUES ('order-17'), ('order-18')\"",
	 "find orders without an event; use a SELECT from your own tables"},
	{"hapax outbox rebuild --db sqlite:shop.db --query \"SELECT 8 id,'t' topic,1 payload\"",
	 "add missing events; use a SELECT from your own tables"},
	{"hapax outbox retry --all --db sqlite:shop.db", "publish all parked events again"},
	{"hapax outbox purge --older 30d --db sqlite:shop.db", "keep sent events for 30 days"},
	{NULL, NULL},
};

const struct command hx_cmd_outbox = {
	.name = "outbox",
	.summary = "publish events that were committed with a database change",
	.usage = "ACTION --db URL [OPTION]...",
	.description =
		"An event is a row of the table hapax_outbox, inserted in the transaction of the change\n"
		"that it reports: both are committed, or neither is. A relay publishes rows, waits for\n"
		"the broker's confirmation, then marks them sent. A crash between these steps publishes\n"
		"the event again with the same ID, so that consumers can deduplicate it.\n",
	.options = options,
	.exits = exits,
	.examples = examples,
	.actions = actions,
};
