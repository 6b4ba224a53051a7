/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice.h - the key strategy that fits a message without an ID, for reports.
 *
 * A header or a member of the JSON data whose name says that it is an ID; else the content. It is
 * advice: only an operator knows whether the value is different for each message.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_ADVICE_H
#define HX_SOURCE_CONSUME_ADVICE_H

#include "source/consume/envelope.h"

enum { HX_ADVICE_SIZE = 96 };

/* "header:X-Order-Id", "field:data.order_id" or "content". */
void hx_advice_strategy(const struct hx_envelope *envelope, char ret_strategy[HX_ADVICE_SIZE]);

#endif
