/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_consume.c - hapax consume: pass each message of a broker to a handler, once.
 *
 * The consumer runs on its own thread. This one waits for signals, prints figures from time to
 * time, and asks the consumer to stop.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/thread.h"
#include "cli/consume/cmd_consume.h"
#include "cli/consume/consume_out.h"
#include "cli/frame/command.h"
#include "cli/input/duration_text.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"
#include "net/http/http_url.h"
#include "net/reactor.h"
#include "net/signals.h"
#include "wire/date.h"

enum {
	OPTION_FROM = HX_CONSUME_FROM,
	OPTION_TO,
	OPTION_EXEC,
	OPTION_FORM,
	OPTION_STRATEGY,
	OPTION_ALSO,
	OPTION_ALSO_UNTIL,
	OPTION_INCLUDE,
	OPTION_EXCLUDE,
	OPTION_ON_MISSING,
	OPTION_TENANT_FROM,
	OPTION_GROUP_FROM,
	OPTION_PARALLEL,
	OPTION_PREFETCH,
	OPTION_ORDER,
	OPTION_ATTEMPTS,
	OPTION_BACKOFF,
	OPTION_BACKOFF_MAX,
	OPTION_DEAD_LETTER,
	OPTION_ON_DUPLICATE,
	OPTION_DIVERT,
	OPTION_LEASE,
	OPTION_TIMEOUT,
	OPTION_ON_LAPSE,
	OPTION_DRAIN,
	OPTION_IDLE,
	OPTION_PROGRESS,
	OPTION_VERBOSE,
};

static const char *const form_choices[] = {"binary", "structured", NULL};
static const char *const order_choices[] = {"key", "partition", "none", NULL};
static const char *const missing_choices[] = {"reject", "pass", "content", NULL};
static const char *const duplicate_choices[] = {"drop", "divert", "tag", NULL};
static const char *const lapse_choices[] = {"retry", "park", NULL};

