/* SPDX-License-Identifier: Apache-2.0 */
/*
 * banned.h - functions that are easy to get wrong do not compile here.
 *
 * The build puts this in front of every file with -include. The headers that declare the functions
 * come first, so that only calls are hit. Use these instead: hx_buf_*, snprintf, hx_clock_*,
 * hx_random_*, strtol with a check.
 */
#ifndef HX_BANNED_H
#define HX_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HX_BANNED(name) hx_banned_function_##name

/* They write past the end, or leave the end without a NUL. */
#undef strcpy
#define strcpy(...) HX_BANNED(strcpy)
#undef strcat
#define strcat(...) HX_BANNED(strcat)
#undef strncpy
#define strncpy(...) HX_BANNED(strncpy)
#undef strncat
#define strncat(...) HX_BANNED(strncat)
#undef stpcpy
#define stpcpy(...) HX_BANNED(stpcpy)
#undef sprintf
#define sprintf(...) HX_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) HX_BANNED(vsprintf)
#undef gets
#define gets(...) HX_BANNED(gets)

/* They keep state that all threads share. */
#undef strtok
#define strtok(...) HX_BANNED(strtok)
#undef strerror
#define strerror(...) HX_BANNED(strerror)
#undef gmtime
#define gmtime(...) HX_BANNED(gmtime)
#undef localtime
#define localtime(...) HX_BANNED(localtime)
#undef ctime
#define ctime(...) HX_BANNED(ctime)
#undef ctime_r
#define ctime_r(...) HX_BANNED(ctime_r)
#undef asctime
#define asctime(...) HX_BANNED(asctime)
#undef asctime_r
#define asctime_r(...) HX_BANNED(asctime_r)

/* They bypass the seams for time and randomness. */
#undef time
#define time(...) HX_BANNED(time)
#undef rand
#define rand(...) HX_BANNED(rand)
#undef srand
#define srand(...) HX_BANNED(srand)
#undef random
#define random(...) HX_BANNED(random)
#undef srandom
#define srandom(...) HX_BANNED(srandom)

/* They cannot report that the text was not a number, or that the name was taken. */
#undef atoi
#define atoi(...) HX_BANNED(atoi)
#undef atol
#define atol(...) HX_BANNED(atol)
#undef atoll
#define atoll(...) HX_BANNED(atoll)
#undef atof
#define atof(...) HX_BANNED(atof)
#undef mktemp
#define mktemp(...) HX_BANNED(mktemp)
#undef tmpnam
#define tmpnam(...) HX_BANNED(tmpnam)
#undef tempnam
#define tempnam(...) HX_BANNED(tempnam)

#endif
