/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration_text.h - read durations from a command line.
 */
#ifndef HX_CLI_INPUT_DURATION_TEXT_H
#define HX_CLI_INPUT_DURATION_TEXT_H

#include "cli/frame/command.h"

/*
 * Read the option with this id into *ret_ms: above 0 and at most ms_max. Without a value *ret_ms
 * stays as it is. HX_EXIT_OK, or HX_EXIT_USAGE after a message.
 */
int hx_duration_text_read(const struct hx_invocation *inv, int id, int64_t ms_max, int64_t *ret_ms);

#endif
