/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_consumers.c - derive consumers' values from their scopes, and check them. It opens
 * nothing and contacts no broker: a broker that is down is not a configuration fault.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "config/complete/complete.h"

static bool may_be(const char *row, const char *fixed, const char *from)
{
	return from[0] != '\0' || strcmp(row, "*") == 0 ||
		hx_bytes_equal(hapax_bytes_from_text(row), hx_config_scope_part(fixed));
}

/* Check every scope that its messages may be in: a part that comes from them may be any. */
static void check_park(
	struct hx_complete *complete, const struct hx_config *config,
	const struct hx_config_consumer *consumer, const struct hx_config_scope *scope)
{
	const struct hx_config_keying *keying = &consumer->keying;
	bool is_fixed = keying->tenant_from[0] == '\0' && keying->group_from[0] == '\0';
	char what[96];

	(void)snprintf(what, sizeof(what), "consumer '%.64s'", consumer->name);
	hx_complete_check_park(complete, what, &consumer->place, consumer->on_lapse, scope);
	for (size_t i = 0; i < config->scope_count && !is_fixed; i++) {
		const struct hx_config_scope *other = &config->scopes[i];

		if (other != scope && may_be(other->tenant, keying->tenant, keying->tenant_from) &&
		    may_be(other->group, keying->group, keying->group_from))
			hx_complete_check_park(
				complete, what, &consumer->place, consumer->on_lapse, other);
	}
}

static void complete_scope(
	struct hx_complete *complete, const struct hx_config *config,
	struct hx_config_consumer *consumer)
{
	const struct hx_config_scope *scope;
	struct hapax_run_options *run = &consumer->run;
	char what[96];

	(void)snprintf(what, sizeof(what), "consumer '%.64s'", consumer->name);
	hx_complete_also(complete, config, what, &consumer->place, &consumer->keying);
	scope = hx_complete_keying(config, &consumer->keying, &consumer->key_options);
	hx_config_run_options(config, scope, hx_bytes(NULL, 0), run);
	run->ttl_ms = consumer->ttl_ms;
	run->max_run_ms = consumer->max_run_ms;
	run->on_lapse = consumer->on_lapse;
	check_park(complete, config, consumer, scope);
	/* A duplicate is retried later, and blocks nothing meanwhile. */
	run->wait_ms = 0;
	if (consumer->lease_ms != 0)
		run->lease_ms = consumer->lease_ms;
}

static void check_lease(struct hx_complete *complete, const struct hx_config_consumer *consumer)
{
	enum { LEASE_MS_MIN = 100 };

	if (consumer->lease_ms != 0 && consumer->lease_ms < LEASE_MS_MIN)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &consumer->place,
			"consumer '%.64s': lease must be at least %d ms", consumer->name,
			LEASE_MS_MIN);
}

static void check_handler(struct hx_complete *complete, const struct hx_config_consumer *consumer)
{
	if ((consumer->to[0] != '\0') != (consumer->exec[0] != '\0'))
		return;
	hx_fault(
		complete->faults, HAPAX_ERR_INVALID, &consumer->place,
		"consumer '%.64s' needs one handler: either to: URL or exec: COMMAND",
		consumer->name);
}

static void check_source(struct hx_complete *complete, const struct hx_config_consumer *consumer)
{
	struct hapax_error err;

	/* The error contains no secret part of the URL. */
	if (hapax_source_check(consumer->from, &err) != HAPAX_OK)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &consumer->place,
			"consumer '%.64s': from: %s", consumer->name, err.message);
}

static void check_key(struct hx_complete *complete, const struct hx_config_consumer *consumer)
{
	struct hapax_key_strategy *strategy = NULL;
	struct hapax_key_options options = consumer->key_options;
	struct hapax_error err = {.message = "include needs key: content or key: hybrid"};
	enum hapax_status status = HAPAX_ERR_INVALID;

	/* The usual places take all options except include; event-id stands for them here. */
	if (consumer->keying.key[0] != '\0' || options.include_count == 0)
		status = hapax_key_strategy_new(
			consumer->keying.key[0] == '\0' ? "event-id" : consumer->keying.key,
			&options, &strategy, &err);
	hapax_key_strategy_free(strategy);
	if (status != HAPAX_OK)
		hx_fault(
			complete->faults, status, &consumer->place, "consumer '%.64s': %s",
			consumer->name, err.message);
}

static void check_name(
	struct hx_complete *complete, const struct hx_config_consumer *consumers, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (strcmp(consumers[i].name, consumers[index].name) == 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &consumers[index].place,
				"consumer '%.64s' occurs twice", consumers[index].name);
	}
}

void hx_complete_consumers(struct hx_complete *complete, struct hx_config *config)
{
	static const struct hx_place nowhere = {.name = "consumers"};
	struct hx_config_consumer *consumers = hx_complete_alloc(
		complete, &nowhere, config->consumer_count + 1, sizeof(*consumers));

	if (consumers == NULL)
		return;
	for (size_t i = 0; i < config->consumer_count; i++) {
		consumers[i] = config->consumers[i];
		complete_scope(complete, config, &consumers[i]);
		check_name(complete, consumers, i);
		check_lease(complete, &consumers[i]);
		check_handler(complete, &consumers[i]);
		check_source(complete, &consumers[i]);
		check_key(complete, &consumers[i]);
	}
	config->consumers = consumers;
}
