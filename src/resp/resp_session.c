/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/resp_session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "resp/resp_command.h"
#include "resp/commands.h"
#include "resp/resp_job.h"

enum {
	/* Commands planned at once, except in a transaction: then other sessions get their turn. */
	ENTRIES_MAX = 1024,
	ENTRIES_FIRST = 16,
	ENTRIES_KEPT_MAX = 64,
	ARGS_KEPT_MAX = 256,

	/* The limit of keys in a command, so that one always fits after the planned ones. */
	ARGS_MAX = HX_SUBMIT_OPS_MAX / 2,
	OPS_BEFORE_MAX = HX_SUBMIT_OPS_MAX / 2,

	/* The approximate memory limit for records read at once. */
	RECORDS_SIZE_MAX = 64 * 1024 * 1024,

	TEXT_SIZE_MAX = 64 * 1024 * 1024,
	TEXT_KEPT_MAX = 1024,
	QUEUE_SIZE_MAX = 16 * 1024 * 1024,

	/* Replies known before the store answers: beyond this size, planning stops. */
	TEXT_PLANNED_MAX = 256 * 1024,

	/* A session that holds no more is not counted; this covers most sessions. */
	HELD_FREE_MAX = 8 * 1024,

	/* A reply up to this size is always written: an error would hardly be smaller. */
	REPLY_FREE_MAX = 4 * 1024,

	/* The overhead of a value, in a record and in a command. */
	VALUE_ROOM = 64 * 1024,

	/* The size of a reply that contains no argument, and of a reply that lists things. */
	TEXT_ROOM = 1024,
	TEXT_ROOM_ADMIN = 256 * 1024,

	/* The overhead of a reply per value: its header. */
	REPLY_ROOM = 64,

	LINKED_MAX = 1024,
};

size_t hx_resp_session_share(const struct hx_resp_service *service)
{
	size_t share = hx_budget_share(service->options.budget);
	size_t least = (size_t)service->options.value_size_max + VALUE_ROOM;

	return share > least ? share : least;
}

static size_t smaller(size_t one, size_t other)
{
	return one < other ? one : other;
}

/* Counts the memory that plan and finish allocated; it can no longer be refused. */
static void note_memory(struct hx_resp_session *session)
{
	size_t bytes = session->text.capacity +
		session->entry_capacity * sizeof(*session->entries) +
		session->argv_capacity * sizeof(*session->argv) + session->request.copy.capacity;

	if (bytes <= HELD_FREE_MAX)
		bytes = 0;
	if (bytes > session->noted_bytes)
		hx_budget_note(session->service->options.budget, bytes - session->noted_bytes);
	else if (bytes < session->noted_bytes)
		hx_budget_give(session->service->options.budget, session->noted_bytes - bytes);
	session->noted_bytes = bytes;
}

static void join_clients(struct hx_resp_session *session)
{
	struct hx_resp_service *service = session->service;

	hx_mutex_lock(&service->lock);
	session->next = service->first_client;
	if (session->next != NULL)
		session->next->previous = session;
	service->first_client = session;
	hx_mutex_unlock(&service->lock);
}

static void leave_clients(struct hx_resp_session *session)
{
	hx_mutex_lock(&session->service->lock);
	if (session->next != NULL)
		session->next->previous = session->previous;
	if (session->previous != NULL)
		session->previous->next = session->next;
	else
		session->service->first_client = session->next;
	hx_mutex_unlock(&session->service->lock);
}

void hx_resp_session_init(struct hx_resp_session *session, struct hx_resp_service *service)
{
	size_t share = hx_resp_session_share(service);

	memset(session, 0, sizeof(*session));
	session->service = service;
	session->protocol = 2;
	session->is_authenticated = service->options.user_count == 0;
	session->id = 1 + atomic_fetch_add(&service->last_client_id, 1);
	session->began_ms = service->options.clock->boot_ms(service->options.clock->context);
	hx_resp_request_init(&session->request);
	hx_buf_init(&session->text, TEXT_SIZE_MAX);
	session->records.parent = service->options.budget;
	hx_budget_limit(&session->records, service->options.budget == NULL ? 0 : share);
	hx_buf_init_budget(
		&session->queue, smaller(share, QUEUE_SIZE_MAX), service->options.budget);
	hx_buf_init_budget(&session->kept, QUEUE_SIZE_MAX, service->options.budget);
	join_clients(session);
}

