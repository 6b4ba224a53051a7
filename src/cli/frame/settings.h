/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - the settings of all commands that use a store.
 *
 * A setting comes from the first of: the option, HAPAX_<NAME>, the documents' own name
 * (IDEMPOTENCY_TTL), the default. An empty variable counts as absent.
 */
#ifndef HX_CLI_FRAME_SETTINGS_H
#define HX_CLI_FRAME_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

#include "cli/frame/option.h"

struct hx_invocation;

enum hx_common_option {
	HX_OPTION_STORE = HX_OPTION_COMMON,
	HX_OPTION_SERVER,
	HX_OPTION_AUTH_FILE,
	HX_OPTION_SCOPE,
	HX_OPTION_TTL,
	HX_OPTION_OUTPUT,
};

/* Every URL that hapax_store_open() takes, for the help of --store. */
#define HX_STORE_URLS                                           \
	"sqlite:FILE, file:DIR, memory:, postgres://HOST/DB,\n" \
	"redis://HOST, rediss://HOST, redis+unix:PATH,\n"       \
	"redis+cluster://HOST, rediss+cluster://HOST,\n"        \
	"http://HOST:8099, https://HOST or http+unix:PATH"

extern const struct hx_option hx_common_options[];

enum hx_format { HX_FORMAT_TEXT, HX_FORMAT_JSON };

/* In the order of enum hx_format. */
extern const char *const hx_formats[];

/* The row of -o, for a command that uses no store; it is read into settings.format as well. */
/* clang-format off */
#define HX_OPTION_OUTPUT_ROW \
	{HX_OPTION_OUTPUT, "output", 'o', HX_OPTION_CHOICE, "text|json", \
	 "output format (default: text)", hx_formats}
/* clang-format on */

/* PATH_MAX and room for a scheme. */
enum { HX_STORE_URL_SIZE = 4096 + 16 };

struct hx_settings {
	enum hx_format format;
	struct hapax_bytes tenant; /* "default" unless given */
	struct hapax_bytes group;
	bool scope_given;
	int64_t ttl_ms;           /* 0: the store's default */
	uint64_t result_size_max; /* 0: the store's default */
	bool store_is_default;
	char store_url[HX_STORE_URL_SIZE];
};

/* Fill inv->settings. HX_EXIT_OK, or HX_EXIT_USAGE after a message. */
int hx_settings_read(struct hx_invocation *inv);

enum hx_open {
	HX_OPEN_CREATE,   /* create the store if it is absent */
	HX_OPEN_EXISTING, /* for commands that only read or remove: a typo creates no store */
	HX_OPEN_SERVICE,  /* like CREATE, with housekeeping: it stays open for long */
};

/*
 * Open the store of the settings, without housekeeping, since a command is short. HX_EXIT_OK, or
 * another code after a message. Owned: *ret_store, by the caller.
 */
int hx_settings_open(struct hx_invocation *inv, enum hx_open mode, struct hapax_store **ret_store);

/*
 * The same for the store of an operand, instead of the settings' own; NULL: their own. A daemon
 * gets the token of --auth-file unless the URL has one.
 */
int hx_settings_open_url(
	struct hx_invocation *inv, const char *url, enum hx_open mode,
	struct hapax_store **ret_store);

/* Is the settings' store a file or folder that does not exist yet? */
bool hx_settings_is_missing(const struct hx_invocation *inv);

/* Note what a Redis server without a log forgets, for commands that rely on what it keeps. */
void hx_settings_note_loss(const struct hx_invocation *inv, struct hapax_store *store);

/* After adding a record: remove a few expired ones. A store that only grows fills the disk. */
void hx_settings_tidy(struct hapax_store *store);

/* The store's clock, which decides about expiry; this machine's if it cannot be read. */
int64_t hx_settings_now_ms(struct hapax_store *store);

#endif
