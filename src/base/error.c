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

#include "base/utf8.h"

/* A message that did not fit ends with a whole character. */
static void cut(char *message)
{
	size_t size = strlen(message);
	size_t last = size;
	uint32_t code;

	while (last > 0 && ((unsigned char)message[--last] & 0xc0) == 0x80)
		continue;
	if (hx_utf8_size((struct hapax_bytes){message + last, size - last}, &code) == 0)
		message[last] = '\0';
}

/*
 * Messages quote what came from outside; no byte of it may break a line, a terminal
 * or a JSON text.
 */
static void flatten(char *message)
{
	size_t size = strlen(message);
	size_t kept = 0;

	while (size > 0 && (message[size - 1] == '\n' || message[size - 1] == '\r'))
		size--;
	for (size_t at = 0; at < size;) {
		uint32_t code = 0;
		size_t bytes = hx_utf8_size((struct hapax_bytes){message + at, size - at}, &code);

		if (bytes == 0 || hx_utf8_is_control(code)) {
			message[kept++] = bytes == 0 ? '?' : ' ';
			at += bytes == 0 ? 1 : bytes;
			continue;
		}
		memmove(message + kept, message + at, bytes);
		kept += bytes;
		at += bytes;
	}
	message[kept] = '\0';
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
	int size;

	assert(status != HAPAX_OK);
	assert(os_errno >= 0);
	if (err == NULL)
		return status;

	va_start(args, format);
	size = vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	if (size < 0)
		message[0] = '\0';
	else if ((size_t)size >= sizeof(message))
		cut(message);
	flatten(message);
	if (os_errno != 0)
		append_os_text(message, os_errno);

	err->status = status;
	err->os_errno = os_errno;
	memcpy(err->message, message, sizeof(message));
	errno = errno_before;
	return status;
}

enum hapax_status hx_error_status_of(int os_errno)
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
