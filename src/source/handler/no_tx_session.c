/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_tx_session.c - replaces tx_session.c in a build without PostgreSQL.
 */
#include "base/error.h"
#include "source/handler/tx_session.h"

enum hapax_status hx_tx_sessions_open(
	struct hx_tx_sessions *tx_sessions, const struct hapax_store *store, const char *group,
	struct hapax_error *err)
{
	(void)tx_sessions, (void)store, (void)group;
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"transactions need PostgreSQL, which is not built in; build with "
		"-Dpostgres=enabled");
}

void hx_tx_sessions_close(struct hx_tx_sessions *tx_sessions)
{
	(void)tx_sessions;
}

enum hapax_run_outcome hx_tx_session_run_work(struct hapax_work *work, void *context)
{
	(void)context;
	return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, "PostgreSQL is not built in");
}

enum hapax_status hx_tx_sessions_offset(
	struct hx_tx_sessions *tx_sessions, const char *topic, int32_t partition, int64_t *ret_next,
	struct hapax_error *err)
{
	(void)tx_sessions, (void)topic, (void)partition, (void)ret_next;
	return hx_error_set(err, HAPAX_ERR_UNSUPPORTED, 0, "PostgreSQL is not built in");
}
