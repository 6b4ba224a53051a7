/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/tx.h"

#include <assert.h>

#include <hapax/tx.h>

#include "base/error.h"
#include "processor/hapax_process.h"
#include "processor/processor.h"
#include "store/core.h"

enum hapax_status hx_tx_begin(struct hx_tx *tx, struct hapax_store *store, struct hapax_error *err)
{
	assert(tx->store == NULL);
	assert(tx->failure.status == HAPAX_OK);
	if (!hx_store_has_savepoints(store))
		return HAPAX_OK;
	tx->store = store;
	return hx_store_savepoint(store, HAPAX_SAVEPOINT_BEGIN, err);
}

static bool is_to_be_kept(enum hapax_run_outcome outcome)
{
	return outcome == HAPAX_RUN_OK || outcome == HAPAX_RUN_DEFINITIVE;
}

enum hapax_run_outcome hx_tx_handle(
	struct hx_tx *tx, struct hapax_work *work, hapax_handler_fn *handler, void *context)
{
	enum hapax_savepoint ending = HAPAX_SAVEPOINT_UNDO;
	enum hapax_run_outcome outcome = HAPAX_RUN_TRANSIENT;
	enum hapax_status status;
	struct hapax_error err;

	if (tx->store == NULL)
		return handler(work, context);
	assert(tx->failure.status == HAPAX_OK);
	status = hx_store_savepoint(tx->store, HAPAX_SAVEPOINT_HANDLER, &err);
	if (status == HAPAX_OK) {
		outcome = handler(work, context);
		if (is_to_be_kept(outcome))
			ending = HAPAX_SAVEPOINT_KEEP;
		status = hx_store_savepoint(tx->store, ending, &err);
	}
	/* An error of the handler is its failure and is undone; any other error is ours. */
	if (status != HAPAX_OK && status != HAPAX_ERR_INVALID)
		tx->failure = err;
	else
		(void)hx_store_savepoint(tx->store, HAPAX_SAVEPOINT_LAST, NULL);
	/* What a failed handler did is not kept. */
	assert(is_to_be_kept(outcome) == (ending == HAPAX_SAVEPOINT_KEEP));
	if (status == HAPAX_OK)
		return outcome;
	return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, err.message);
}

void hx_tx_end(struct hx_tx *tx, struct hapax_answer *answer)
{
	bool is_kept = tx->failure.status == HAPAX_OK && answer->status == HAPAX_OK;
	struct hapax_error err = {0};

	if (tx->store == NULL)
		return;
	if (hx_store_savepoint(
		    tx->store, is_kept ? HAPAX_SAVEPOINT_KEEP : HAPAX_SAVEPOINT_UNDO, &err) !=
		    HAPAX_OK &&
	    tx->failure.status == HAPAX_OK)
		tx->failure = err;
	if (tx->failure.status == HAPAX_OK)
		return;
	answer->status = tx->failure.status;
	if (answer->outcome != HAPAX_OUTCOME_ACQUIRED)
		answer->outcome = HAPAX_OUTCOME_NONE;
	else if (answer->status == HAPAX_ERR_HANDLER)
		answer->run_outcome = HAPAX_RUN_TRANSIENT;
}

void hx_tx_cancel(struct hx_tx *tx)
{
	assert(tx->failure.status == HAPAX_OK);
	if (tx->store != NULL)
		(void)hx_store_savepoint(tx->store, HAPAX_SAVEPOINT_UNDO, NULL);
}

enum hapax_status hapax_tx_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	hapax_handler_fn *handler, void *context, struct hapax_answer *answer,
	struct hapax_buf *buf, struct hapax_error *err)
{
	if (processor != NULL && !hx_store_has_savepoints(processor->store))
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"store '%s' cannot share a transaction with its caller; join the "
			"connection (hapax_postgres_join(), hapax_sqlite_join())",
			hapax_store_url(processor->store));
	return hx_processor_process(processor, request, NULL, handler, context, answer, buf, err);
}
