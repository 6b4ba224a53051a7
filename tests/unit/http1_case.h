/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_case.h - a case of the codec's tables: bytes, and what becomes of them.
 *
 * What is taken is written as "POST / keep 100 |body|" for each message (100: the client
 * waits for it), responses as "200 close |body|". What is refused ends in "400@17", the
 * status that is deserved and the offset of the byte that decided.
 */
#ifndef TEST_UNIT_HTTP1_CASE_H
#define TEST_UNIT_HTTP1_CASE_H

#include <stddef.h>

enum http1_setting {
	USUAL, /* the default limits */
	SMALL, /* line 32, head 128, 4 fields, body 16 */
	HEAD,  /* the response is to HEAD */
};

struct http1_case {
	enum http1_setting setting;
	const char *data;
	size_t size;
	unsigned status;      /* 0: taken, 1: not complete */
	size_t offset;        /* of what is refused */
	const char *expected; /* of what is taken */
};

#define TAKEN(setting, text, expected)                          \
	{                                                       \
		setting, text, sizeof(text) - 1, 0, 0, expected \
	}
#define REFUSED(setting, status, before, from)                                                  \
	{                                                                                       \
		setting, before from, sizeof(before from) - 1, status, sizeof(before) - 1, NULL \
	}
#define UNFINISHED(setting, text)                           \
	{                                                   \
		setting, text, sizeof(text) - 1, 1, 0, NULL \
	}

#endif
