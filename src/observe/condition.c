/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.c - the table of conditions.
 */
#include "observe/condition.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "observe/logger/logger.h"

const struct hx_condition_kind hx_condition_kinds[HX_CONDITION_COUNT] = {
	[HX_CONDITION_STORE_DOWN] = {"store_down", "store", HX_SEVERITY_CRITICAL},
	[HX_CONDITION_STORE_SLOW] = {"store_slow", "store", HX_SEVERITY_WARNING},
	[HX_CONDITION_DISK_FULL] = {"disk_full", "disk", HX_SEVERITY_CRITICAL},
	[HX_CONDITION_LIMIT_REACHED] = {"limit_reached", "limits", HX_SEVERITY_WARNING},
	[HX_CONDITION_JOURNAL_IN_USE] = {"journal_in_use", "store", HX_SEVERITY_WARNING},
	[HX_CONDITION_JOURNAL_FAILED] = {"journal_failed", "journal", HX_SEVERITY_WARNING},
	[HX_CONDITION_CLOCK_SKEW] = {"clock_skew", "clock", HX_SEVERITY_WARNING},
	[HX_CONDITION_CLOCK_FROZEN] = {"clock_frozen", "clock", HX_SEVERITY_WARNING},
	[HX_CONDITION_CLOCK_UNSYNCED] = {"clock_unsynchronized", "clock", HX_SEVERITY_INFO},
	[HX_CONDITION_UPSTREAM_DOWN] = {"upstream_down", "upstreams", HX_SEVERITY_WARNING},
	[HX_CONDITION_UPSTREAM_SLOW] = {"upstream_slow", "upstreams", HX_SEVERITY_WARNING},
	[HX_CONDITION_CERT_EXPIRED] = {"certificate_expired", "certificates", HX_SEVERITY_CRITICAL},
	[HX_CONDITION_CERT_EXPIRING] =
		{"certificate_expiring", "certificates", HX_SEVERITY_WARNING},
	[HX_CONDITION_BROKER_AWAY] = {"broker_away", "consumers", HX_SEVERITY_WARNING},
	[HX_CONDITION_CONSUMER_PAUSED] = {"consumer_paused", "consumers", HX_SEVERITY_WARNING},
	[HX_CONDITION_OUTBOX_PAUSED] = {"outbox_paused", "outbox", HX_SEVERITY_WARNING},
	[HX_CONDITION_OUTBOX_INCOMPLETE] = {"outbox_incomplete", "outbox", HX_SEVERITY_WARNING},
	[HX_CONDITION_RELOAD_REFUSED] = {"reload_refused", "config", HX_SEVERITY_WARNING},
	[HX_CONDITION_DESCRIPTORS_SHORT] =
		{"descriptors_short", "descriptors", HX_SEVERITY_WARNING},
};

const char *const hx_severity_names[] = {
	[HX_SEVERITY_INFO] = "info",
	[HX_SEVERITY_WARNING] = "warning",
	[HX_SEVERITY_CRITICAL] = "critical",
};

void hx_conditions_init(
	struct hx_conditions *conditions, struct hx_logger *log, const struct hapax_clock *clock)
{
	conditions->log = log;
	conditions->clock = clock != NULL ? clock : hapax_clock_system();
	hx_lock_init(&conditions->lock);
}

static int64_t boot_ms(const struct hx_conditions *conditions)
{
	return conditions->clock->boot_ms(conditions->clock->context);
}

/* Locks: lock held. */
static struct hx_condition_row *find(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject)
{
	for (size_t i = 0; i < conditions->count; i++) {
		struct hx_condition_row *row = &conditions->rows[i];

		/* A subject that was cut is compared as it was cut. */
		if (row->condition == condition &&
		    strncmp(row->subject, subject, sizeof(row->subject) - 1) == 0)
			return row;
	}
	return NULL;
}

static void say_begun(const struct hx_conditions *conditions, const struct hx_condition_row *row)
{
	static const enum hx_logger_level levels[] = {
		[HX_SEVERITY_INFO] = HX_LOGGER_INFO,
		[HX_SEVERITY_WARNING] = HX_LOGGER_WARN,
		[HX_SEVERITY_CRITICAL] = HX_LOGGER_ERROR,
	};
	const struct hx_condition_kind *kind = &hx_condition_kinds[row->condition];
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("condition", kind->name),
		HX_LOGGER_TEXT(row->subject[0] == '\0' ? NULL : "subject", row->subject),
		HX_LOGGER_TEXT("severity", hx_severity_names[kind->severity]),
		HX_LOGGER_TEXT("reason", row->reason),
	};

	hx_logger_always(
		conditions->log, levels[kind->severity], "condition began", fields,
		HX_COUNT(fields));
}