void hx_resp_session_done(struct hx_resp_session *session)
{
	leave_clients(session);
	hx_resp_request_done(&session->request);
	hx_free(session->argv);
	hx_free(session->entries);
	hx_buf_done(&session->text);
	hx_buf_done(&session->queue);
	hx_buf_done(&session->kept);
	hx_resp_session_end_job(session);
	session->argv_capacity = session->entry_capacity = 0;
	note_memory(session);
	assert(hx_budget_used(&session->records) == 0);
}

void hx_resp_session_end_job(struct hx_resp_session *session)
{
	hx_resp_job_free(session->job);
	session->job = NULL;
}

bool hx_resp_session_needs_round(const struct hx_resp_session *session)
{
	for (size_t i = 0; i < session->entry_count; i++) {
		if (session->entries[i].finish != NULL)
			return true;
	}
	return false;
}

/* Close without a reply: it cannot be made, or must not be. Skipping one would break the order. */
static void give_up(struct hx_resp_session *session)
{
	session->is_closing = true;
	session->is_abrupt = true;
}

static struct hx_resp_entry *add_entry(
	struct hx_resp_session *session, const struct hx_resp_batch *batch)
{
	struct hx_resp_entry *entry;

	if (session->entry_count == session->entry_capacity) {
		size_t capacity =
			session->entry_capacity == 0 ? ENTRIES_FIRST : 2 * session->entry_capacity;
		struct hx_resp_entry *entries =
			hx_realloc(session->entries, capacity * sizeof(*entries));

		if (entries == NULL)
			return NULL;
		session->entries = entries;
		session->entry_capacity = capacity;
	}
	entry = &session->entries[session->entry_count++];
	memset(entry, 0, sizeof(*entry));
	entry->first = (uint32_t)batch->count;
	entry->protocol = session->protocol;
	return entry;
}

/* ---------------------------------------------------------------- one command */

static void refuse_unknown(struct hx_resp_call *call)
{
	const char *reason = hx_resp_refusal(call->argv[0]);
	char args[160] = "";
	size_t size = 0;

	if (reason != NULL) {
		hx_resp_refuse_format(
			call, "ERR '%.*s' is not supported: %s", HX_RESP_SHOWN(call->argv[0]),
			reason);
		return;
	}
	for (size_t i = 1; i < call->argc && size < 128; i++) {
		int room = (int)(128 - size);
		int shown = (int)call->argv[i].size < room ? (int)call->argv[i].size : room;
		int count = snprintf(
			args + size, sizeof(args) - size, "'%.*s' ", shown,
			call->argv[i].size == 0 ? "" : (const char *)call->argv[i].data);

		size += count > 0 ? (size_t)count : 0;
	}
	hx_resp_refuse_format(
		call, "ERR unknown command '%.*s', with args beginning with: %s",
		HX_RESP_SHOWN(call->argv[0]), args);
}

static void refuse_subcommand(struct hx_resp_call *call)
{
	char name[32] = "";

	for (size_t i = 0; i + 1 < sizeof(name) && call->command->name[i] != '\0'; i++) {
		name[i] = call->command->name[i];
		if (name[i] >= 'a' && name[i] <= 'z')
			name[i] = (char)(name[i] - 'a' + 'A');
	}
	hx_resp_refuse_format(
		call, "ERR unknown subcommand '%.*s'. Try %s HELP.", HX_RESP_SHOWN(call->argv[1]),
		name);
}

/* Finds the command. False: unknown, and refused. */
static bool find_command(struct hx_resp_call *call)
{
	call->command = call->session->command;
	if (call->command == NULL) {
		refuse_unknown(call);
		return false;
	}
	if ((call->command->flags & HX_RESP_PARENT) != 0 && call->argc >= 2) {
		const struct hx_resp_command *sub =
			hx_resp_subcommand_find(call->command, call->argv[1]);

		if (sub == NULL) {
			refuse_subcommand(call);
			return false;
		}
		call->command = sub;
	}
	return true;
}

