/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision_file.c - the file of decisions of a daemon.
 */
#include "serve/daemon/decision_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "config/config.h"
#include "observe/logger/logger.h"

enum { SECRET_SIZE_MIN = 16, SECRET_SIZE_MAX = 4096 };

/* The secret without the end of its line. */
static enum hapax_status read_secret(
	const char *path, struct hapax_buf *text, struct hapax_error *err)
{
	struct hapax_error why;

	if (hx_io_read_all(hx_io_system(), path, SECRET_SIZE_MAX, text, &why) != HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "log.decisions_secret: %s", why.message);
	while (text->size > 0 &&
	       (text->data[text->size - 1] == '\n' || text->data[text->size - 1] == '\r'))
		text->size--;
	if (text->size < SECRET_SIZE_MIN)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"log.decisions_secret: the secret in '%s' has %zu bytes; use at least %d",
			path, text->size, SECRET_SIZE_MIN);
	return HAPAX_OK;
}

static void wipe_secret(struct hapax_buf *secret)
{
	if (secret->data != NULL)
		explicit_bzero(secret->data, secret->capacity);
	hx_buf_done(secret);
}

enum hapax_status hx_decision_file_check(const struct hx_config *config, struct hapax_error *err)
{
	const struct hx_config_log *log = &config->log;
	enum hapax_status status = HAPAX_OK;
	struct hapax_buf secret;
	int result;

	if (log->decisions[0] == '\0')
		return HAPAX_OK;
	result = hx_io_path_may_write(log->decisions);
	if (result != 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, -result, "log.decisions: could not open '%s'",
			log->decisions);
	hx_buf_init(&secret, SECRET_SIZE_MAX);
	if (log->decisions_secret[0] != '\0')
		status = read_secret(log->decisions_secret, &secret, err);
	wipe_secret(&secret);
	return status;
}

static enum hapax_status file_open(
	struct hx_decision_file *file, const struct hx_config *config,
	struct hx_logger_options *options, struct hapax_error *err)
{
	const char *path = config->log.decisions;
	enum hapax_status status;

	file->path = hx_alloc_zero(strlen(path) + 1, 1);
	if (file->path == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a log");
	memcpy(file->path, path, strlen(path));
	status = hx_logger_open(file->path, options, &file->log, err);
	if (status != HAPAX_OK) {
		hx_free(file->path);
		file->path = NULL;
	}
	return status;
}

enum hapax_status hx_decision_file_open(
	struct hx_decision_file *file, const struct hx_config *config, struct hapax_error *err)
{
	bool has_secret = config->log.decisions_secret[0] != '\0';
	struct hx_logger_options options = {
		.keys = has_secret ? HX_LOGGER_KEYS_HMAC : HX_LOGGER_KEYS_FULL};
	enum hapax_status status = HAPAX_OK;
	struct hapax_buf secret;

	*file = (struct hx_decision_file){.log = NULL};
	if (config->log.decisions[0] == '\0')
		return HAPAX_OK;
	hx_buf_init(&secret, SECRET_SIZE_MAX);
	if (has_secret)
		status = read_secret(config->log.decisions_secret, &secret, err);
	options.hmac_key = hapax_buf_bytes(&secret);
	if (status == HAPAX_OK)
		status = file_open(file, config, &options, err);
	wipe_secret(&secret);
	return status;
}

void hx_decision_file_rotate(struct hx_decision_file *file, struct hx_logger *daemon_log)
{
	struct hapax_error err;

	if (file->log == NULL || hx_logger_reopen(file->log, file->path, &err) == HAPAX_OK)
		return;
	hx_logger(
		daemon_log, HX_LOGGER_ERROR, "decisions still go to the renamed file",
		&(const struct hx_logger_field)HX_LOGGER_TEXT("error", err.message), 1);
}

void hx_decision_file_tick(struct hx_decision_file *file, struct hx_logger *daemon_log)
{
	uint64_t lost;

	if (file->log == NULL)
		return;
	/* The file itself does not say it: that line would be lost as well, and counted. */
	lost = hx_logger_lost(file->log);
	if (lost > file->lost_told) {
		const struct hx_logger_field fields[] = {
			HX_LOGGER_UNSIGNED("lost", lost - file->lost_told),
			HX_LOGGER_TEXT("file", file->path),
		};

		hx_logger(daemon_log, HX_LOGGER_WARN, "decisions lost", fields, HX_COUNT(fields));
		file->lost_told = lost;
	}
}

uint64_t hx_decision_file_lost(const struct hx_decision_file *file)
{
	return file->log == NULL ? 0 : hx_logger_lost(file->log);
}

void hx_decision_file_close(struct hx_decision_file *file, int64_t wait_ms)
{
	hx_logger_close(file->log, wait_ms);
	hx_free(file->path);
	*file = (struct hx_decision_file){.log = NULL};
}
