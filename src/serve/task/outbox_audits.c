/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/task/outbox_audits.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "observe/metrics/metrics.h"
#include "outbox/outbox.h"

enum {
	QUERY_MS_MAX = 10 * 60 * 1000, /* an old snapshot keeps a database from cleaning up */
	RETRY_MS_MAX = 60 * 1000,      /* after a failure, if `every` is longer */
};

/* One audit. */
struct audit {
	const struct hx_config_audit *config;
	int64_t due_ns;
	int64_t done_ns; /* of the last result; 0: none */
	struct hx_audit_facts facts;
	char trouble[sizeof(((struct hapax_error *)NULL)->message)]; /* as logged; "": none */
};

/* The audits of one configuration. */
struct audits_work {
	struct hx_background *background;
	const char *url;
	struct hx_event stop;
	struct hx_lock lock;
	struct audit *audits; /* facts and done_ns. Locks: lock */
	size_t count;
};

static bool is_wanted(const struct hx_background *background, const struct hx_config *config)
{
	(void)background;
	return config->outbox.url[0] != '\0' && config->outbox.audit_count > 0;
}

static enum hapax_status open_work(
	struct hx_background *background, const struct hx_config *config, void **ret_work,
	struct hapax_error *err)
{
	const struct hx_config_outbox *outbox = &config->outbox;
	struct audits_work *work = hx_alloc_zero(1, sizeof(*work));

	if (work != NULL)
		work->audits = hx_alloc_zero(outbox->audit_count, sizeof(*work->audits));
	if (work == NULL || work->audits == NULL) {
		hx_free(work);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for audits");
	}
	work->background = background;
	work->url = outbox->url;
	work->count = outbox->audit_count;
	hx_event_init(&work->stop);
	hx_lock_init(&work->lock);
	for (size_t i = 0; i < work->count; i++) {
		struct audit *audit = &work->audits[i];

		audit->config = &outbox->audits[i];
		(void)snprintf(
			audit->facts.name, sizeof(audit->facts.name), "%s", audit->config->name);
	}
	*ret_work = work;
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ one run */

/* The first result is news, and so is a change between missing and complete. */
static void note_result(
	struct audits_work *work, struct audit *audit, const struct hx_outbox_audit *result)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("audit", audit->facts.name),
		HX_LOGGER_UNSIGNED("checked", result->checked),
		HX_LOGGER_UNSIGNED("missing", result->missing),
		HX_LOGGER_KEY("example", hapax_bytes_from_text(result->example)),
	};
	bool is_news = audit->done_ns == 0 || audit->trouble[0] != '\0' ||
		(audit->facts.missing > 0) != (result->missing > 0);

	if (is_news && result->missing > 0)
		hx_background_say(
			work->background, HX_LOGGER_ERROR, "outbox audit: events are missing",
			fields, 4);
	else if (is_news)
		hx_background_say(
			work->background, HX_LOGGER_INFO, "outbox audit: no event is missing",
			fields, 2);
	audit->trouble[0] = '\0';
	hx_lock_acquire(&work->lock);
	audit->facts.checked = result->checked;
	audit->facts.missing = result->missing;
	audit->done_ns = hx_clock_mono_ns();
	hx_lock_release(&work->lock);
}

/* A repeated reason is not logged. The last result stays, and grows old. */
static void note_failure(
	struct audits_work *work, struct audit *audit, const struct hapax_error *err)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("audit", audit->facts.name),
		HX_LOGGER_TEXT("error", err->message),
	};

	if (strcmp(audit->trouble, err->message) != 0)
		hx_background_say(
			work->background, HX_LOGGER_WARN, "outbox audit failed", fields, 2);
	(void)snprintf(audit->trouble, sizeof(audit->trouble), "%s", err->message);
	hx_lock_acquire(&work->lock);
	audit->facts.failures++;
	hx_lock_release(&work->lock);
}

static void run_audit(struct audits_work *work, struct audit *audit)
{
	static const char *const columns[] = {
		[HX_AUDIT_BY_ID] = "id",
		[HX_AUDIT_BY_ORDERING_KEY] = "ordering_key",
		[HX_AUDIT_BY_SUBJECT] = "subject",
	};
	int64_t every_ms = audit->config->every_ms;
	struct hx_outbox_audit result = {
		.query = audit->config->query,
		.by = columns[audit->config->by],
		.timeout_ms = QUERY_MS_MAX,
		.stop = &work->stop,
	};
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	enum hapax_status status = hapax_outbox_open(work->url, &outbox, &err);

	if (status == HAPAX_OK)
		status = hx_outbox_audit_run(outbox, &result, &err);
	hapax_outbox_close(outbox);
	if (hx_event_is_set(&work->stop))
		return;
	if (status == HAPAX_OK)
		note_result(work, audit, &result);
	else
		note_failure(work, audit, &err);
	if (status != HAPAX_OK && every_ms > RETRY_MS_MAX)
		every_ms = RETRY_MS_MAX;
	audit->due_ns = hx_clock_mono_ns() + every_ms * HX_NS_PER_MS;
}

/* ------------------------------------------------------------------ the task */

static struct audit *next_of(struct audits_work *work)
{
	struct audit *next = &work->audits[0];

	for (size_t i = 1; i < work->count; i++)
		if (work->audits[i].due_ns < next->due_ns)
			next = &work->audits[i];
	return next;
}

static enum hapax_status run_work(void *context, struct hapax_error *err)
{
	struct audits_work *work = context;
	struct audit *next = next_of(work);

	(void)err;
	hx_background_trouble(work->background, NULL);
	while (!hx_event_wait_until_ns(&work->stop, next->due_ns)) {
		run_audit(work, next);
		next = next_of(work);
	}
	return HAPAX_OK;
}

static void stop_work(void *context)
{
	struct audits_work *work = context;

	hx_event_set(&work->stop);
}

static void close_work(void *context)
{
	struct audits_work *work = context;

	hx_free(work->audits);
	hx_free(work);
}

const struct hx_background_ops hx_outbox_audits_ops = {
	.name = "audits",
	.section = "outbox",
	.is_wanted = is_wanted,
	.open = open_work,
	.run = run_work,
	.stop = stop_work,
	.close = close_work,
};

/* ------------------------------------------------------------------ facts */

struct listing {
	struct hx_audit_facts *facts;
	size_t count;
};

static void look(struct hx_background *background, void *context, void *target)
{
	struct audits_work *work = context;
	struct listing *listing = target;
	int64_t now_ns = hx_clock_mono_ns();

	(void)background;
	if (work == NULL)
		return;
	listing->facts = hx_alloc_zero(work->count, sizeof(*listing->facts));
	if (listing->facts == NULL)
		return;
	listing->count = work->count;
	hx_lock_acquire(&work->lock);
	for (size_t i = 0; i < work->count; i++) {
		const struct audit *audit = &work->audits[i];

		listing->facts[i] = audit->facts;
		listing->facts[i].age_ms =
			audit->done_ns == 0 ? -1 : (now_ns - audit->done_ns) / HX_NS_PER_MS;
	}
	hx_lock_release(&work->lock);
}

struct hx_audit_facts *hx_outbox_audits_facts(struct hx_outbox_audits *audits, size_t *ret_count)
{
	struct listing listing = {NULL, 0};

	(void)hx_background_visit(&audits->background, look, &listing);
	*ret_count = listing.count;
	return listing.facts;
}