static bool arity_is_right(const struct hx_resp_call *call)
{
	int arity = call->command->arity;

	return arity >= 0 ? call->argc == (size_t)arity : call->argc >= (size_t)-arity;
}

/*
 * If the doors' memory limit is reached, further requests get an error. A running EXEC continues:
 * no client asked for half a transaction.
 */
static bool is_starved(const struct hx_resp_call *call)
{
	const struct hx_resp_session *session = call->session;
	unsigned flags = call->command->flags;
	bool is_light = (flags & (HX_RESP_NO_AUTH | HX_RESP_NO_QUEUE)) != 0 ||
		(!session->is_queuing && (flags & HX_RESP_FAST) != 0 &&
		 (flags & (HX_RESP_READ | HX_RESP_WRITE)) == 0);

	if (session->is_executing || !hx_budget_is_full(call->service->options.budget))
		return false;
	return !is_light || (call->command->plan == hx_resp_plan_exec && session->is_queuing);
}

static void refuse_starved(struct hx_resp_call *call)
{
	call->session->starved++;
	if (call->command->plan != hx_resp_plan_exec) {
		hx_resp_refuse(call, "OOM " HX_RESP_STARVED);
		return;
	}
	hx_resp_multi_forget(call->session);
	hx_resp_refuse(call, "EXECABORT Transaction discarded because of: OOM " HX_RESP_STARVED);
}

/* An EXEC with the wrong arity also ends the transaction. */
static void refuse_arity(struct hx_resp_call *call)
{
	if (call->command->plan != hx_resp_plan_exec) {
		hx_resp_refuse_arity(call);
		return;
	}
	hx_resp_multi_forget(call->session);
	hx_resp_refuse(
		call,
		"EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' "
		"command");
}

static void enqueue(struct hx_resp_call *call)
{
	struct hx_resp_session *session = call->session;
	size_t before = session->queue.size;
	enum hapax_status status = hx_resp_put_array(&session->queue, call->argc);

	for (size_t i = 0; i < call->argc && status == HAPAX_OK; i++)
		status = hx_resp_put_bulk(&session->queue, call->argv[i]);
	if (status != HAPAX_OK) {
		session->queue.size = before;
		session->is_dirty = true;
		session->starved++;
		hx_resp_refuse(call, "OOM not enough memory for the transaction");
		return;
	}
	session->queue_count++;
	(void)hx_resp_put_simple(call->text, "QUEUED");
}

/* Checks whether the command may run now, and plans it. */
static void plan_call(struct hx_resp_call *call)
{
	struct hx_resp_session *session = call->session;
	bool is_refused = true;

	if (!find_command(call)) {
		/* The error has been sent. */
	} else if (!arity_is_right(call)) {
		refuse_arity(call);
	} else if (!session->is_authenticated && !(call->command->flags & HX_RESP_NO_AUTH)) {
		hx_resp_refuse(call, "NOAUTH Authentication required.");
	} else if (is_starved(call)) {
		refuse_starved(call);
	} else {
		is_refused = false;
	}
	if (is_refused) {
		session->is_dirty = session->is_dirty || session->is_queuing;
		return;
	}
	if (session->is_queuing && !(call->command->flags & HX_RESP_NO_QUEUE)) {
		enqueue(call);
		return;
	}
	if (call->command->flags & HX_RESP_STEPS)
		session->is_last = true;
	call->command->plan(call);
}

/* CLIENT REPLY OFF silences all later commands, SKIP the next one. */
static bool is_silent(struct hx_resp_session *session)
{
	enum hx_resp_reply_mode mode = session->reply_mode;

	if (mode == HX_RESP_REPLY_SKIP_NEXT)
		session->reply_mode = HX_RESP_REPLY_SKIP;
	else if (mode == HX_RESP_REPLY_SKIP)
		session->reply_mode = HX_RESP_REPLY_ON;
	return mode == HX_RESP_REPLY_OFF || mode == HX_RESP_REPLY_SKIP;
}

