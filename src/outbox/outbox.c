/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.c - the public functions of an outbox, independent of its database.
 */
#include "outbox/outbox.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

static const struct {
	const char *scheme; /* with its colon */
	enum hapax_status (*init)(
		const char *url, struct hapax_migration *migration, struct hapax_error *err);
	enum hapax_status (*open)(
		const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err);
} schemes[] = {
#if HX_HAVE_POSTGRES
	{"postgres:", hx_outbox_postgres_init, hx_outbox_postgres_open},
	{"postgresql:", hx_outbox_postgres_init, hx_outbox_postgres_open},
#endif
#if HX_HAVE_SQLITE
	{"sqlite:", hx_outbox_sqlite_init, hx_outbox_sqlite_open},
#endif
	{NULL, NULL, NULL},
};

/* The index of url's scheme, or -1 with err set. */
static int find_scheme(const char *url, struct hapax_error *err)
{
	size_t size = url == NULL ? 0 : strcspn(url, ":");

	for (int i = 0; url != NULL && schemes[i].scheme != NULL; i++)
		if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
			return i;
	(void)hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"invalid outbox URL '%.*s': use the database of the business data, "
		"postgres://HOST/DATABASE or sqlite:FILE",
		(int)(size < 32 ? size : 32), url == NULL ? "" : url);
	return -1;
}

enum hapax_status hx_outbox_check_url(const char *url, struct hapax_error *err)
{
	return find_scheme(url, err) < 0 ? HAPAX_ERR_UNSUPPORTED : HAPAX_OK;
}

enum hapax_status hapax_outbox_init(
	const char *url, struct hapax_migration *ret_migration, struct hapax_error *err)
{
	struct hapax_migration migration = {0, 0};
	int scheme = find_scheme(url, err);
	enum hapax_status status =
		scheme < 0 ? HAPAX_ERR_UNSUPPORTED : schemes[scheme].init(url, &migration, err);

	if (status == HAPAX_OK && ret_migration != NULL)
		*ret_migration = migration;
	return status;
}

enum hapax_status hapax_outbox_open(
	const char *url, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	int scheme = find_scheme(url, err);

	return scheme < 0 ? HAPAX_ERR_UNSUPPORTED : schemes[scheme].open(url, ret_outbox, err);
}

#if !HX_HAVE_POSTGRES
enum hapax_status hapax_outbox_join_postgres(
	struct pg_conn *conn, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	(void)conn;
	(void)ret_outbox;
	return hx_error_set(err, HAPAX_ERR_UNSUPPORTED, 0, "PostgreSQL is not built in");
}
#endif

#if !HX_HAVE_SQLITE
enum hapax_status hapax_outbox_join_sqlite(
	struct sqlite3 *db, struct hapax_outbox **ret_outbox, struct hapax_error *err)
{
	(void)db;
	(void)ret_outbox;
	return hx_error_set(err, HAPAX_ERR_UNSUPPORTED, 0, "SQLite is not built in");
}
#endif

/* Does nothing: the waiting thread finds out why it woke. */
static void on_wake(struct hx_task *task)
{
	(void)task;
}

enum hapax_status hx_outbox_prepare(
	struct hapax_outbox *outbox, const struct hx_outbox_ops *ops, bool with_reactor,
	struct hapax_error *err)
{
	assert(!outbox->has_reactor);
	/* A relay that is not notified looks so often. */
	assert(ops->poll_ms > 0);
	outbox->ops = ops;
	outbox->wake.fn = on_wake;
	hx_buf_init(&outbox->headers, HX_OUTBOX_HEADERS_SIZE_MAX);
	if (with_reactor) {
		enum hapax_status status = hx_reactor_init(&outbox->reactor, hx_net_system(), err);

		if (status != HAPAX_OK)
			return status;
		outbox->has_reactor = true;
	}
	assert(outbox->has_reactor == with_reactor);
	return HAPAX_OK;
}

void hx_outbox_dismantle(struct hapax_outbox *outbox)
{
	if (outbox->has_reactor)
		hx_reactor_done(&outbox->reactor);
	outbox->has_reactor = false;
	hx_buf_done(&outbox->headers);
}

void hx_outbox_wake(struct hapax_outbox *outbox)
{
	/* Only relays are woken, and a relay is never joined. */
	assert(outbox->has_reactor);
	assert(outbox->wake.fn == on_wake);
	hx_reactor_post(&outbox->reactor, &outbox->wake);
}