static const struct hx_option options[] = {
	{OPTION_FROM, "from", 0, HX_OPTION_TEXT, "URL",
	 "consume, rebuild: source of messages; see above", NULL},
	{OPTION_TO, "to", 0, HX_OPTION_TEXT, "URL",
	 "POST each message as a CloudEvent to this service", NULL},
	{OPTION_EXEC, "exec", 0, HX_OPTION_TEXT, "CMD",
	 "run CMD with sh -c per message, data on standard input", NULL},
	{OPTION_FORM, "form", 0, HX_OPTION_CHOICE, "binary|structured",
	 "form of the CloudEvent (default: binary)", form_choices},
	{OPTION_STRATEGY, "strategy", 's', HX_OPTION_TEXT, "S",
	 "key strategy; see 'hapax help key'", NULL},
	{OPTION_ALSO, "strategy-also", 0, HX_OPTION_TEXT, "S",
	 "while the strategy changes: the old one", NULL},
	{OPTION_ALSO_UNTIL, "strategy-also-until", 0, HX_OPTION_TEXT, "TIME",
	 "when the old strategy ends: at least a TTL from now", NULL},
	{OPTION_INCLUDE, "include", 0, HX_OPTION_TEXT, "PATH",
	 "content: hash only PATH; may be repeated", NULL},
	{OPTION_EXCLUDE, "exclude", 0, HX_OPTION_TEXT, "PATH",
	 "ignore PATH in the payload; may be repeated", NULL},
	{OPTION_ON_MISSING, "on-missing", 0, HX_OPTION_CHOICE, "reject|pass|content",
	 "what to do with a message without a key (default: reject)", missing_choices},
	{OPTION_TENANT_FROM, "tenant-from", 0, HX_OPTION_TEXT, "PATH",
	 "take the tenant from PATH of the message", NULL},
	{OPTION_GROUP_FROM, "group-from", 0, HX_OPTION_TEXT, "PATH",
	 "take the group from PATH of the message", NULL},
	{OPTION_PARALLEL, "parallel", 0, HX_OPTION_COUNT, "N",
	 "maximum runs in progress (default: 16)", NULL},
	{OPTION_PREFETCH, "prefetch", 0, HX_OPTION_COUNT, "N",
	 "maximum messages in memory (default: 256)", NULL},
	{OPTION_ORDER, "order", 0, HX_OPTION_CHOICE, "key|partition|none",
	 "which messages run in order (default: key)", order_choices},
	{OPTION_ATTEMPTS, "attempts", 0, HX_OPTION_COUNT, "N",
	 "failed runs before the message becomes a dead letter\n(default: 10)", NULL},
	{OPTION_BACKOFF, "backoff", 0, HX_OPTION_TEXT, "D",
	 "pause after the first failure; doubles (default: 200ms)", NULL},
	{OPTION_BACKOFF_MAX, "backoff-max", 0, HX_OPTION_TEXT, "D", "maximum pause (default: 1m)",
	 NULL},
	{OPTION_DEAD_LETTER, "dead-letter", 0, HX_OPTION_TEXT, "NAME",
	 "topic for dead letters, or off (default: TOPIC.dead)", NULL},
	{OPTION_ON_DUPLICATE, "on-duplicate", 0, HX_OPTION_CHOICE, "drop|divert|tag",
	 "what to do with duplicates (default: drop)", duplicate_choices},
	{OPTION_DIVERT, "divert", 0, HX_OPTION_TEXT, "NAME",
	 "topic for diverted duplicates (default: TOPIC.duplicate)", NULL},
	{OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "how long others wait if this one dies (default: 30s)", NULL},
	{OPTION_TIMEOUT, "timeout", 0, HX_OPTION_TEXT, "D",
	 "maximum time of one run (default: 15m)", NULL},
	{OPTION_ON_LAPSE, "on-lapse", 0, HX_OPTION_CHOICE, "retry|park",
	 "after an unknown outcome, run again or park (default: retry)", lapse_choices},
	{OPTION_DRAIN, "drain", 0, HX_OPTION_TEXT, "D",
	 "how long TERM waits for runs in progress (default: 30s)", NULL},
	{OPTION_IDLE, "idle-exit", 0, HX_OPTION_TEXT, "D", "exit when no message has arrived for D",
	 NULL},
	{OPTION_PROGRESS, "progress", 0, HX_OPTION_TEXT, "D",
	 "-o json: print statistics every D (default: 10s)", NULL},
	{OPTION_VERBOSE, "verbose", 'v', HX_OPTION_FLAG, NULL, "report each message and its key",
	 NULL},
	{HX_CONSUME_REASON, "reason", 0, HX_OPTION_TEXT, "TEXT", "pause: why, for other people",
	 NULL},
	{HX_CONSUME_MATCH, "match", 0, HX_OPTION_TEXT, "TEXT",
	 "dead-letters, retry: only those with TEXT in reason, error,\nkey or place", NULL},
	{HX_CONSUME_ALL, "all", 0, HX_OPTION_FLAG, NULL, "retry: all dead letters", NULL},
	{HX_CONSUME_LIMIT, "limit", 'n', HX_OPTION_COUNT, "N",
	 "dead-letters: maximum number, up to 1000 (default: 100)", NULL},
	{HX_CONSUME_FROM_TIME, "from-time", 0, HX_OPTION_TEXT, "TIME",
	 "rebuild: read from this time on (RFC 3339; default: all)", NULL},
	{HX_CONSUME_YES, "yes", 0, HX_OPTION_FLAG, NULL, "rebuild: do not ask", NULL},
	{HX_CONSUME_SHARED_SCOPE, "shared-scope", 0, HX_OPTION_FLAG, NULL,
	 "rebuild: forget the scope also if others use it", NULL},
	{HX_CONSUME_EMPTY_SCOPE, "empty-scope", 0, HX_OPTION_FLAG, NULL,
	 "rebuild: start over also if the scope has no keys", NULL},
	{0, NULL, 0, HX_OPTION_FLAG, NULL, NULL, NULL},
};

/* A day: a longer wait is a mistake. */
static const int64_t span_ms_max = INT64_C(24) * 3600 * 1000;

enum { PATHS_MAX = 64, TICK_MS = 100, FROM_SIZE = 512 };

/* ------------------------------------------------------------------ options */

struct consume {
	struct hx_invocation *inv;
	struct hapax_consumer_options options;
	struct hapax_key_options key_options;
	const char *include[PATHS_MAX];
	const char *exclude[PATHS_MAX];
	const char *argv[4];
	char from[FROM_SIZE]; /* the URL without its secrets */
	char tenant[HAPAX_SCOPE_SIZE_MAX + 1];
	char group[HAPAX_SCOPE_SIZE_MAX + 1];
	int64_t idle_ms; /* 0: no idle limit */
	int64_t progress_ms;
	struct consume_out out;

