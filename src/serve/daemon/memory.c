/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/memory.h"

#include <assert.h>

#include "base/io.h"
#include "base/macros.h"
#include "base/memory_limit.h"
#include "observe/logger/logger.h"

static size_t to_size(uint64_t value)
{
	return value < SIZE_MAX ? (size_t)value : SIZE_MAX;
}

static void set_limits(struct hx_memory *memory, const struct hx_config *config)
{
	size_t listeners = to_size(memory->plan.listeners);
	size_t half = listeners / 2;

	hx_budget_limit(&memory->listeners, listeners);
	hx_budget_limit(
		&memory->readers, half < HX_MEMORY_READERS_MAX ? half : HX_MEMORY_READERS_MAX);
	hx_budget_limit(&memory->files, to_size(config->http.max_temp_bytes));
}

void hx_memory_plan(struct hx_memory *memory, const struct hx_config *config)
{
	hx_config_memory_plan(config, hx_memory_limit(hx_io_system(), ""), &memory->plan);
	memory->readers.parent = &memory->listeners;
	set_limits(memory, config);
}

void hx_memory_configure(struct hx_memory *memory, const struct hx_config *config)
{
	struct hx_config_memory_plan plan;

	hx_config_memory_plan(config, memory->plan.limit, &plan);
	memory->plan.listeners = plan.listeners;
	set_limits(memory, config);
}

size_t hx_memory_reader_share(const struct hx_memory *memory, size_t count, bool is_wide)
{
	size_t max = hx_budget_max(&memory->readers);
	size_t wide = max - max / 4;

	assert(count > 1);
	if (max == 0)
		return SIZE_MAX;
	return is_wide ? wide : (max - wide) / (count - 1);
}

static void warn_of_tmpfs(const struct hx_memory *memory, const char *folder, struct hx_logger *log)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("folder", folder),
		HX_LOGGER_UNSIGNED("temporary_files", hx_budget_max(&memory->files)),
		HX_LOGGER_TEXT(
			"hint",
			"set TMPDIR to a directory on a disk, or lower "
			"http.max_temp_bytes"),
	};

	if (!hx_io_path_is_in_memory(folder))
		return;
	hx_logger(
		log, HX_LOGGER_WARN,
		"temporary files are in memory and not counted in memory.limit", fields,
		HX_COUNT(fields));
}

void hx_memory_say(const struct hx_memory *memory, const char *folder, struct hx_logger *log)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_UNSIGNED("limit", memory->plan.limit),
		HX_LOGGER_UNSIGNED("listeners", memory->plan.listeners),
		HX_LOGGER_UNSIGNED("large_bodies", hx_budget_max(&memory->readers)),
		HX_LOGGER_UNSIGNED("store", memory->plan.store),
		HX_LOGGER_UNSIGNED("temporary_files", hx_budget_max(&memory->files)),
	};

	hx_logger(log, HX_LOGGER_INFO, "memory limits", fields, HX_COUNT(fields));
	warn_of_tmpfs(memory, folder == NULL ? "/tmp" : folder, log);
}
