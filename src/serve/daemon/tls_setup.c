/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/tls_setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/time.h"
#include "net/tls/tls.h"
#include "observe/condition.h"
#include "observe/logger/logger.h"
#include "serve/daemon/inspection.h"
#include "serve/daemon/service_manager.h"

enum { WARN_DAYS = 14 };

/* False: the door does not use TLS on its socket. */
static bool find_options(
	const struct hx_config *config, const struct hx_service *service,
	enum hx_config_tls_index index, struct hx_tls_options *ret_options)
{
	return hx_service_door_is_tcp(service, config, index) &&
		hx_config_tls_options(config, index, ret_options);
}

/* Whether an earlier door has the same file and logged it. */
static bool is_told(
	const struct hx_config *config, const struct hx_service *service,
	enum hx_config_tls_index index, const char *certificate)
{
	for (size_t i = 0; i < (size_t)index; i++) {
		struct hx_tls_options options;

		if (find_options(config, service, (enum hx_config_tls_index)i, &options) &&
		    strcmp(options.certificate_file, certificate) == 0)
			return true;
	}
	return false;
}

/* For a check of the files; the daemon has a condition instead, see hx_tls_set_watch(). */
static void note_expiry(
	struct hx_tls_context *context, const struct hx_tls_options *options,
	const struct hx_inspection *inspection)
{
	int64_t left_ms = hx_tls_context_expires_ms(context) - hx_clock_wall_ms();
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("certificate", options->certificate_file),
		HX_LOGGER_SIGNED("days", left_ms / HX_MS_PER_DAY),
	};

	if (left_ms <= 0)
		hx_inspection_note(
			inspection, HX_LOGGER_ERROR, "certificate has expired", fields, 1);
	else if (left_ms < WARN_DAYS * HX_MS_PER_DAY)
		hx_inspection_note(
			inspection, HX_LOGGER_WARN, "certificate expires soon", fields, 2);
}

static void note_mode(const char *key_file, const struct hx_inspection *inspection)
{
	const struct hx_io *io = hx_io_system();
	const struct hx_logger_field field = HX_LOGGER_TEXT("key", key_file);
	struct hx_io_stat stat;

	if (io->ops->stat_path(io->context, key_file, &stat) == 0 && (stat.mode & 077) != 0)
		hx_inspection_note(
			inspection, HX_LOGGER_WARN, "private key is readable by other users",
			&field, 1);
}

/* Warns of certificates configured at a door that does not ask for any. */
static void note_unasked(const struct hx_inspection *inspection)
{
	const struct hx_config *config = inspection->config;
	const struct hx_service *service = inspection->service;
	struct hx_tls_options options = {.client_auth = HX_TLS_CLIENT_OFF};
	struct hx_address address;

	if (config->auth.certificate_count == 0 ||
	    (config->listen.admin.is_off && !hx_service_has_door(service, "admin", &address)))
		return;
	if (!find_options(config, service, HX_CONFIG_TLS_ADMIN, &options) ||
	    options.client_auth == HX_TLS_CLIENT_OFF)
		hx_inspection_note(
			inspection, HX_LOGGER_WARN,
			"auth.certificates has no effect, the admin listener does not request "
			"certificates",
			NULL, 0);
}

static enum hapax_status open_door(
	struct hx_tls_set *set, const struct hx_inspection *inspection,
	enum hx_config_tls_index index, struct hapax_error *err)
{
	const struct hx_config *config = inspection->config;
	const struct hx_service *service = inspection->service;
	struct hx_tls_options options;
	struct hapax_error inner;
	enum hapax_status status;

	if (!find_options(config, service, index, &options))
		return HAPAX_OK;
	status = hx_tls_server_context_new(&options, &set->doors[index], &inner);
	if (status != HAPAX_OK)
		return hx_error_set(
			err, status, inner.os_errno, "listen.%s: TLS: %s",
			hx_config_tls_name(index), inner.message);
	if (!is_told(config, service, index, options.certificate_file)) {
		if (inspection->log == NULL)
			note_expiry(set->doors[index], &options, inspection);
		note_mode(options.key_file, inspection);
	}
	return HAPAX_OK;
}

enum hapax_status hx_tls_set_open(
	struct hx_tls_set *set, const struct hx_inspection *inspection, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	memset(set, 0, sizeof(*set));
	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS && status == HAPAX_OK; i++)
		status = open_door(set, inspection, (enum hx_config_tls_index)i, err);
	if (status != HAPAX_OK)
		hx_tls_set_close(set);
	else
		note_unasked(inspection);
	return status;
}

static void watch_expiry(
	struct hx_tls_context *context, const char *file, struct hx_conditions *conditions)
{
	int64_t expires_ms = hx_tls_context_expires_ms(context);
	int64_t left_ms = expires_ms - hx_clock_wall_ms();
	char reason[HX_CONDITION_REASON_SIZE];
	char when[32];

	hx_clock_format_utc(expires_ms, when);
	(void)snprintf(reason, sizeof(reason), "the certificate has expired at %s", when);
	hx_condition_set(conditions, HX_CONDITION_CERT_EXPIRED, file, left_ms <= 0, reason);
	(void)snprintf(
		reason, sizeof(reason), "the certificate expires in %" PRId64 " days, at %s",
		left_ms / HX_MS_PER_DAY, when);
	hx_condition_set(
		conditions, HX_CONDITION_CERT_EXPIRING, file,
		left_ms > 0 && left_ms < WARN_DAYS * HX_MS_PER_DAY, reason);
}

void hx_tls_set_watch(
	struct hx_tls_set *set, const struct hx_config *config, const struct hx_service *service,
	struct hx_conditions *conditions)
{
	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS; i++) {
		enum hx_config_tls_index index = (enum hx_config_tls_index)i;
		struct hx_tls_options options;

		if (set->doors[i] != NULL && find_options(config, service, index, &options))
			watch_expiry(set->doors[i], options.certificate_file, conditions);
	}
}

void hx_tls_set_renew(struct hx_tls_set *set, struct hx_tls_set *fresh, struct hx_logger *log)
{
	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS; i++) {
		const struct hx_logger_field field =
			HX_LOGGER_TEXT("door", hx_config_tls_name((enum hx_config_tls_index)i));

		if (set->doors[i] != NULL && fresh->doors[i] != NULL)
			hx_tls_context_exchange(set->doors[i], fresh->doors[i]);
		else if (set->doors[i] != fresh->doors[i])
			hx_logger(
				log, HX_LOGGER_WARN, "TLS of this listener changes after a restart",
				&field, 1);
	}
	hx_tls_set_close(fresh);
}

void hx_tls_set_close(struct hx_tls_set *set)
{
	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS; i++) {
		hx_tls_context_free(set->doors[i]);
		set->doors[i] = NULL;
	}
}