static void say_ended(const struct hx_conditions *conditions, const struct hx_condition_row *row)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("condition", hx_condition_kinds[row->condition].name),
		HX_LOGGER_TEXT(row->subject[0] == '\0' ? NULL : "subject", row->subject),
		HX_LOGGER_DURATION("lasted", row->ended_ms - row->began_ms),
		HX_LOGGER_UNSIGNED(row->times == 1 ? NULL : "times", row->times),
	};

	hx_logger_always(
		conditions->log, HX_LOGGER_INFO, "condition ended", fields, HX_COUNT(fields));
}

/* Locks: lock held. */
static struct hx_condition_row *add(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject)
{
	const struct hapax_clock *clock = conditions->clock;
	struct hx_condition_row *row;

	if (conditions->count == HX_CONDITIONS_MAX) {
		conditions->left_off++;
		return NULL;
	}
	row = &conditions->rows[conditions->count++];
	*row = (struct hx_condition_row){
		.condition = condition,
		.since_ms = clock->wall_ms(clock->context),
		.times = 1,
		.began_ms = boot_ms(conditions),
		.ended_ms = INT64_MAX,
	};
	(void)snprintf(row->subject, sizeof(row->subject), "%s", subject);
	atomic_fetch_add(&conditions->open[condition], 1);
	return row;
}

void hx_condition_begin(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject,
	const char *reason)
{
	struct hx_condition_row *row;
	struct hx_condition_row begun;
	bool is_new = false;

	assert(condition < HX_CONDITION_COUNT);
	subject = subject == NULL ? "" : subject;
	hx_lock_acquire(&conditions->lock);
	row = find(conditions, condition, subject);
	if (row == NULL) {
		row = add(conditions, condition, subject);
		is_new = row != NULL;
	} else if (row->ended_ms != INT64_MAX) {
		row->ended_ms = INT64_MAX;
		row->times++;
	}
	if (row != NULL)
		(void)snprintf(row->reason, sizeof(row->reason), "%s", reason);
	if (is_new)
		begun = *row;
	hx_lock_release(&conditions->lock);
	if (is_new)
		say_begun(conditions, &begun);
}

void hx_condition_end(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject)
{
	struct hx_condition_row *row;

	assert(condition < HX_CONDITION_COUNT);
	if (atomic_load_explicit(&conditions->open[condition], memory_order_relaxed) == 0)
		return;
	hx_lock_acquire(&conditions->lock);
	row = find(conditions, condition, subject == NULL ? "" : subject);
	if (row != NULL && row->ended_ms == INT64_MAX)
		row->ended_ms = boot_ms(conditions);
	hx_lock_release(&conditions->lock);
}

void hx_condition_set(
	struct hx_conditions *conditions, enum hx_condition condition, const char *subject,
	bool holds, const char *reason)
{
	if (holds)
		hx_condition_begin(conditions, condition, subject, reason);
	else
		hx_condition_end(conditions, condition, subject);
}

void hx_condition_end_all(struct hx_conditions *conditions, enum hx_condition condition)
{
	hx_lock_acquire(&conditions->lock);
	for (size_t i = 0; i < conditions->count; i++) {
		struct hx_condition_row *row = &conditions->rows[i];

		if (row->condition == condition && row->ended_ms == INT64_MAX)
			row->ended_ms = boot_ms(conditions);
	}
	hx_lock_release(&conditions->lock);
}

/* Takes a row whose hold is over; the order of the others stays. False: there is none. */
static bool take_ended(struct hx_conditions *conditions, struct hx_condition_row *ret_row)
{
	int64_t now_ms = boot_ms(conditions);
	bool is_taken = false;

	hx_lock_acquire(&conditions->lock);
	for (size_t i = 0; i < conditions->count && !is_taken; i++) {
		struct hx_condition_row *row = &conditions->rows[i];

		if (row->ended_ms == INT64_MAX || now_ms - row->ended_ms < HX_CONDITION_HOLD_MS)
			continue;
		*ret_row = *row;
		conditions->count--;
		memmove(row, row + 1, (conditions->count - i) * sizeof(*row));
		atomic_fetch_sub(&conditions->open[ret_row->condition], 1);
		is_taken = true;
	}
	hx_lock_release(&conditions->lock);
	return is_taken;
}

void hx_conditions_tick(struct hx_conditions *conditions)
{
	struct hx_condition_row row;

	while (take_ended(conditions, &row))
		say_ended(conditions, &row);
}

size_t hx_conditions_list(
	struct hx_conditions *conditions, struct hx_condition_row ret_rows[HX_CONDITIONS_MAX])
{
	size_t count = 0;

	hx_lock_acquire(&conditions->lock);
	for (int kind = 0; kind < HX_CONDITION_COUNT; kind++) {
		for (size_t i = 0; i < conditions->count; i++) {
			if (conditions->rows[i].condition == (enum hx_condition)kind)
				ret_rows[count++] = conditions->rows[i];
		}
	}
	hx_lock_release(&conditions->lock);
	return count;
}
