/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - the variables that the program reads.
 */
#ifndef HX_CLI_FRAME_ENVIRONMENT_H
#define HX_CLI_FRAME_ENVIRONMENT_H

/* A variable's value, or NULL when it is absent or empty. Borrowed, lives for ever. */
const char *hx_environment(const char *name);

/*
 * $HOME, else the home that the system knows of the user we act for: a service may run
 * without the variable. NULL: there is none. text is room for it.
 */
enum { HX_HOME_ROOM_SIZE = 16384 };
const char *hx_environment_home(char text[HX_HOME_ROOM_SIZE]);

#endif
