/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manage.c - administration of an outbox: retry, purge, queries.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "outbox/outbox.h"

enum {
	/* Rows per step of a purge, and the pause after it: other work comes first. */
	PURGE_ROWS = 1000,
};

#define PURGE_PAUSE_NS INT64_C(5000000)

static enum hapax_status no_outbox(struct hapax_error *err)
{
	return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an outbox and an action are required");
}

enum hapax_status hapax_outbox_retry(
	struct hapax_outbox *outbox, const char *id, const char *ordering_key, uint64_t *ret_count,
	struct hapax_error *err)
{
	uint64_t count = 0;
	enum hapax_status status;

	if (outbox == NULL)
		return no_outbox(err);
	status = outbox->ops->retry(outbox, id, ordering_key, &count, err);
	if (status == HAPAX_OK && ret_count != NULL)
		*ret_count = count;
	return status;
}

enum hapax_status hapax_outbox_park(
	struct hapax_outbox *outbox, const char *id, uint64_t *ret_count, struct hapax_error *err)
{
	uint64_t count = 0;
	enum hapax_status status;

	if (outbox == NULL || id == NULL)
		return no_outbox(err);
	status = outbox->ops->park(outbox, id, &count, err);
	if (status == HAPAX_OK && ret_count != NULL)
		*ret_count = count;
	return status;
}

enum hapax_status hapax_outbox_purge_step(
	struct hapax_outbox *outbox, int64_t age_ms, uint64_t *ret_count, struct hapax_error *err)
{
	struct hx_event never = {0};
	enum hapax_status status;

	if (outbox == NULL || age_ms < 0 || ret_count == NULL)
		return no_outbox(err);
	*ret_count = 0;
	status = outbox->ops->purge(outbox, NULL, age_ms, PURGE_ROWS, ret_count, err);
	if (status == HAPAX_OK && *ret_count == PURGE_ROWS)
		(void)hx_event_wait_until_ns(&never, hx_clock_mono_ns() + PURGE_PAUSE_NS);
	return status;
}

enum hapax_status hapax_outbox_purge(
	struct hapax_outbox *outbox, int64_t age_ms, uint64_t *ret_count, struct hapax_error *err)
{
	uint64_t total = 0, count = PURGE_ROWS;
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && count > 0) {
		status = hapax_outbox_purge_step(outbox, age_ms, &count, err);
		total += count;
	}
	if (ret_count != NULL)
		*ret_count = total;
	return status;
}

enum hapax_status hapax_outbox_query(
	struct hapax_outbox *outbox, const char *sql, hapax_outbox_row_fn *row, void *context,
	struct hapax_error *err)
{
	if (outbox == NULL || sql == NULL || row == NULL)
		return no_outbox(err);
	return outbox->ops->query(outbox, sql, NULL, row, context, err);
}

enum hapax_status hx_outbox_audit_run(
	struct hapax_outbox *outbox, struct hx_outbox_audit *audit, struct hapax_error *err)
{
	assert(outbox->has_reactor);
	assert(audit->timeout_ms > 0);
	/* It becomes part of a statement. */
	assert(strcmp(audit->by, "id") == 0 || strcmp(audit->by, "ordering_key") == 0 ||
	       strcmp(audit->by, "subject") == 0);
	audit->checked = 0;
	audit->missing = 0;
	audit->example[0] = '\0';
	return outbox->ops->audit(outbox, audit, err);
}

enum hapax_status hapax_outbox_find(
	struct hapax_outbox *outbox, const char *by, struct hapax_bytes value,
	hapax_outbox_row_fn *row, void *context, struct hapax_error *err)
{
	static const char *const columns[] = {"id", "ordering_key", "subject", "state"};
	char text[HX_OUTBOX_LONG_SIZE_MAX + 1], sql[256];
	bool is_held;
	int size;

	if (outbox == NULL || by == NULL || row == NULL)
		return no_outbox(err);
	if (value.size > HX_OUTBOX_LONG_SIZE_MAX)
		return HAPAX_OK; /* no row can match */
	size = snprintf(
		text, sizeof(text), "%.*s", (int)value.size,
		value.size == 0 ? "" : (const char *)value.data);
	assert(size >= 0);
	assert((size_t)size <= value.size);
	for (size_t i = 0; i < HX_COUNT(columns); i++) {
		if (strcmp(by, columns[i]) != 0)
			continue;
		/* Parked and waiting rows are held: few, compared with sent ones. */
		is_held = strcmp(by, "state") == 0 && (text[0] == '2' || text[0] == '3');
		size = snprintf(
			sql, sizeof(sql),
			"SELECT id, topic, ordering_key, attempts, error FROM %s %s = $1 ORDER BY seq",
			is_held ? outbox->ops->held : "@@hapax_outbox WHERE", by);
		/* A cut statement would find other rows. */
		assert((size_t)size < sizeof(sql));
		return outbox->ops->query(outbox, sql, text, row, context, err);
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot search the outbox by '%.32s'; use id, ordering_key, subject or state", by);
}

enum hapax_status hapax_outbox_relays(
	struct hapax_outbox *outbox, hapax_outbox_row_fn *row, void *context,
	struct hapax_error *err)
{
	static const char sql[] =
		"SELECT r.owner AS owner, count(p.part) AS partitions, r.until_ms AS until_ms"
		" FROM @@hapax_outbox_relay r LEFT JOIN @@hapax_outbox_part p ON p.relay = r.relay"
		" WHERE r.until_ms > $1 GROUP BY r.relay, r.owner, r.until_ms ORDER BY r.relay";

	if (outbox == NULL || row == NULL)
		return no_outbox(err);
	return outbox->ops->query(outbox, sql, "0", row, context, err);
}

enum hapax_status hapax_outbox_adopt(
	struct hapax_outbox *outbox, const struct hapax_outbox_table *table, int with_existing,
	uint64_t *ret_count, struct hapax_error *err)
{
	uint64_t count = 0;
	enum hapax_status status;

	if (outbox == NULL || table == NULL || table->size != sizeof(*table))
		return no_outbox(err);
	if (table->table == NULL || table->id == NULL || table->topic == NULL ||
	    table->payload == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a table needs columns for id, topic and payload");
	if (table->status != NULL && (table->pending == NULL || table->processed == NULL))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a status column needs the values for pending and processed");
	status = outbox->ops->adopt(outbox, table, with_existing != 0, &count, err);
	if (status == HAPAX_OK && ret_count != NULL)
		*ret_count = count;
	return status;
}
