/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/store_stack.h"

#include <string.h>

#include <hapax/near.h>
#include <hapax/outage.h>

#include "base/clock.h"
#include "base/io.h"
#include "observe/condition.h"
#include "observe/logger/logger.h"
#include "observe/logger/logger_line.h"
#include "store/tenant/tenant_limit.h"

/* The interval between two progress lines while the store is read. */
#define TOLD_INTERVAL_NS INT64_C(1000000000)

enum { FIELDS_MAX = 4 };

/* By the configuration in force: a reload changes it. */
static int continues(struct hapax_bytes tenant, struct hapax_bytes group, void *context)
{
	struct hx_store_stack *stack = context;
	struct hx_config *config = hx_config_current_keep(stack->current);
	const struct hx_config_scope *scope = hx_config_scope_find(config, tenant, group);
	int answer = scope->on_store_failure == HX_CONFIG_ON_STORE_FAILURE_CONTINUE;

	hx_config_release(config);
	return answer;
}

static void say(const struct hapax_record *record, enum hapax_reconciled verdict, void *context)
{
	struct hx_store_stack *stack = context;
	const struct hx_logger_field fields[FIELDS_MAX] = {
		HX_LOGGER_KEY("idempotency_key", record->key),
		HX_LOGGER_BYTES("tenant", record->tenant),
		HX_LOGGER_BYTES("group", record->group),
		HX_LOGGER_TEXT("became", hapax_reconciled_name(verdict)),
	};
	bool is_bad = verdict == HAPAX_RECONCILED_TWICE || verdict == HAPAX_RECONCILED_MISMATCH;

	/* Every run that happened twice may have cost money: log all of them. */
	if (is_bad)
		hx_logger_always(
			stack->log, HX_LOGGER_WARN, "key ran twice during a store outage", fields,
			FIELDS_MAX);
	else if (verdict != HAPAX_RECONCILED_LATER)
		hx_logger(stack->log, HX_LOGGER_INFO, "journal reconciled", fields, FIELDS_MAX);
}

/* The daemon answers nothing until the store is open: the log shows the progress. */
static void say_opening(uint64_t done, uint64_t total, void *context)
{
	struct hx_store_stack *stack = context;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_UNSIGNED("bytes_read", done),
		HX_LOGGER_UNSIGNED("bytes_total", total),
	};

	if (hx_clock_mono_ns() < stack->told_ns)
		return;
	stack->told_ns = hx_clock_mono_ns() + TOLD_INTERVAL_NS;
	hx_logger(stack->log, HX_LOGGER_INFO, "reading store", fields, 2);
}

/* Threads: the store's housekeeping. */
static void say_swept(const struct hapax_sweep *sum, int64_t took_ms, void *context)
{
	const struct hx_store_stack *stack = context;

	hx_logger_cleanup(
		stack->log, sum->remaining + sum->removed, sum->removed, sum->remaining, took_ms);
}

static enum hapax_status open_guard(
	struct hx_store_stack *stack, const struct hx_config *config, struct hapax_error *err)
{
	struct hapax_outage_options options = HAPAX_OUTAGE_OPTIONS_INIT;
	struct hapax_store_options store_options = HAPAX_STORE_OPTIONS_INIT;
	enum hapax_status status;

	hx_config_store_options(config, 0, &store_options);
	store_options.keys_max = 0;
	store_options.evict = HAPAX_EVICT_NONE;
	status = hapax_store_open(config->store.journal, &store_options, &stack->journal, err);
	if (status != HAPAX_OK)
		return status;
	options.journal = stack->journal;
	options.continues = continues;
	options.continues_context = stack;
	options.each = say;
	options.each_context = stack;
	return hapax_outage_guard(stack->store, &options, &stack->guard, err);
}

static enum hapax_status make_folder(const struct hx_config *config, struct hapax_error *err)
{
	static const char scheme[] = "file:";
	const char *path = config->store.url;

	if (!config->store.is_default || strncmp(path, scheme, sizeof(scheme) - 1) != 0)
		return HAPAX_OK;
	return hx_io_make_folders(hx_io_system(), path + sizeof(scheme) - 1, 0700, err);
}

enum hapax_status hx_store_stack_open(
	struct hx_store_stack *stack, const struct hx_config *config, uint64_t bytes_max,
	struct hx_config_current *current, struct hx_logger *log, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_near_options near_options = HAPAX_NEAR_OPTIONS_INIT;
	enum hapax_status status;

	stack->current = current;
	stack->log = log;
	hx_config_store_options(config, bytes_max, &options);
	stack->told_ns = hx_clock_mono_ns() + TOLD_INTERVAL_NS;
	options.progress = say_opening;
	options.progress_context = stack;
	options.swept = say_swept;
	options.swept_context = stack;
	status = make_folder(config, err);
	if (status == HAPAX_OK)
		status = hapax_store_open(config->store.url, &options, &stack->store, err);
	*ret_store = stack->store;
	if (status == HAPAX_OK && config->store.journal[0] != '\0') {
		status = open_guard(stack, config, err);
		*ret_store = stack->guard;
	}
	near_options.age_ms_max = config->store.near_cache_ms;
	if (status == HAPAX_OK && config->store.near_cache_ms != 0) {
		status = hapax_near_open(*ret_store, &near_options, &stack->near, err);
		*ret_store = stack->near;
	}
	if (status == HAPAX_OK && config->store.max_keys_per_tenant != 0) {
		status = hx_tenant_limit_open(*ret_store, stack->store, &stack->limit, err);
		*ret_store = stack->limit;
	}
	return status;
}

/* Stores that write local files: a client of a remote store does not know the state of its disk. */
bool hx_store_stack_can_latch(const struct hx_store_stack *stack)
{
	const char *name = hapax_store_name(stack->store);

	return strcmp(name, "file") == 0 || strcmp(name, "sqlite") == 0;
}

void hx_store_stack_watch(struct hx_store_stack *stack, struct hx_conditions *conditions)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;

	if (stack->guard == NULL || hapax_outage_tell(stack->guard, &outage, NULL) != HAPAX_OK)
		return;
	/* It may have failed and recovered since the last check. */
	if (outage.outages != stack->outages) {
		hx_condition_begin(
			conditions, HX_CONDITION_STORE_DOWN, NULL, "the store did not answer");
		stack->was_away = 1;
	}
	if (stack->was_away && !outage.is_away) {
		const struct hx_logger_field fields[] = {
			HX_LOGGER_UNSIGNED("continued", outage.continued),
			HX_LOGGER_UNSIGNED("refused", outage.refused),
			HX_LOGGER_UNSIGNED("kept", outage.reconciled[HAPAX_RECONCILED_KEPT]),
			HX_LOGGER_UNSIGNED("twice", outage.reconciled[HAPAX_RECONCILED_TWICE]),
		};

		hx_logger(stack->log, HX_LOGGER_INFO, "store available", fields, FIELDS_MAX);
	}
	stack->outages = outage.outages;
	stack->was_away = outage.is_away;
}

void hx_store_stack_close(struct hx_store_stack *stack)
{
	hapax_store_close(stack->limit);
	hapax_store_close(stack->near);
	hapax_store_close(stack->guard);
	hapax_store_close(stack->journal);
	hapax_store_close(stack->store);
	*stack = (struct hx_store_stack){.store = NULL};
}
