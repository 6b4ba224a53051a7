/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - messages on standard error: each fault once.
 *
 *	hapax: check: key is empty
 *	hint: a key is 1 to 1,024 bytes
 *
 * With -o json each is one document:
 *
 *	{"command":"check","error":"key is empty","hint":"a key is 1 to 1,024 bytes","exit":64}
 *
 * Control and hidden characters are escaped (text.h), so that the name of a file or key cannot act
 * on the terminal. command is NULL before one is known. A message that begins with "note: ",
 * "warning: " or "ready: " is not a fault.
 */
#ifndef HX_CLI_FRAME_REPORT_H
#define HX_CLI_FRAME_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/error.h>

enum { HX_REPORT_SIZE = 2048 + 128 };

/* From now on: faults as JSON; no notes, hints and progress. */
void hx_report_configure(bool is_json, bool is_quiet);
bool hx_report_is_quiet(void);

/* The command ends with code, which the last fault names. */
void hx_report_finish(int code);

__attribute__((format(printf, 2, 3))) void hx_report(const char *command, const char *format, ...);
__attribute__((format(printf, 1, 2))) void hx_report_hint(const char *format, ...);

/* Format the line of hx_report() for a caller that must not block. Returns its size. */
__attribute__((format(printf, 3, 4))) size_t hx_report_format(
	char line[HX_REPORT_SIZE], const char *command, const char *format, ...);

/* Print a line about the data: which store was read, how many keys there were. */
__attribute__((format(printf, 1, 2))) void hx_report_line(const char *format, ...);

/* As hx_report(), and returns HX_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int hx_report_usage(
	const char *command, const char *format, ...);

/* The same for a mistake with a remedy: hint is the next line. */
__attribute__((format(printf, 3, 4))) int hx_report_misuse(
	const char *command, const char *hint, const char *format, ...);

/* Returns HX_EXIT_OS. */
int hx_report_no_memory(const char *command);

/*
 * Report a failed library call, with a hint if the operating system named the cause. A caller that
 * knows more adds its own hint. Returns the exit code.
 */
int hx_report_error(const char *command, const struct hapax_error *err);

/* The exit code of a status other than HAPAX_OK. */
int hx_exit_of_status(enum hapax_status status);

#endif