static void plan_command(struct hx_resp_session *session, struct hx_resp_batch *batch)
{
	struct hx_resp_call call = {
		.session = session,
		.service = session->service,
		.batch = batch,
		.argv = session->argv,
		.argc = session->argc,
		.text = &session->text};
	size_t before = session->text.size;

	/* An HTTP request: a browser was tricked into using this port. */
	if (session->command == NULL &&
	    (hx_resp_is_word(session->argv[0], "POST") ||
	     hx_resp_is_word(session->argv[0], "HOST:"))) {
		give_up(session);
		return;
	}
	call.entry = add_entry(session, batch);
	if (call.entry == NULL || hx_buf_reserve(&session->text, TEXT_ROOM) != HAPAX_OK) {
		give_up(session);
		return;
	}
	plan_call(&call);
	call.entry->text_size = (uint32_t)(session->text.size - before);
	call.entry->is_silent = is_silent(session);
}

/* ---------------------------------------------------------------- many commands */

/* Finds the command; it is often the same as the previous one. */
static void find_name(struct hx_resp_session *session)
{
	if (session->argc > 0 && session->command != NULL &&
	    hx_resp_command_is_named(session->command, session->argv[0]))
		return;
	session->command = session->argc == 0 ? NULL : hx_resp_command_find(session->argv[0]);
	if (session->command != NULL &&
	    !hx_resp_command_is_offered(session->command, session->service))
		session->command = NULL;
}

/* Loads the arguments in place, and finds the command. */
static bool load_args(struct hx_resp_session *session, struct hapax_bytes source)
{
	size_t count = session->request.count;

	if (count > session->argv_capacity) {
		struct hapax_bytes *argv = hx_realloc(session->argv, count * sizeof(*argv));

		if (argv == NULL)
			return false;
		session->argv = argv;
		session->argv_capacity = count;
	}
	for (size_t i = 0; i < count; i++)
		session->argv[i] = hx_resp_request_arg(&session->request, source, i);
	session->argc = count;
	find_name(session);
	return true;
}

static enum hx_resp_result read_request(
	struct hx_resp_session *session, struct hapax_bytes source, size_t *ret_size)
{
	const struct hx_resp_limits limits = {
		.args_max = ARGS_MAX,
		.bulk_size_max = hx_resp_service_bulk_size_max(session->service),
		.is_unauthenticated = !session->is_authenticated};
	enum hx_resp_result result;

	if (session->has_finished)
		hx_resp_request_next(&session->request);
	session->has_finished = false;
	result = hx_resp_request_read(&session->request, source, &limits, ret_size);
	session->has_finished = result == HX_RESP_DONE;
	return result;
}

static void refuse_protocol(struct hx_resp_session *session, const struct hx_resp_batch *batch)
{
	struct hx_resp_entry *entry = add_entry(session, batch);
	char text[HX_RESP_ERROR_SIZE + 8];
	size_t before = session->text.size;

	session->is_closing = true;
	(void)snprintf(text, sizeof(text), "ERR %s", session->request.error);
	if (entry == NULL || hx_resp_put_error(&session->text, text) != HAPAX_OK)
		give_up(session);
	else
		entry->text_size = (uint32_t)(session->text.size - before);
	if (entry != NULL)
		entry->is_silent = is_silent(session);
}

/* Whether the command must wait for the earlier ones. */
static bool must_wait(const struct hx_resp_session *session)
{
	return session->entry_count > 0 && session->command != NULL &&
		(session->command->flags & HX_RESP_ALONE) != 0 && !session->is_queuing;
}

/* Whether this is inside a transaction that can be atomic if it is planned at once. */
static bool is_in_one_go(const struct hx_resp_session *session)
{
	return session->exec_left > 0 && session->exec_count <= LINKED_MAX;
}

static bool may_plan(
	const struct hx_resp_session *session, const struct hx_resp_batch *batch,
	size_t slots_before)
{
	uint64_t value_max = session->service->options.value_size_max;
	size_t records_max =
		smaller(hx_budget_share(session->service->options.budget), RECORDS_SIZE_MAX);
	size_t slots_max = records_max / (size_t)(value_max == 0 ? 1 : value_max) + 1;

	if (session->is_last || session->is_closing || batch->count >= OPS_BEFORE_MAX ||
	    session->text.size >= TEXT_PLANNED_MAX)
		return false;
	return is_in_one_go(session) ||
		(session->entry_count < ENTRIES_MAX &&
		 batch->slot_count - slots_before < slots_max);
}

