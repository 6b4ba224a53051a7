/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/memory.h"

#include "base/io.h"
#include "base/memory_limit.h"
#include "observe/log/log.h"

static size_t to_size(uint64_t value)
{
	return value < SIZE_MAX ? (size_t)value : SIZE_MAX;
}

void hx_memory_plan(struct hx_memory *memory, const struct hx_config *config)
{
	hx_config_memory_plan(config, hx_memory_limit(hx_io_system(), ""), &memory->plan);
	hx_budget_limit(&memory->listeners, to_size(memory->plan.listeners));
	hx_budget_limit(&memory->files, to_size(config->http.max_temp_bytes));
}

void hx_memory_configure(struct hx_memory *memory, const struct hx_config *config)
{
	struct hx_config_memory_plan plan;

	hx_config_memory_plan(config, memory->plan.limit, &plan);
	memory->plan.listeners = plan.listeners;
	hx_budget_limit(&memory->listeners, to_size(plan.listeners));
	hx_budget_limit(&memory->files, to_size(config->http.max_temp_bytes));
}

size_t hx_memory_scratch_max(const struct hx_memory *memory, size_t size_max)
{
	size_t max = hx_budget_max(&memory->listeners);

	if (max == 0 || max > size_max)
		return size_max;
	return max > HX_MEMORY_SCRATCH_MIN ? max : HX_MEMORY_SCRATCH_MIN;
}

void hx_memory_say(const struct hx_memory *memory, struct hx_log *log)
{
	const struct hx_log_field fields[] = {
		HX_LOG_UNSIGNED("limit", memory->plan.limit),
		HX_LOG_UNSIGNED("listeners", memory->plan.listeners),
		HX_LOG_UNSIGNED("store", memory->plan.store),
		HX_LOG_UNSIGNED("temporary_files", hx_budget_max(&memory->files)),
	};

	hx_log(log, HX_LOG_INFO, "memory limits in bytes, 0 is none", fields,
	       sizeof(fields) / sizeof(fields[0]));
}
