/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - statuses and messages.
 */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Messages quote what came from outside; no byte of it may break a line or a terminal. */
static void flatten(char *message)
{
	size_t size = strlen(message);

	while (size > 0 && (message[size - 1] == '\n' || message[size - 1] == '\r'))
		message[--size] = '\0';
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)message[i] < ' ' || message[i] == 0x7f)
			message[i] = ' ';
	}
}

static void append_os_text(char message[HAPAX_ERROR_MESSAGE_SIZE], int os_errno)
{
	char scratch[128];
	size_t size = strlen(message);

	(void)snprintf(
		message + size, HAPAX_ERROR_MESSAGE_SIZE - size, ": %s",
		strerror_r(os_errno, scratch, sizeof(scratch)));
}

enum hapax_status hx_error_set(
	struct hapax_error *err, enum hapax_status status, int os_errno, const char *format, ...)
{
	/* Built aside, because an argument may be the message that is being replaced. */
	char message[HAPAX_ERROR_MESSAGE_SIZE] = "";
	int errno_before = errno;
	va_list args;

	assert(status != HAPAX_OK);
	assert(os_errno >= 0);
	if (err == NULL)
		return status;

	va_start(args, format);
	if (vsnprintf(message, sizeof(message), format, args) < 0)
		message[0] = '\0';
	va_end(args);
	flatten(message);
	if (os_errno != 0)
		append_os_text(message, os_errno);

	err->status = status;
	err->os_errno = os_errno;
	memcpy(err->message, message, sizeof(message));
	errno = errno_before;
	return status;
}

enum hapax_status hx_status_from_errno(int os_errno)
{
	switch (os_errno) {
	case ENOMEM: return HAPAX_ERR_NO_MEMORY;
	case EAGAIN:
	case EDQUOT:
	case EFBIG:
	case EMFILE:
	case ENFILE:
	case ENOSPC: return HAPAX_ERR_LIMIT;
	case EBADF:
	case ECHILD:
	case EINVAL:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case ENOTDIR: return HAPAX_ERR_INVALID;
	default: return HAPAX_ERR_UNAVAILABLE;
	}
}

const char *hapax_status_name(enum hapax_status status)
{
	switch (status) {
	case HAPAX_OK: return "ok";
	case HAPAX_ERR_INVALID: return "invalid";
	case HAPAX_ERR_NO_MEMORY: return "no_memory";
	case HAPAX_ERR_LIMIT: return "limit";
	case HAPAX_ERR_UNAVAILABLE: return "unavailable";
	case HAPAX_ERR_UNCERTAIN: return "uncertain";
	case HAPAX_ERR_FENCED: return "fenced";
	case HAPAX_ERR_CORRUPT: return "corrupt";
	case HAPAX_ERR_UNSUPPORTED: return "unsupported";
	case HAPAX_ERR_HANDLER: return "handler";
	case HAPAX_ERR_FAILED: return "failed";
	}
	return "unknown";
}

int hapax_status_is_retryable(enum hapax_status status)
{
	switch (status) {
	case HAPAX_ERR_NO_MEMORY:
	case HAPAX_ERR_LIMIT:
	case HAPAX_ERR_UNAVAILABLE: return 1;
	case HAPAX_OK:
	case HAPAX_ERR_INVALID:
	case HAPAX_ERR_UNCERTAIN:
	case HAPAX_ERR_FENCED:
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_UNSUPPORTED:
	case HAPAX_ERR_HANDLER:
	case HAPAX_ERR_FAILED: return 0;
	}
	return 0;
}

int hapax_status_is_uncertain(enum hapax_status status)
{
	return status == HAPAX_ERR_UNCERTAIN;
}
