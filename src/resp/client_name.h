/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_name.h - the name of a client: printable, without blanks.
 */
#ifndef HX_RESP_CLIENT_NAME_H
#define HX_RESP_CLIENT_NAME_H

#include "resp/resp_command.h"

/* Whether name is valid. If not, the call is refused with the message of Redis. */
bool hx_resp_client_name_check(struct hx_resp_call *call, struct hapax_bytes name);

/* target is one of the session's names; CLIENT LIST of others reads it. */
void hx_resp_client_name_set(
	struct hx_resp_session *session, char target[HX_RESP_NAME_SIZE], struct hapax_bytes name);

#endif
