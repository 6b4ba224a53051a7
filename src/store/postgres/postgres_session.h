/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_session.h - the greeting: our settings, the server's properties, the ledger's version,
 * and the guarantee.
 *
 * Each step is one statement. The greeting is repeated after every reconnect, because a different
 * server may answer.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_SESSION_H
#define HX_STORE_POSTGRES_POSTGRES_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

#include <hapax/clock.h>
#include <hapax/error.h>

#include "base/buf.h"
#include "store/postgres/postgres_place.h"

enum { HX_POSTGRES_SESSION_STEPS = 3 };

/* The version of the ledger that this program reads and writes. */
enum { HX_POSTGRES_VERSION = 4 };

enum { HX_POSTGRES_GUARANTEE_SIZE = 200 };

/* The settings that decide the guarantee, as they are in our sessions. */
struct hx_postgres_server {
	bool syncs;              /* fsync */
	bool writes_whole_pages; /* full_page_writes */
	bool is_logged;          /* no table of the ledger is UNLOGGED */
	bool has_sync_standbys;  /* synchronous_standby_names */
	char commit[16];         /* synchronous_commit; "off" only in the caller's own session */
};

/* The prepared statement of hapax_operate(). */
#define HX_POSTGRES_OPERATE "hapax_operate"

struct hx_postgres_session {
	const struct hx_postgres_place *place;
	int64_t timeout_ms;
	bool must_be_durable; /* required, or promised before */
	/*
	 * A test clock replaces the server's. Its time is epoch_ms, which the ledger keeps, plus
	 * the time since boot. NULL: the server's clock.
	 */
	const struct hapax_clock *clock;
	_Atomic int64_t epoch_ms; /* written by the greeting thread, read by all */
	bool is_durable;
	char guarantee[HX_POSTGRES_GUARANTEE_SIZE];
	struct hapax_buf sql; /* scratch */
};

void hx_postgres_session_init(
	struct hx_postgres_session *session, const struct hx_postgres_place *place,
	int64_t timeout_ms, const struct hapax_clock *clock);
void hx_postgres_session_done(struct hx_postgres_session *session);

/* Describe what an answer survives, in a sentence. True: a power cut. */
bool hx_postgres_guarantee(
	const struct hx_postgres_server *server, char guarantee[HX_POSTGRES_GUARANTEE_SIZE]);

/*
 * The guarantee on the caller's connection, with its current settings. Blocks; changes nothing of
 * the connection.
 */
enum hapax_status hx_postgres_session_look(
	struct hx_postgres_session *session, PGconn *conn, struct hapax_error *err);

/* Give libpq the statement of a step. */
enum hapax_status hx_postgres_session_say(
	struct hx_postgres_session *session, PGconn *conn, unsigned step, struct hapax_error *err);

/* Process its answer. Not OK: do not use this server; err is the reason. */
enum hapax_status hx_postgres_session_reply(
	struct hx_postgres_session *session, const PGresult *result, unsigned step,
	struct hapax_error *err);

/*
 * Write the statement that reads the version of the ledger, and the test clock, to session->sql;
 * and take its answer, in text form.
 */
enum hapax_status hx_postgres_session_ledger_sql(struct hx_postgres_session *session);
enum hapax_status hx_postgres_session_take_ledger(
	struct hx_postgres_session *session, const PGresult *result, struct hapax_error *err);

/* Report a ledger of a different version, with a hint. 0: there is none. */
enum hapax_status hx_postgres_version_error(
	int64_t version, const char *schema, struct hapax_error *err);

/* The time to send; -1 for the server's clock. */
int64_t hx_postgres_session_now_ms(const struct hx_postgres_session *session);

#endif
