/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/inspection.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hapax/clock.h>
#include <hapax/store.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/macros.h"
#include "net/address.h"
#include "net/tls/tls.h"
#include "serve/daemon/decision_file.h"
#include "serve/daemon/door_guard.h"
#include "serve/daemon/service_manager.h"

enum { TEXT_SIZE = 2048 };

/* " (key: /etc/tls.key, days: 3)" */
static void format_fields(
	char text[TEXT_SIZE], size_t used, const struct hx_logger_field *fields, size_t count)
{
	for (size_t i = 0; i < count && used < TEXT_SIZE - 1; i++) {
		bool is_text = fields[i].kind == HX_LOGGER_FIELD_BYTES;
		char number[HX_DURATION_TEXT_SIZE];
		const char *value = is_text ? fields[i].bytes.data : number;
		int size;

		if (fields[i].kind == HX_LOGGER_FIELD_DURATION)
			hx_duration_format(fields[i].number, number);
		else
			(void)snprintf(number, sizeof(number), "%" PRId64, fields[i].number);
		size = is_text ? (int)fields[i].bytes.size : (int)strlen(number);
		used += (size_t)snprintf(
			text + used, TEXT_SIZE - used, "%s%s: %.*s%s", i == 0 ? " (" : ", ",
			fields[i].name, size, value, i + 1 == count ? ")" : "");
	}
}

void hx_inspection_note(
	const struct hx_inspection *inspection, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t count)
{
	char text[TEXT_SIZE];
	int used;

	if (inspection == NULL)
		return;
	hx_logger(inspection->log, level, msg, fields, count);
	if (inspection->say == NULL)
		return;
	used = snprintf(text, sizeof(text), "%s", msg);
	format_fields(text, (size_t)used, fields, count);
	inspection->say(inspection->context, level >= HX_LOGGER_ERROR, text);
}

/* Keep the first reason, say every one. */
static void note_refusal(
	const struct hx_inspection *inspection, const struct hapax_error *why,
	struct hapax_error *err)
{
	if (err->status == HAPAX_OK)
		*err = *why;
	if (inspection->say != NULL)
		inspection->say(inspection->context, true, why->message);
}

static bool is_open(const struct hx_inspection *inspection, enum hx_config_tls_index index)
{
	struct hx_address address;

	if (inspection->current != NULL)
		return inspection->addresses[index] != NULL;
	return !hx_config_door_of(inspection->config, index)->is_off ||
		hx_service_has_door(inspection->service, hx_config_tls_name(index), &address);
}

static void inspect_upstreams(const struct hx_inspection *inspection, struct hapax_error *err)
{
	const struct hx_config *config = inspection->config;
	struct hapax_error why;

	if (config->gateway.route_count == 0 && is_open(inspection, HX_CONFIG_TLS_GATEWAY)) {
		(void)hx_error_set(
			&why, HAPAX_ERR_INVALID, 0,
			"no upstream for the gateway; set upstream.url (--upstream URL) or a "
			"route, or disable it with listen.gateway: off (--gateway off)");
		note_refusal(inspection, &why, err);
	}
	if (config->proxy.route_count == 0 && is_open(inspection, HX_CONFIG_TLS_PROXY)) {
		(void)hx_error_set(
			&why, HAPAX_ERR_INVALID, 0,
			"no upstream for the proxy; set upstream.url (--upstream URL) or a route "
			"of the proxy");
		note_refusal(inspection, &why, err);
	}
}

static void inspect_doors(
	const struct hx_inspection *inspection, const struct hx_tls_set *fresh,
	struct hapax_error *err)
{
	const struct hx_tls_set *tls = inspection->current != NULL ? inspection->current : fresh;

	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS; i++) {
		enum hx_config_tls_index index = (enum hx_config_tls_index)i;
		const struct hx_address *address = inspection->addresses[i];
		struct hx_address configured;
		struct hapax_error why = {.status = HAPAX_OK};

		if (!is_open(inspection, index))
			continue;
		if (address == NULL &&
		    hx_service_door_address(
			    inspection->service, inspection->config, index, &configured, &why) ==
			    HAPAX_OK)
			address = &configured;
		if (address == NULL ||
		    hx_service_guard_door(
			    inspection->service, inspection->config, index, address,
			    tls->doors[i] != NULL, inspection, &why) != HAPAX_OK)
			note_refusal(inspection, &why, err);
	}
}

static void note_leases(const struct hx_inspection *inspection)
{
	const struct hx_config *config = inspection->config;
	struct hx_config_short_lease at;

	for (size_t row = 0; hx_config_short_lease(config, &row, &at);) {
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT(at.what, at.name),
			HX_LOGGER_DURATION("lease", at.lease_ms),
			HX_LOGGER_DURATION("timeout", config->store.timeout_ms),
		};

		hx_inspection_note(
			inspection, HX_LOGGER_WARN,
			"lease is shorter than store.timeout, claims may lapse before they are "
			"answered",
			fields, HX_COUNT(fields));
	}
}

static const char *ttl_text(int64_t ttl_ms, char text[HX_DURATION_TEXT_SIZE])
{
	if (ttl_ms == HAPAX_TTL_FOREVER)
		return "forever";
	hx_duration_format(ttl_ms, text);
	return text;
}

static void note_also(const struct hx_inspection *inspection)
{
	const struct hapax_clock *clock = hapax_clock_system();
	int64_t now_ms = clock->wall_ms(clock->context);
	struct hx_config_key_also at;

	for (size_t row = 0; hx_config_key_also(inspection->config, &row, &at);) {
		char ttl[HX_DURATION_TEXT_SIZE];
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT(at.what, at.name),
			HX_LOGGER_TEXT("until", at.until),
			HX_LOGGER_TEXT("ttl", ttl_text(at.ttl_ms, ttl)),
		};

		if (now_ms >= at.until_ms)
			hx_inspection_note(
				inspection, HX_LOGGER_WARN,
				"old key strategy has ended, remove key_also", fields, 2);
		else if (at.until_ms - now_ms < at.ttl_ms)
			/* When the change was made is not known: it may be a ttl ago. */
			hx_inspection_note(
				inspection, HX_LOGGER_WARN,
				"old key strategy ends within one ttl, events from before a recent "
				"change may run again",
				fields, HX_COUNT(fields));
	}
}

enum hapax_status hx_inspection_run(
	const struct hx_inspection *inspection, struct hx_tls_set *fresh, struct hapax_error *err)
{
	struct hapax_error why = {.status = HAPAX_OK};

	*err = (struct hapax_error){.status = HAPAX_OK};
	inspect_upstreams(inspection, err);
	/* Whether a listener may be public depends on its TLS. */
	if (hx_tls_set_open(fresh, inspection, &why) != HAPAX_OK)
		note_refusal(inspection, &why, err);
	else
		inspect_doors(inspection, fresh, err);
	/* At a reload the file stays as it is. */
	if (inspection->current == NULL &&
	    hx_decision_file_check(inspection->config, &why) != HAPAX_OK)
		note_refusal(inspection, &why, err);
	note_leases(inspection);
	note_also(inspection);
	return err->status;
}