	struct hapax_store *store;
	struct hapax_consumer *consumer;
	struct hx_thread thread;
	enum hapax_status status;
	struct hapax_error err;

	struct hx_reactor reactor;
	struct hx_signals signals;
	struct hx_timer timer;
	struct hx_task ended;
	int asked;          /* the signal that asked us to stop, or 0 */
	bool is_idle;       /* it stops because no message arrived */
	int64_t changed_ns; /* when something last happened */
	uint64_t seen;      /* messages counted by then */
	int64_t progressed_ns;
};

static const char *text_of(const struct consume *consume, int id)
{
	return hx_options_text(&consume->inv->options, id);
}

static int64_t number_of(const struct consume *consume, int id)
{
	return hx_options_number(&consume->inv->options, id);
}

static int read_spans(struct consume *consume)
{
	struct hapax_consumer_options *to = &consume->options;
	const struct {
		int id;
		int64_t *ret_ms;
	} spans[] = {
		{OPTION_BACKOFF, &to->backoff_ms},
		{OPTION_BACKOFF_MAX, &to->backoff_ms_max},
		{OPTION_LEASE, &to->run.lease_ms},
		{OPTION_TIMEOUT, &to->run.max_run_ms},
		{OPTION_DRAIN, &to->drain_ms},
		{OPTION_IDLE, &consume->idle_ms},
		{OPTION_PROGRESS, &consume->progress_ms},
	};
	int code = HX_EXIT_OK;

	consume->progress_ms = 10 * 1000;
	for (size_t i = 0; i < HX_COUNT(spans) && code == HX_EXIT_OK; i++)
		code = hx_duration_text_read(
			consume->inv, spans[i].id, span_ms_max, spans[i].ret_ms);
	return code;
}

static int read_paths(const struct consume *consume, int id, const char **paths, size_t *ret_count)
{
	*ret_count = hx_options_all(&consume->inv->options, id, paths, PATHS_MAX);
	if (*ret_count <= PATHS_MAX)
		return HX_EXIT_OK;
	return hx_report_usage(
		consume->inv->command->name, "too many paths: the limit is %d", PATHS_MAX);
}

/* An old strategy without an end would double the claims forever. */
static int read_also(struct consume *consume, struct hapax_key_options *to)
{
	const char *command = consume->inv->command->name;
	const char *until = text_of(consume, OPTION_ALSO_UNTIL);

	to->also = text_of(consume, OPTION_ALSO);
	if ((to->also != NULL) != (until != NULL) ||
	    (to->also != NULL && consume->options.strategy == NULL))
		return hx_report_usage(
			command,
			"--strategy-also needs --strategy and --strategy-also-until, and the other "
			"way round");
	if (until != NULL && !hx_date_parse(hapax_bytes_from_text(until), &to->also_until_ms))
		return hx_report_misuse(
			command, "use RFC 3339, as in 2027-01-31T00:00:00Z",
			"--strategy-also-until: invalid time '%s'", until);
	return HX_EXIT_OK;
}

static int read_key(struct consume *consume)
{
	const struct hx_settings *settings = &consume->inv->settings;
	struct hapax_key_options *to = &consume->key_options;
	struct hapax_key_strategy *strategy;
	struct hapax_error err;
	int code = read_paths(consume, OPTION_INCLUDE, consume->include, &to->include_count);

	if (code == HX_EXIT_OK)
		code = read_paths(consume, OPTION_EXCLUDE, consume->exclude, &to->exclude_count);
	to->include = consume->include;
	to->exclude = consume->exclude;
	to->on_missing = (enum hapax_on_missing)number_of(consume, OPTION_ON_MISSING);
	to->tenant_from = text_of(consume, OPTION_TENANT_FROM);
	to->group_from = text_of(consume, OPTION_GROUP_FROM);
	if (settings->scope_given) {
		memcpy(consume->tenant, settings->tenant.data, settings->tenant.size);
		memcpy(consume->group, settings->group.data, settings->group.size);
		to->tenant = consume->tenant;
		to->group = consume->group;
	}
	consume->options.strategy = text_of(consume, OPTION_STRATEGY);
	consume->options.key_options = to;
	if (code == HX_EXIT_OK)
		code = read_also(consume, to);
	if (code != HX_EXIT_OK || consume->options.strategy == NULL)
		return code;
	/* Check the strategy before a store is opened. */
	if (hapax_key_strategy_new(consume->options.strategy, to, &strategy, &err) != HAPAX_OK)
		return hx_report_usage(consume->inv->command->name, "%s", err.message);
	hapax_key_strategy_free(strategy);
	return HX_EXIT_OK;
}

