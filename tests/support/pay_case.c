/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pay_case.h"

#include <stdlib.h>

#include "support/postgres_case.h"

static enum hapax_run_outcome pay(struct hapax_work *work, void *context)
{
	struct pay_case *bank = context;

	struct hapax_answer other = HAPAX_ANSWER_INIT;
	struct pay_case inner = {.conn = bank->conn, .manner = PAY};

	bank->calls++;
	/* As it comes: on a line that is cut it may fail. */
	PQclear(PQexecParams(
		bank->conn, "INSERT INTO work.trade VALUES ($1, 1)", 1, NULL,
		(const char *[]){bank->key == NULL ? "paid" : bank->key}, NULL, NULL, 0));
	switch (bank->manner) {
	case PAY: break;
	case PAY_ANOTHER:
	case FAIL_ANOTHER:
		/* One run within the other. */
		if (bank->manner == FAIL_ANOTHER)
			inner.manner = BREAK_AND_FAIL;
		(void)pay_case_process(bank->store, &inner, "within", &other);
		break;
	case FAIL: return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "the bank is closed");
	case BREAK: PQclear(PQexec(bank->conn, "SELECT nonsense")); break;
	case BREAK_AND_FAIL:
		PQclear(PQexec(bank->conn, "SELECT nonsense"));
		return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "nonsense");
	case COMMIT_ITSELF: PQclear(PQexec(bank->conn, "COMMIT")); break;
	case BEGIN_ANEW: PQclear(PQexec(bank->conn, "COMMIT; BEGIN")); break;
	case ROLL_BACK_AND_BEGIN: PQclear(PQexec(bank->conn, "ROLLBACK; BEGIN")); break;
	case VIOLATE_LATER:
		postgres_case_query(bank->conn, "INSERT INTO work.later VALUES (1), (1)");
		break;
	case RAISE_LATER:
		postgres_case_query(bank->conn, "INSERT INTO work.balanced VALUES (1)");
		break;
	case LOSE_ITS_CLAIM:
		postgres_case_query(bank->conn, "DELETE FROM ledger.hapax_record");
		break;
	}
	hapax_work_write(work, "paid", 4);
	return HAPAX_RUN_OK;
}

enum hapax_status pay_case_process(
	struct hapax_store *store, struct pay_case *bank, const char *key,
	struct hapax_answer *answer)
{
	struct hapax_processor *processor = NULL;
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_buf *buf = hapax_buf_new(65536);
	struct hapax_error err = {0};
	enum hapax_status status;

	request.key = hapax_bytes_from_text(key);
	if (hapax_processor_new(store, NULL, &processor, &err) != HAPAX_OK)
		abort();
	status = hapax_tx_process(processor, &request, pay, bank, answer, buf, &err);
	hapax_processor_free(processor);
	hapax_buf_free(buf);
	bank->err = err;
	return status;
}

enum hapax_status pay_case_trade(
	PGconn *conn, struct hapax_store *store, const char *key, enum hapax_outcome *ret_outcome)
{
	struct pay_case bank = {.conn = conn, .manner = PAY, .key = key};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	enum hapax_status status = pay_case_process(store, &bank, key, &answer);

	*ret_outcome = answer.outcome;
	return status;
}

uint64_t pay_case_token(PGconn *conn, struct hapax_store *store, const char *key)
{
	struct pay_case bank = {.conn = conn, .manner = PAY, .key = key};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	return pay_case_process(store, &bank, key, &answer) == HAPAX_OK && bank.calls == 1
		? answer.token
		: 0;
}