static bool has_key_before(const struct hapax_op *ops, size_t first, size_t index)
{
	for (size_t i = first; i < index; i++) {
		if (hx_bytes_equal(ops[i].key, ops[index].key))
			return true;
	}
	return false;
}

/*
 * Makes the operations of EXEC atomic if the store can do that: a group may not contain a key
 * twice. Otherwise they run like a pipeline.
 */
static void link_transaction(
	const struct hx_resp_session *session, struct hx_resp_batch *batch, size_t first)
{
	size_t count = batch->count - first;

	if (count < 2 || count > LINKED_MAX ||
	    !(hapax_store_capabilities(session->service->options.store) & HAPAX_STORE_MULTI_KEY))
		return;
	for (size_t i = first; i < batch->count; i++) {
		/* A script may have its own group. */
		if ((batch->ops[i].flags & HAPAX_OP_LINKED) != 0 ||
		    has_key_before(batch->ops, first, i))
			return;
	}
	for (size_t i = first; i + 1 < batch->count; i++)
		batch->ops[i].flags |= HAPAX_OP_LINKED;
}

/* Plans one command, of the client or of the transaction. False: no more for now. */
static bool plan_next(
	struct hx_resp_session *session, struct hx_resp_batch *batch, struct hapax_bytes input,
	size_t *used)
{
	bool is_queued = session->exec_left > 0;
	struct hapax_bytes source;
	size_t size = 0;
	enum hx_resp_result result;

	if (!is_queued && *used == input.size)
		return false;
	if (is_queued)
		source = hx_bytes(
			session->queue.data + session->exec_at,
			session->queue.size - session->exec_at);
	else
		source = hx_bytes((const char *)input.data + *used, input.size - *used);
	result = read_request(session, source, &size);
	if (result == HX_RESP_BAD)
		refuse_protocol(session, batch);
	if (result != HX_RESP_DONE)
		return false;
	if (!load_args(session, source)) {
		give_up(session);
		return false;
	}
	if (must_wait(session))
		return false;
	if (is_queued) {
		session->exec_at += size;
		session->exec_left--;
	} else {
		*used += size;
	}
	session->is_executing = is_queued;
	if (session->argc > 0)
		plan_command(session, batch);
	/* The whole transaction is planned, with copies: the queue is free for the next one. */
	if (is_queued && session->exec_left == 0) {
		session->exec_at = 0;
		hx_buf_done(&session->queue);
	}
	return true;
}

size_t hx_resp_session_plan(
	struct hx_resp_session *session, struct hx_resp_batch *batch, struct hapax_bytes input)
{
	size_t slots_before = batch->slot_count;
	size_t used = 0;
	/* The first operation of a transaction; SIZE_MAX: none, or not all of it. */
	size_t exec_first = SIZE_MAX;

	assert(session->entry_count == 0);
	session->is_last = false;
	batch->records = &session->records;
	while (may_plan(session, batch, slots_before)) {
		size_t left = session->exec_left;
		size_t first = batch->count;

		if (!plan_next(session, batch, input, &used))
			break;
		if (left == 0 && session->exec_left > 0)
			exec_first = first;
		if (left > 0 && session->exec_left == 0 && exec_first != SIZE_MAX) {
			link_transaction(session, batch, exec_first);
			exec_first = SIZE_MAX;
		}
	}
	batch->records = NULL;
	note_memory(session);
	atomic_fetch_add_explicit(
		&session->service->commands, session->entry_count, memory_order_relaxed);
	return used;
}

static bool only_looks(const struct hx_resp_entry *entry, const struct hapax_op *ops)
{
	if (ops == NULL)
		return false;
	for (size_t i = 0; i < entry->count; i++) {
		if (ops[i].type != HAPAX_OP_LOOKUP)
			return false;
	}
	return true;
}

/* Reserves room for the largest possible reply, so that no part of it is lost. */
static bool has_room(
	const struct hx_resp_session *session, const struct hx_resp_entry *entry,
	const struct hapax_op *ops, struct hapax_buf *out)
{
	const struct hx_budget *budget = session->service->options.budget;
	size_t size = TEXT_ROOM + entry->text_size;

	for (size_t i = 0; i < entry->count; i++) {
		size += REPLY_ROOM;
		if (ops[i].record != NULL)
			size += ops[i].record->result.body.size + ops[i].record->owner.size +
				ops[i].record->error.size;
	}
	/* A client can repeat a read; the answer to a change must be sent. */
	if (size > REPLY_FREE_MAX && only_looks(entry, ops) && !hx_budget_has_room(budget, size))
		return false;
	return hx_buf_reserve(out, size) == HAPAX_OK;
}

