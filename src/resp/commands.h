/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the functions that plan commands, by file; command_table.c names them.
 */
#ifndef HX_RESP_COMMANDS_H
#define HX_RESP_COMMANDS_H

#include "resp/resp_command.h"

/* cmd_connection.c */
hx_resp_plan_fn hx_resp_plan_auth, hx_resp_plan_echo, hx_resp_plan_hello, hx_resp_plan_ping,
	hx_resp_plan_quit, hx_resp_plan_reset, hx_resp_plan_select;

/* cmd_client.c */
hx_resp_plan_fn hx_resp_plan_client_getname, hx_resp_plan_client_id, hx_resp_plan_client_info,
	hx_resp_plan_client_list, hx_resp_plan_client_no_evict, hx_resp_plan_client_reply,
	hx_resp_plan_client_setinfo, hx_resp_plan_client_setname;

/* cmd_introspect.c */
hx_resp_plan_fn hx_resp_plan_command, hx_resp_plan_command_count, hx_resp_plan_command_docs,
	hx_resp_plan_command_info, hx_resp_plan_command_list, hx_resp_plan_config_get,
	hx_resp_plan_help, hx_resp_plan_info, hx_resp_plan_ok, hx_resp_plan_time;

/* cmd_set.c */
hx_resp_plan_fn hx_resp_plan_del, hx_resp_plan_getdel, hx_resp_plan_getset, hx_resp_plan_set,
	hx_resp_plan_setex, hx_resp_plan_setnx;

/* cmd_get.c: looks up all keys; the command's finish writes the reply. */
hx_resp_plan_fn hx_resp_plan_lookup;
hx_resp_finish_fn hx_resp_finish_exists, hx_resp_finish_get, hx_resp_finish_mget,
	hx_resp_finish_strlen, hx_resp_finish_ttl, hx_resp_finish_type;

/* cmd_expire.c */
hx_resp_plan_fn hx_resp_plan_expire, hx_resp_plan_getex, hx_resp_plan_persist;

/* cmd_keyspace.c */
hx_resp_plan_fn hx_resp_plan_dbsize, hx_resp_plan_flush, hx_resp_plan_keys, hx_resp_plan_scan;

/* cmd_multi.c */
hx_resp_plan_fn hx_resp_plan_discard, hx_resp_plan_exec, hx_resp_plan_multi;

/* cmd_script.c */
hx_resp_plan_fn hx_resp_plan_delex, hx_resp_plan_eval, hx_resp_plan_evalsha,
	hx_resp_plan_script_exists, hx_resp_plan_script_load;

/* cmd_hapax.c */
hx_resp_plan_fn hx_resp_plan_hapax_check, hx_resp_plan_hapax_claim, hx_resp_plan_hapax_forget,
	hx_resp_plan_hapax_resolve, hx_resp_plan_hapax_token;
hx_resp_finish_fn hx_resp_finish_hapax_lookup;

/* Leaves MULTI and drops the queued commands. */
void hx_resp_multi_forget(struct hx_resp_session *session);

#endif
