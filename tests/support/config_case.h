/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_case.h - configurations from a text, in an environment of the test's own. One thread.
 */
#ifndef TEST_SUPPORT_CONFIG_CASE_H
#define TEST_SUPPORT_CONFIG_CASE_H

#include <hapax/hapax.h>

#include "config/config.h"

/* Why the last text was refused; "" if it was not. */
extern struct hapax_error config_case_err;

/* Pairs of names and values, ended by NULL; NULL: no variable is set. */
extern const char *const *config_case_variables;

/* For cmocka: no variables. */
int config_case_set_up(void **state);

const char *config_case_variable(const char *name);

/* The file is called h.yaml. NULL: refused; load fails the test then. */
struct hx_config *config_case_try(const char *text, struct hapax_buf *faults);
struct hx_config *config_case_load(const char *text);

#endif