/* There is no room for the reply: a read gets an error. False: a change gets no reply. */
static bool put_too_large(
	const struct hx_resp_entry *entry, const struct hapax_op *ops, struct hapax_buf *out)
{
	if (entry->count > 0 && !only_looks(entry, ops))
		return false;
	return hx_resp_put_error(out, "OOM the reply is too large; request fewer keys") == HAPAX_OK;
}

/* The records were read, or never will be: the next reply needs their memory. */
static void drop_records(struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hx_resp_batch_drop_record(&ops[i]);
}

/* False: there is another step. */
static bool finish_entry(
	struct hx_resp_session *session, struct hx_resp_entry *entry, size_t text_at,
	const struct hx_resp_batch *batch, struct hx_resp_batch *next, struct hapax_buf *out)
{
	/* An empty batch has no memory yet. */
	struct hapax_op *ops = entry->count != 0 ? batch->ops + entry->first : NULL;
	size_t count = entry->count;
	size_t before = out->size;
	bool is_done = true;

	if (!has_room(session, entry, ops, out)) {
		if (!put_too_large(entry, ops, out))
			give_up(session);
		session->starved++;
		drop_records(ops, count);
		if (entry->is_silent)
			out->size = before;
		return true;
	}
	if (entry->finish != NULL) {
		struct hx_resp_answer answer = {
			.session = session,
			.entry = entry,
			.ops = ops,
			.count = entry->count,
			.protocol = entry->protocol,
			.out = out,
			.next = next};

		if (!hx_resp_put_failure(&answer))
			entry->finish(&answer);
		is_done = !answer.has_step;
		drop_records(ops, count);
	} else if (entry->text_size > 0) {
		/* Until the first text is stored, text.data is NULL. */
		(void)hx_buf_append(out, session->text.data + text_at, entry->text_size);
	}
	if (entry->is_silent)
		out->size = before;
	return is_done;
}

/* Frees the memory of unusual commands: most clients are idle most of the time. */
static void give_back(struct hx_resp_session *session)
{
	if (session->text.capacity > TEXT_KEPT_MAX)
		hx_buf_done(&session->text);
	if (session->kept.capacity > TEXT_KEPT_MAX)
		hx_buf_done(&session->kept);
	if (session->entry_capacity > ENTRIES_KEPT_MAX) {
		hx_free(session->entries);
		session->entries = NULL;
		session->entry_capacity = 0;
	}
	if (session->argv_capacity > ARGS_KEPT_MAX) {
		hx_free(session->argv);
		session->argv = NULL;
		session->argv_capacity = 0;
	}
	/* Keep a partly received request. */
	if (session->has_finished &&
	    (session->request.capacity > ARGS_KEPT_MAX ||
	     session->request.copy.capacity > TEXT_KEPT_MAX))
		hx_resp_request_done(&session->request);
}

static void forget_entries(struct hx_resp_session *session)
{
	session->entry_count = 0;
	hx_resp_session_end_job(session);
	hx_buf_clear(&session->text);
	give_back(session);
	note_memory(session);
}

bool hx_resp_session_finish(
	struct hx_resp_session *session, const struct hx_resp_batch *batch,
	struct hx_resp_batch *next, struct hapax_buf *out)
{
	size_t text_at = 0;

	next->records = &session->records;
	for (size_t i = 0; i < session->entry_count; i++) {
		struct hx_resp_entry *entry = &session->entries[i];

		if (!finish_entry(session, entry, text_at, batch, next, out)) {
			/* It is the last one: no command is planned after one with steps. */
			assert(i + 1 == session->entry_count);
			session->entries[0] = *entry;
			session->entry_count = 1;
			next->records = NULL;
			return false;
		}
		text_at += entry->text_size;
	}
	next->records = NULL;
	forget_entries(session);
	return true;
}