static int read_options(struct consume *consume)
{
	struct hapax_consumer_options *to = &consume->options;
	const char *name = consume->inv->command->name;
	const char *exec = text_of(consume, OPTION_EXEC);
	char why[HX_HTTP_URL_WHY_SIZE];
	struct hx_http_url url;
	int code;

	if (text_of(consume, OPTION_FROM) == NULL)
		return hx_report_misuse(
			name, "'hapax help consume' lists the forms of a source URL",
			"missing option --from");
	to->to = text_of(consume, OPTION_TO);
	if ((to->to != NULL) == (exec != NULL))
		return hx_report_usage(name, "exactly one of --to URL and --exec CMD is required");
	if (to->to != NULL && !hx_http_url_parse(to->to, &url, why))
		return hx_report_usage(name, "--to: invalid URL: it %s", why);
	if (exec != NULL) {
		consume->argv[0] = "sh";
		consume->argv[1] = "-c";
		consume->argv[2] = exec;
		to->exec = consume->argv;
	}
	to->form = (enum hapax_event_form)number_of(consume, OPTION_FORM);
	to->parallel = (size_t)number_of(consume, OPTION_PARALLEL);
	to->prefetch = (size_t)number_of(consume, OPTION_PREFETCH);
	to->order = (enum hapax_order)number_of(consume, OPTION_ORDER);
	if (number_of(consume, OPTION_ATTEMPTS) > UINT32_MAX)
		return hx_report_usage(name, "--attempts must be at most 4294967295");
	to->attempts_max = (uint32_t)number_of(consume, OPTION_ATTEMPTS);
	to->dead_letter = text_of(consume, OPTION_DEAD_LETTER);
	to->on_duplicate = (enum hapax_on_duplicate)number_of(consume, OPTION_ON_DUPLICATE);
	to->divert = text_of(consume, OPTION_DIVERT);
	to->run.on_lapse = (enum hapax_on_lapse)number_of(consume, OPTION_ON_LAPSE);
	to->run.ttl_ms = consume->inv->settings.ttl_ms;
	to->run.result_size_max = consume->inv->settings.result_size_max;
	to->told = hx_consume_out_told;
	to->told_context = &consume->out;
	code = read_spans(consume);
	return code == HX_EXIT_OK ? read_key(consume) : code;
}

static void run_consumer(void *arg)
{
	struct consume *consume = arg;

	consume->status = hapax_consumer_run(consume->consumer, &consume->err);
	hx_reactor_post(&consume->reactor, &consume->ended);
}

static void on_ended(struct hx_task *task)
{
	struct consume *consume = task->context;

	hx_reactor_stop(&consume->reactor);
}

static void on_signal(struct hx_signals *signals, int number)
{
	struct consume *consume = signals->context;

	/* A second signal waits for nothing: runs in progress are left to their leases. */
	if (consume->asked != 0)
		_Exit(HX_EXIT_SIGNAL + number);
	consume->asked = number;
	hapax_consumer_stop(consume->consumer);
}

static void on_timer(struct hx_timer *timer)
{
	struct consume *consume = timer->context;
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;
	int64_t now_ns = hx_reactor_now_ns(&consume->reactor);

	hapax_consumer_stats(consume->consumer, &stats);
	if (stats.received != consume->seen || stats.in_hand > 0) {
		consume->seen = stats.received;
		consume->changed_ns = now_ns;
	}
	if (consume->idle_ms > 0 &&
	    now_ns - consume->changed_ns >= consume->idle_ms * HX_NS_PER_MS) {
		consume->is_idle = true;
		hapax_consumer_stop(consume->consumer);
	}
	if (now_ns - consume->progressed_ns >= consume->progress_ms * HX_NS_PER_MS) {
		consume->progressed_ns = now_ns;
		hx_consume_out_progress(&consume->out, &stats);
	}
	hx_timer_set(&consume->reactor.timers, timer, now_ns + TICK_MS * HX_NS_PER_MS);
}

