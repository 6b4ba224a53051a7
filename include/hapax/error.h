/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - failures in a form that a program can branch on.
 *
 * Every fallible call returns enum hapax_status and takes struct hapax_error *err last; err may be
 * NULL. The caller owns it, and it is written only on failure. Outcomes such as "already done" or
 * "in progress" are not errors: they come with HAPAX_OK.
 *
 * hapax always distinguishes "nothing was done" from "unknown". Only HAPAX_ERR_UNCERTAIN means
 * unknown.
 *
 * Threads: any.
 */
#ifndef HAPAX_ERROR_H
#define HAPAX_ERROR_H

#include <hapax/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hapax_status {
	HAPAX_OK = 0,
	HAPAX_ERR_INVALID = -1,     /* The caller broke the contract. Nothing was done. */
	HAPAX_ERR_NO_MEMORY = -2,   /* Nothing was done. */
	HAPAX_ERR_LIMIT = -3,       /* A configured limit was reached. Nothing was done. */
	HAPAX_ERR_UNAVAILABLE = -4, /* The store could not be reached. Nothing was done. */
	HAPAX_ERR_UNCERTAIN = -5,   /* The store may or may not have applied the call. */
	HAPAX_ERR_FENCED = -6,      /* The token does not hold the key. Stop the work. */
	HAPAX_ERR_CORRUPT = -7,     /* Stored bytes failed a check. */
	HAPAX_ERR_UNSUPPORTED = -8, /* This store lacks the capability. */
	HAPAX_ERR_HANDLER = -9,     /* A callback of the caller failed, or stopped the call. */
	HAPAX_ERR_FAILED = -10,     /* Latched after an I/O error. Nothing was done; reopen. */
};

enum { HAPAX_ERROR_MESSAGE_SIZE = 256 };

struct hapax_error {
	enum hapax_status status;
	int os_errno;                           /* errno at the failure, or 0 */
	char message[HAPAX_ERROR_MESSAGE_SIZE]; /* one line of UTF-8 without control characters */
};

/* A short lower-case word: "ok", "invalid", ... Never NULL. */
HAPAX_API const char *hapax_status_name(enum hapax_status status);

/* The same call may succeed later, and repeating it now does no harm. */
HAPAX_API int hapax_status_is_retryable(enum hapax_status status);

/* The call may have taken effect. Settle it as the call's comment says. */
HAPAX_API int hapax_status_is_uncertain(enum hapax_status status);

#ifdef __cplusplus
}
#endif

#endif
