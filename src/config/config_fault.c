/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_fault.c - faults of a config, each with its place.
 */
#include "config/config_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

/* An error has 256 bytes in total, most of them for the fault itself. */
enum { TEXT_SIZE = 1024, PLACE_SIZE = 512, LINE_NAME_MAX = 400, ERROR_NAME_MAX = 100 };

/* A path that is too long loses its beginning: the end tells files apart. */
static void format_place(const struct hx_place *place, size_t name_max, char text[PLACE_SIZE])
{
	size_t size = strlen(place->name);
	const char *name = size > name_max ? place->name + size - name_max : place->name;

	if (place->line == 0)
		(void)snprintf(text, PLACE_SIZE, "%s", name);
	else
		(void)snprintf(
			text, PLACE_SIZE, "%s:%u:%u", name, (unsigned)place->line,
			(unsigned)place->column);
}

void hx_fault(
	struct hx_faults *faults, enum hapax_status status, const struct hx_place *place,
	const char *format, ...)
{
	char where[PLACE_SIZE];
	char text[TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (faults->count++ == 0) {
		faults->status = status;
		format_place(place, ERROR_NAME_MAX, where);
		(void)hx_error_set(faults->err, status, 0, "%s: %s", where, text);
	}
	if (faults->lines == NULL)
		return;
	format_place(place, LINE_NAME_MAX, where);
	/* Faults that do not fit are dropped: there are enough to fix. */
	if (faults->count <= HX_FAULTS_MAX)
		(void)hx_buf_printf(faults->lines, "%s: %s\n", where, text);
	else if (faults->count == HX_FAULTS_MAX + 1)
		(void)hx_buf_printf(faults->lines, "and more errors\n");
}

void hx_fault_no_memory(struct hx_faults *faults, const struct hx_place *place)
{
	hx_fault(faults, HAPAX_ERR_NO_MEMORY, place, "not enough memory to read the configuration");
}