static int open_all(struct consume *consume)
{
	static const int wanted[] = {SIGTERM, SIGINT, 0};
	const char *name = consume->inv->command->name;
	struct hapax_source *source = NULL;
	struct hapax_error err;
	int code;

	/* Before any thread starts: signals must be blocked in all of them. */
	if (hx_signals_open(
		    &consume->signals, &consume->reactor, wanted, on_signal, consume, &err) !=
		    HAPAX_OK ||
	    hx_timer_introduce(&consume->reactor.timers, &consume->timer, on_timer, consume) !=
		    HAPAX_OK)
		return hx_report_error(name, &err);
	if (hapax_source_open(text_of(consume, OPTION_FROM), &source, &err) != HAPAX_OK)
		return err.status == HAPAX_ERR_NO_MEMORY
			? hx_report_error(name, &err)
			: hx_report_usage(name, "--from: %s", err.message);
	(void)snprintf(consume->from, sizeof(consume->from), "%s", hapax_source_url(source));
	code = hx_settings_open(consume->inv, HX_OPEN_SERVICE, &consume->store);
	if (code == HX_EXIT_OK &&
	    hapax_consumer_new(
		    source, consume->store, &consume->options, &consume->consumer, &err) !=
		    HAPAX_OK)
		code = err.status == HAPAX_ERR_INVALID ? hx_report_usage(name, "%s", err.message)
						       : hx_report_error(name, &err);
	if (code != HX_EXIT_OK)
		hapax_source_close(source);
	consume->out.from = consume->from;
	consume->out.store = consume->store == NULL ? "" : hapax_store_url(consume->store);
	return code;
}

/* An empty source is fine, an unreachable one is not: a job that stops when idle would hide it. */
static bool has_begun(struct consume *consume, const struct hapax_consumer_stats *stats)
{
	if (!consume->is_idle || stats->received > 0 || stats->rebalances > 0 || stats->lag >= 0 ||
	    stats->failures == 0)
		return true;
	hx_report(consume->inv->command->name, "could not reach the broker within --idle-exit");
	hx_report_hint(
		"check that it is running and that this host can connect to "
		"it: %s",
		consume->from);
	return false;
}

/* It stopped at a message without a key, which is in the queue again. */
static int report_no_key(const struct consume *consume)
{
	const char *strategy = consume->out.strategy;
	bool is_content = strcmp(strategy, "content") == 0;

	hx_report(consume->inv->command->name, "%s", consume->err.message);
	hx_report_hint(
		"set '--strategy %s'%s, or let the producer set message_id; the message is in "
		"the queue again",
		strategy,
		is_content ? "" : " if it differs for each message, or '--strategy content'");
	return HX_EXIT_DATA;
}

static int work(struct consume *consume)
{
	const char *name = consume->inv->command->name;
	struct hapax_consumer_stats stats = HAPAX_CONSUMER_STATS_INIT;
	struct hapax_error err;

	consume->ended.fn = on_ended;
	consume->ended.context = consume;
	if (hx_thread_start(&consume->thread, run_consumer, consume, "hapax-consumer", &err) !=
	    HAPAX_OK)
		return hx_report_error(name, &err);
	consume->changed_ns = hx_reactor_now_ns(&consume->reactor);
	consume->progressed_ns = consume->changed_ns;
	hx_timer_set(&consume->reactor.timers, &consume->timer, consume->changed_ns);
	hx_reactor_run(&consume->reactor);
	hx_thread_join(&consume->thread);
	hapax_consumer_stats(consume->consumer, &stats);
	hx_consume_out_end(&consume->out, &stats);
	if (consume->out.strategy[0] != '\0')
		return report_no_key(consume);
	if (consume->status != HAPAX_OK && consume->status != HAPAX_ERR_LIMIT)
		return hx_report_error(name, &consume->err);
	if (consume->status == HAPAX_ERR_LIMIT)
		hx_report(name, "note: %s", consume->err.message);
	return has_begun(consume, &stats) ? HX_EXIT_OK : HX_EXIT_STORE;
}

