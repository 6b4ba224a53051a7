/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/task/pauses.h"

#include <stdio.h>

#include "base/alloc.h"

/* A record and its value; a larger one is not ours. */
enum { RECORD_SIZE_MAX = 64 * 1024 };

static void drop(struct hx_pauses *pauses)
{
	for (size_t i = 0; i < pauses->count; i++)
		hx_buf_done(&pauses->questions[i].buf);
	hx_free(pauses->ops);
	hx_free(pauses->questions);
	pauses->ops = NULL;
	pauses->questions = NULL;
	pauses->count = 0;
}

bool hx_pauses_begin(struct hx_pauses *pauses, size_t count)
{
	if (pauses->is_asking || count == 0)
		return false;
	pauses->ops = hx_alloc_zero(count, sizeof(pauses->ops[0]));
	pauses->questions = hx_alloc_zero(count, sizeof(pauses->questions[0]));
	if (pauses->ops != NULL && pauses->questions != NULL)
		return true;
	drop(pauses);
	return false;
}

void hx_pauses_add(struct hx_pauses *pauses, const char *name)
{
	struct hx_pauses_question *question = &pauses->questions[pauses->count];
	struct hapax_op *op = &pauses->ops[pauses->count++];

	(void)snprintf(question->name, sizeof(question->name), "%s", name);
	hx_buf_init(&question->buf, RECORD_SIZE_MAX);
	hx_pause_name(op, HAPAX_OP_LOOKUP, question->name);
	op->record = &question->record;
	op->buf = &question->buf;
}

static void on_answered(struct hx_task *task)
{
	struct hx_pauses *pauses = task->context;

	for (size_t i = 0; i < pauses->count; i++) {
		struct hx_pause pause;

		(void)hx_pause_read(&pauses->ops[i], &pause);
		pauses->told(
			pauses->context, pauses->questions[i].name, &pause, pauses->ops[i].status);
	}
	drop(pauses);
	pauses->is_asking = false;
	pauses->ended(pauses->context);
}

/* Threads: the store's. */
static void on_completion(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_pauses *pauses = context;

	(void)ops;
	(void)count;
	hx_reactor_post(pauses->reactor, &pauses->task);
}

void hx_pauses_ask(struct hx_pauses *pauses)
{
	pauses->is_asking = true;
	pauses->task = (struct hx_task){.fn = on_answered, .context = pauses};
	hapax_store_submit(
		pauses->store, pauses->ops, pauses->count,
		(struct hapax_completion){on_completion, pauses});
}
