/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome_out.h - print the answer to a claim or a check: exit code, line, JSON.
 */
#ifndef HX_CLI_PRINT_OUTCOME_OUT_H
#define HX_CLI_PRINT_OUTCOME_OUT_H

#include <hapax/store.h>

#include "cli/print/out.h"

/* HX_EXIT_OK: first or acquired; HX_EXIT_NO, HX_EXIT_BUSY, HX_EXIT_MISMATCH. */
int hx_outcome_out_exit(enum hapax_outcome outcome);

/* Print in one line why the caller may not continue. op->record is set. */
void hx_outcome_out_text(struct hx_out *out, const struct hapax_op *op, int64_t now_ms);

/* Print one document. A claim has more members than a check: holder, result. */
void hx_outcome_out_json(struct hx_out *out, const struct hapax_op *op);

#endif
