/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the environment variables that hapax reads.
 */
#ifndef HX_CLI_FRAME_ENVIRONMENT_H
#define HX_CLI_FRAME_ENVIRONMENT_H

/* A variable's value, or NULL if it is absent or empty. Borrowed; never freed. */
const char *hx_environment(const char *name);

/*
 * $HOME, else the effective user's home from the system: a service may run without the variable.
 * NULL: none. text is a buffer for it.
 */
enum { HX_HOME_ROOM_SIZE = 16384 };
const char *hx_environment_home(char text[HX_HOME_ROOM_SIZE]);

#endif
