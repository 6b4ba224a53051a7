/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_name.h - how a client calls itself: printable, without blanks.
 */
#ifndef HX_RESP_CLIENT_NAME_H
#define HX_RESP_CLIENT_NAME_H

#include "resp/resp_command.h"

/* May it be a name? Else it is refused, in the words of Redis. */
bool hx_resp_client_name_check(struct hx_resp_call *call, struct hapax_bytes name);

/* Keep it. */
void hx_resp_client_name_set(char target[HX_RESP_NAME_SIZE], struct hapax_bytes name);

#endif