static int run_consume(struct hx_invocation *inv)
{
	struct consume *consume = hx_alloc_zero(1, sizeof(*consume));
	struct hapax_error err;
	int code;

	if (consume == NULL)
		return hx_report_no_memory(inv->command->name);
	consume->inv = inv;
	consume->options = (struct hapax_consumer_options)HAPAX_CONSUMER_OPTIONS_INIT;
	consume->key_options = (struct hapax_key_options)HAPAX_KEY_OPTIONS_INIT;
	consume->out.inv = inv;
	consume->out.is_verbose = hx_options_has(&inv->options, OPTION_VERBOSE);
	hx_mutex_init(&consume->out.mutex);
	code = read_options(consume);
	if (code == HX_EXIT_OK) {
		hx_interrupt_ignore_writes();
		if (hx_reactor_init(&consume->reactor, hx_net_system(), &err) != HAPAX_OK) {
			code = hx_report_error(inv->command->name, &err);
		} else {
			code = open_all(consume);
			if (code == HX_EXIT_OK)
				code = work(consume);
			hapax_consumer_free(consume->consumer);
			hapax_store_close(consume->store);
			hx_timer_retire(&consume->reactor.timers, &consume->timer);
			hx_signals_close(&consume->signals);
			hx_reactor_done(&consume->reactor);
		}
	}
	hx_mutex_done(&consume->out.mutex);
	hx_free(consume);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "stopped by TERM, INT or --idle-exit"},
	{HX_EXIT_DATA, "a message has no key; set --strategy"},
	{HX_EXIT_STORE, "could not reach the broker or the store"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax consume --from kafka://localhost/orders --to http://localhost:3000/orders",
	 "pass each order to a service once"},
	{"hapax consume --from 'kafka://localhost/orders?group=mail' --exec './send-mail'",
	 "run a command per message: data on stdin, HAPAX_KEY in its environment"},
	{"hapax consume --from amqp://localhost/orders --to http://localhost:3000/orders",
	 "consume a RabbitMQ queue"},
	{"hapax consume --from 'redis://localhost/orders?group=shop' --exec ./ship",
	 "consume a Redis stream"},
	{"hapax consume --from kafka://localhost/t --strategy field:data.order_id --exec cat",
	 "use a field of the payload as the key"},
	{"hapax consume list --server http://localhost:8099", "list the consumers of a daemon"},
	{"hapax consume pause orders --server http://localhost:8099 --reason 'deploy'",
	 "stop one for a while"},
	{"hapax consume resume orders --server http://localhost:8099", "let it continue"},
	{"hapax consume dead-letters orders --server http://localhost:8099",
	 "show what failed, and why"},
	{"hapax consume retry orders --match timeout --server http://localhost:8099",
	 "send those that failed with a timeout again"},
	{"hapax consume rebuild orders --yes --server http://localhost:8099",
	 "let a disabled consumer start over"},
	{NULL, NULL},
};

const struct command hx_cmd_consume = {
	.name = "consume",
	.summary = "process each message of a queue, topic or stream once",
	.usage = "--from URL (--to URL | --exec CMD) [OPTION]...",
	.description =
		"Passes each message to a handler: a service (--to) or a command (--exec). Acknowledges\n"
		"the message after its result is stored. A message that is delivered again within the\n"
		"TTL, after a crash, rebalance or offset reset, does not run again once it is done.\n"
		"\n"
		"The handler's answer decides:\n"
		"  2xx, exit status 0        done\n"
		"  5xx, 3xx, 401, 403, 404, 408, 409, 421, 425, 429, other exit status, no connection\n"
		"                            failed: retry with backoff; dead letter after --attempts\n"
		"  other 4xx                 failed permanently: store the answer; dead letter at once\n"
		"A message whose key is parked, mismatched or missing becomes a dead letter at once.\n"
		"Sources: kafka://HOST[:PORT]/TOPIC[,TOPIC]?group=G, amqp://HOST/[VHOST/]QUEUE,\n"
		"redis://HOST/STREAM?group=G; credentials go before HOST, as user:password@.\n"
		"\n"
		"Without --strategy, the key of a CloudEvent is its source and ID. The key of any other\n"
		"message is the first of the headers Idempotency-Key, Nats-Msg-Id, x-deduplication-header,\n"
		"message-id, eventId and id, or else its offset. The offset detects redeliveries, but not\n"
		"messages that a producer sent twice. RabbitMQ messages have no offset: at the first one\n"
		"without such a header hapax stops before it is acknowledged, and names a --strategy\n"
		"that fits.\n"
		"\n"
		"Options in a Kafka URL: group=G (default: hapax), start=latest for a new group,\n"
		"instance=NAME for a static member, warm_up=10m for a lost store, held_max=BYTES for the\n"
		"messages in memory, and librdkafka properties such as security.protocol=SSL; 'man hapax'\n"
		"lists them. A topic that starts with ^ is a pattern.\n"
		"\n"
		"TERM finishes the runs in progress and returns the other messages; a second TERM exits\n"
		"at once. 'consumers' in the configuration of 'hapax serve' do the same.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_consume,
	.actions = hx_consume_actions,
};
