/* SPDX-License-Identifier: Apache-2.0 */
#include "support/outage_case.h"

#include <stdlib.h>
#include <string.h>

static void note(const struct hapax_record *record, enum hapax_reconciled verdict, void *context)
{
	struct outage_case *c = context;

	if (verdict != HAPAX_RECONCILED_TWICE || record->key.size >= sizeof(c->twice))
		return;
	memcpy(c->twice, record->key.data, record->key.size);
	c->twice[record->key.size] = '\0';
}

static void open_guard(struct outage_case *c)
{
	if (hapax_outage_guard(&c->held.base, &c->options, &c->store, NULL) != HAPAX_OK)
		abort();
}

void outage_case_begin(struct outage_case *c)
{
	memset(c, 0, sizeof(*c));
	store_case_begin(&c->shared, "memory:");
	store_case_begin(&c->journal, "memory:");
	held_store_init(&c->held, c->shared.store, &c->shared.clock.clock);
	c->options = (struct hapax_outage_options)HAPAX_OUTAGE_OPTIONS_INIT;
	c->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	c->options.clock = &c->shared.clock.clock;
	c->options.journal = c->journal.store;
	c->options.each = note;
	c->options.each_context = c;
	open_guard(c);
}

void outage_case_end(struct outage_case *c)
{
	hapax_store_close(c->store);
	held_store_done(&c->held);
	store_case_done(&c->journal);
	store_case_done(&c->shared);
}

void outage_case_reopen(struct outage_case *c)
{
	hapax_store_close(c->store);
	open_guard(c);
}

struct hapax_outage outage_case_tell(struct outage_case *c)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;

	if (hapax_outage_tell(c->store, &outage, NULL) != HAPAX_OK)
		abort();
	return outage;
}

enum hapax_status outage_case_ask(struct outage_case *c, struct hapax_op *op)
{
	return hapax_store_run(c->store, op, 1, NULL);
}

enum hapax_outcome outage_case_claim(struct outage_case *c, const char *key, uint64_t *ret_token)
{
	struct hapax_op op = case_op(&c->shared, HAPAX_OP_CLAIM, key);

	(void)outage_case_ask(c, &op);
	*ret_token = op.token;
	return op.outcome;
}

enum hapax_status outage_case_complete(struct outage_case *c, const char *key, uint64_t token)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES,
		.body = {"paid", 4},
	};
	struct hapax_op op = case_op_token(&c->shared, HAPAX_OP_COMPLETE, key, token);

	op.result = &result;
	return outage_case_ask(c, &op);
}

bool outage_case_replays(struct outage_case *c, const char *key)
{
	struct hapax_op op = case_op(&c->shared, HAPAX_OP_CLAIM, key);

	op.record = &c->shared.record;
	op.buf = c->shared.buf;
	return outage_case_ask(c, &op) == HAPAX_OK && op.outcome == HAPAX_OUTCOME_REPLAY &&
		case_bytes_are(op.record->result.body, "paid", 4);
}

void outage_case_go_away(struct outage_case *c)
{
	c->held.away = HAPAX_ERR_UNAVAILABLE;
}

void outage_case_come_back(struct outage_case *c)
{
	c->held.away = HAPAX_OK;
	store_case_advance(&c->shared, 20000);
	(void)hapax_outage_tick(c->store);
}