void hapax_outbox_close(struct hapax_outbox *outbox)
{
	if (outbox == NULL)
		return;
	assert(outbox->wake.fn == on_wake);
	assert(outbox->headers.size <= HX_OUTBOX_HEADERS_SIZE_MAX);
	outbox->ops->close(outbox);
}

enum hapax_status hapax_outbox_add(
	struct hapax_outbox *outbox, const struct hapax_outbox_event *event,
	char ret_id[HAPAX_OUTBOX_ID_SIZE], struct hapax_error *err)
{
	char id[HAPAX_OUTBOX_ID_SIZE];
	enum hapax_status status;

	if (outbox == NULL || event == NULL || event->size != sizeof(*event))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "an outbox and an event are required");
	status = hx_outbox_event_check(event, err);
	if (status == HAPAX_OK)
		status = hx_outbox_headers_write(event, &outbox->headers, err);
	if (status == HAPAX_OK)
		status = outbox->ops->add(
			outbox, event,
			(struct hapax_bytes){outbox->headers.data, outbox->headers.size}, id, err);
	assert(status != HAPAX_OK || strlen(id) < sizeof(id));
	if (status == HAPAX_OK && ret_id != NULL)
		memcpy(ret_id, id, strlen(id) + 1);
	return status;
}

enum hapax_status hapax_outbox_execute(
	struct hapax_outbox *outbox, hapax_outbox_logic_fn *logic, void *context,
	const struct hapax_outbox_event *events, size_t count, struct hapax_error *err)
{
	enum hapax_status status;

	if (outbox == NULL || logic == NULL || (events == NULL && count > 0))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "an outbox, a function and events are required");
	status = outbox->ops->savepoint(outbox, HX_OUTBOX_BEGIN, err);
	if (status != HAPAX_OK)
		return status;
	status = logic(context, err);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = hapax_outbox_add(outbox, &events[i], NULL, err);
	if (status == HAPAX_OK)
		return outbox->ops->savepoint(outbox, HX_OUTBOX_KEEP, err);
	(void)outbox->ops->savepoint(outbox, HX_OUTBOX_UNDO, NULL);
	return status;
}

static enum hapax_status read_status(
	struct hapax_outbox *outbox, bool with_sent, struct hapax_outbox_status *ret_status,
	struct hapax_error *err)
{
	if (outbox == NULL || ret_status == NULL || ret_status->size != sizeof(*ret_status))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an outbox is required");
	return outbox->ops->status(outbox, with_sent, ret_status, err);
}

enum hapax_status hapax_outbox_status(
	struct hapax_outbox *outbox, struct hapax_outbox_status *ret_status,
	struct hapax_error *err)
{
	return read_status(outbox, true, ret_status, err);
}

enum hapax_status hapax_outbox_backlog(
	struct hapax_outbox *outbox, struct hapax_outbox_status *ret_status,
	struct hapax_error *err)
{
	return read_status(outbox, false, ret_status, err);
}

void hx_outbox_status_set(
	struct hapax_outbox_status *status, const int64_t numbers[HX_OUTBOX_NUMBERS])
{
	status->pending = (uint64_t)numbers[0];
	status->retrying = (uint64_t)numbers[1];
	status->waiting = (uint64_t)numbers[2];
	status->parked = (uint64_t)numbers[3];
	status->parked_keys = (uint64_t)numbers[4];
	status->oldest_ms = numbers[5];
	status->relays = (uint64_t)numbers[6];
	status->partitions = (uint64_t)numbers[7];
	status->sent = (uint64_t)numbers[8];
}

void hx_outbox_batch_init(struct hx_outbox_batch *batch)
{
	batch->count = 0;
	batch->result = NULL;
	batch->result_free = NULL;
	/*
	 * Rows of 16 MiB are rare; apart from payloads, the size of a batch is bounded by its rows.
	 */
	hx_buf_init(
		&batch->memory,
		(size_t)HX_OUTBOX_BATCH_BYTES + HX_OUTBOX_PAYLOAD_SIZE_MAX +
			(size_t)HX_OUTBOX_BATCH_MAX * 8192);
}

void hx_outbox_batch_done(struct hx_outbox_batch *batch)
{
	assert(batch->count <= HX_OUTBOX_BATCH_MAX);
	assert(batch->memory.size <= batch->memory.capacity);
	/* The rows are in one of the two. */
	assert(batch->result == NULL || batch->memory.size == 0);
	if (batch->result != NULL)
		batch->result_free(batch->result);
	batch->result = NULL;
	hx_buf_done(&batch->memory);
}
