/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_multi.c - MULTI, EXEC, DISCARD. The queue holds commands as a client would send them; EXEC
 * reads them again (resp_session.c).
 */
#include "base/buf.h"
#include "resp/resp_command.h"
#include "resp/commands.h"

void hx_resp_multi_forget(struct hx_resp_session *session)
{
	session->is_queuing = false;
	session->is_dirty = false;
	session->queue_count = 0;
	hx_buf_done(&session->queue);
}

void hx_resp_plan_multi(struct hx_resp_call *call)
{
	if (call->session->is_queuing) {
		hx_resp_refuse(call, "ERR MULTI calls can not be nested");
		return;
	}
	call->session->is_queuing = true;
	(void)hx_resp_put_simple(call->text, "OK");
}

void hx_resp_plan_discard(struct hx_resp_call *call)
{
	if (!call->session->is_queuing) {
		hx_resp_refuse(call, "ERR DISCARD without MULTI");
		return;
	}
	hx_resp_multi_forget(call->session);
	(void)hx_resp_put_simple(call->text, "OK");
}

void hx_resp_plan_exec(struct hx_resp_call *call)
{
	struct hx_resp_session *session = call->session;

	if (!session->is_queuing) {
		hx_resp_refuse(call, "ERR EXEC without MULTI");
		return;
	}
	if (session->is_dirty) {
		hx_resp_multi_forget(session);
		hx_resp_refuse(call, "EXECABORT Transaction discarded because of previous errors.");
		return;
	}
	/* The replies of the queued commands follow separately. */
	(void)hx_resp_put_array(call->text, session->queue_count);
	session->is_queuing = false;
	session->exec_count = session->queue_count;
	session->exec_left = session->queue_count;
	session->exec_at = 0;
	session->queue_count = 0;
}
