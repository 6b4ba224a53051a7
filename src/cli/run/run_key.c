/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_key.c - derive the key of a run.
 */
#include "cli/run/run_key.h"

#include <stdint.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "cli/input/event_reader.h"
#include "cli/frame/exit_code.h"
#include "cli/input/payload.h"
#include "cli/frame/report.h"

static const char file_prefix[] = "file:";

/* Limit for a document that is read for one of its fields. */
enum { DOCUMENT_SIZE_MAX = 16 * 1024 * 1024 };
static const size_t scratch_max = (size_t)40 * DOCUMENT_SIZE_MAX;

static bool is_file(const char *text)
{
	return strncmp(text, file_prefix, strlen(file_prefix)) == 0;
}

static int make_strategy(const char *command, const char *text, struct hapax_key_strategy **ret)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_error err;

	options.flags = HAPAX_KEY_RELATIVE | HAPAX_KEY_NO_FINGERPRINT;
	if (hapax_key_strategy_new(text, &options, ret, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	(void)hx_report_usage(command, "--strategy: %s", err.message);
	hx_report_hint("use args, stdin, file:PATH or a strategy of 'hapax help key'");
	return HX_EXIT_USAGE;
}

int hx_cmd_run_key_needs_stdin(const char *command, const char *text, bool *ret)
{
	struct hapax_key_strategy *strategy;
	int code;

	if (strcmp(text, "file:-") == 0)
		return hx_report_usage(command, "--strategy: 'file:-' is not a file; use stdin");
	*ret = strcmp(text, "stdin") == 0;
	if (*ret || strcmp(text, "args") == 0 || is_file(text))
		return HX_EXIT_OK;
	code = make_strategy(command, text, &strategy);
	if (code != HX_EXIT_OK)
		return code;
	*ret = (hapax_key_strategy_needs(strategy) & HAPAX_KEY_NEEDS_DATA) != 0;
	hapax_key_strategy_free(strategy);
	return HX_EXIT_OK;
}

enum hapax_status hx_cmd_run_key_hash_arguments(
	const char *const *argv, unsigned char ret_digest[HAPAX_FINGERPRINT_SIZE])
{
	struct hx_sha256 sha = {NULL};

	if (hx_sha256_init(&sha) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	for (; *argv != NULL; argv++) {
		uint64_t size = strlen(*argv);
		unsigned char prefix[8];

		for (unsigned i = 0; i < sizeof(prefix); i++)
			prefix[i] = (unsigned char)(size >> 8 * i);
		hx_sha256_update(&sha, prefix, sizeof(prefix));
		hx_sha256_update(&sha, *argv, (size_t)size);
	}
	hx_sha256_final(&sha, ret_digest);
	hx_sha256_done(&sha);
	return HAPAX_OK;
}

/* "args:", "stdin:" or "file:" and the digest. */
static void write_digest(
	const char *prefix, const unsigned char digest[HAPAX_FINGERPRINT_SIZE],
	struct hapax_key *ret)
{
	size_t size = strlen(prefix);

	memcpy(ret->key, prefix, size);
	hx_hex_encode(digest, HAPAX_FINGERPRINT_SIZE, ret->key + size);
	ret->key_size = size + (size_t)2 * HAPAX_FINGERPRINT_SIZE;
	ret->key[ret->key_size] = '\0';
	ret->kind = HAPAX_KEY_MADE;
}

static int64_t now_ms(void)
{
	const struct hapax_clock *clock = hapax_clock_system();

	return clock->wall_ms(clock->context);
}

static int make_by_strategy(
	const char *command, const struct hapax_key_strategy *strategy, struct hapax_bytes document,
	struct hapax_key *ret)
{
	static struct hx_event_reader reader; /* too large for a stack */
	struct hapax_event event;
	struct hapax_buf scratch;
	struct hapax_error err;
	enum hapax_status status;

	hx_event_reader_init(&reader, HX_EVENT_DOCUMENT);
	hx_buf_init(&scratch, scratch_max);
	status = hx_event_reader_read(&reader, document, &event, &err);
	if (status == HAPAX_OK && document.data == NULL)
		event.time_ms = now_ms();
	if (status == HAPAX_OK)
		status = hapax_key_make(strategy, &event, &scratch, ret, &err);
	hx_buf_done(&scratch);
	hx_event_reader_done(&reader);
	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	hx_report(command, "--strategy: %s", err.message);
	return HX_EXIT_DATA;
}

static int make_from_document(
	const char *command, const char *text, const struct hx_cmd_run_stdin *input,
	struct hapax_key *ret)
{
	struct hapax_bytes document = {NULL, 0};
	struct hapax_key_strategy *strategy;
	struct hapax_buf buf;
	int code = make_strategy(command, text, &strategy);

	if (code != HX_EXIT_OK)
		return code;
	hx_buf_init(&buf, DOCUMENT_SIZE_MAX);
	if (input != NULL) {
		code = hx_cmd_run_stdin_read(input, &buf);
		document = hapax_buf_bytes(&buf);
	}
	if (code == HX_EXIT_OK)
		code = make_by_strategy(command, strategy, document, ret);
	hx_buf_done(&buf);
	hapax_key_strategy_free(strategy);
	return code;
}

int hx_cmd_run_key_make(
	const char *command, const char *text, const char *const *argv,
	const struct hx_cmd_run_stdin *input, struct hapax_key *ret)
{
	unsigned char digest[HAPAX_FINGERPRINT_SIZE];
	int code = HX_EXIT_OK;

	if (strcmp(text, "args") == 0) {
		if (hx_cmd_run_key_hash_arguments(argv, digest) != HAPAX_OK) {
			hx_report(command, "not enough memory");
			return HX_EXIT_OS;
		}
		write_digest("args:", digest, ret);
	} else if (strcmp(text, "stdin") == 0) {
		code = hx_cmd_run_stdin_hash(input, digest);
		write_digest("stdin:", digest, ret);
	} else if (is_file(text)) {
		code = hx_payload_fingerprint(command, text + strlen(file_prefix), digest);
		write_digest(file_prefix, digest, ret);
	} else {
		code = make_from_document(command, text, input, ret);
	}
	return code;
}
