/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the variables that the program reads.
 */
#ifndef HX_CLI_ENVIRONMENT_H
#define HX_CLI_ENVIRONMENT_H

/* A variable's value, or NULL when it is absent or empty. Borrowed, lives for ever. */
const char *hx_environment(const char *name);

#endif
