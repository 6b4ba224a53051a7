/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - every setting: name, type, range, default, meaning.
 *
 * One table, in schema*.c, drives the reader (bind.c), the texts of `hapax config dump` (dump.c)
 * and the JSON Schema (json_schema.c). To add a setting: a member of a struct in config.h, a row in
 * the table, and a paragraph in hapax.yaml, which a test requires.
 *
 * Threads: any; it is constant.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_H
#define HX_CONFIG_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>

enum hx_setting_type {
	/* The type stored at offset. */
	HX_SETTING_TEXT,     /* const char * */
	HX_SETTING_BOOLEAN,  /* bool: true, false */
	HX_SETTING_COUNT,    /* uint64_t */
	HX_SETTING_SIZE,     /* uint64_t, bytes: 64KiB */
	HX_SETTING_DURATION, /* int64_t, milliseconds: 24h */
	HX_SETTING_CHOICE,   /* an enum of int size: its index in choices */
	HX_SETTING_ADDRESS,  /* struct hx_config_door */
	HX_SETTING_TEXTS,    /* const char *const *, and size_t at count_offset */
	HX_SETTING_SECTION,  /* a struct, whose settings are those of section */
	HX_SETTING_LIST,     /* const struct *, and size_t at count_offset; each has section */
};

enum hx_setting_flag {
	HX_SETTING_RESTART = 1 << 0,   /* a reload does not change it */
	HX_SETTING_NONE_IS_0 = 1 << 1, /* COUNT, SIZE: `none` means no limit */
	HX_SETTING_FOREVER = 1 << 2,   /* DURATION: `forever` is HAPAX_TTL_FOREVER */
	HX_SETTING_REQUIRED = 1 << 3,  /* no default */
	/* LIST: values not given in an item come from `defaults`, not from the table. */
	HX_SETTING_INHERITS = 1 << 4,
	/* TEXT: a URL; only hx_public_url() of it is shown, also in messages. */
	HX_SETTING_SECRET = 1 << 5,
	/*
	 * It names a host, a file or a command, or grants access. PATCH /config changes neither it
	 * nor, for a section or list, anything in it. Otherwise the holder of an API token would
	 * have the rights of the daemon's user.
	 */
	HX_SETTING_FILE_ONLY = 1 << 7,
	/* Exception within FILE_ONLY: names nothing, so it may be changed. */
	HX_SETTING_RUNTIME = 1 << 8,
	HX_SETTING_AUTO = 1 << 6, /* SIZE: `auto` is HX_CONFIG_AUTO; the daemon chooses */
};

enum { HX_SETTING_WHY_SIZE = 256 };

/* Is a text valid here? False after writing why not. */
typedef bool hx_setting_check_fn(const char *text, char why[HX_SETTING_WHY_SIZE]);

struct hx_section;

/*
 * A setting is one row of a table, in the words of schema_row.h:
 *
 *	{"timeout", AT(store, timeout_ms), DURATION("5s", 1, HOUR), RESTART,
 *	 "how long a call waits for a busy store"},
 *
 * In this order: the name in the file; the member that stores it; its type, with the default and
 * what the type needs (minimum and maximum, choices, a check, a section); flags, or 0; the meaning.
 * Some rows have more at the end, such as .variable = "HAPAX_STORE".
 */
struct hx_setting {
	const char *name;    /* NULL ends a table */
	size_t count_offset; /* of TEXTS and LIST */
	size_t offset;
	enum hx_setting_type type;
	const char *fallback; /* the default as written; NULL: none or empty */
	int64_t min;          /* of a number; a text's size; a list's items */
	int64_t max;
	const char *const *choices; /* ends with NULL */
	hx_setting_check_fn *check; /* TEXT, and each of TEXTS; NULL: any */
	const struct hx_section *section;
	unsigned flags;  /* enum hx_setting_flag */
	const char *doc; /* a sentence: no capital, no full stop */
	/* Besides HAPAX_<SECTION>_<NAME>: a shorter name, and the documents' own; or NULL. */
	const char *variable;
	const char *document_variable;
};

struct hx_section {
	const char *name; /* for messages: "a route" */
	const struct hx_setting *settings;
	const struct hx_setting *also; /* more settings, shared with another section; or NULL */
	size_t size;                   /* of the struct */
	size_t place_offset;           /* of its struct hx_place; 0: none */
	/* Its setting `preset` names settings, as YAML, for those that it does not have; or NULL. */
	const char *(*preset)(const char *name);
};

/* By index from 0 on; NULL after the last. */
const struct hx_setting *hx_section_setting(const struct hx_section *section, size_t index);

/* By name; NULL: none has that name. */
const struct hx_setting *hx_section_find(const struct hx_section *section, struct hapax_bytes name);

/* The whole config: struct hx_config. */
extern const struct hx_section hx_config_schema;

/* The sections with files of their own: schema_auth.c and so on. */
extern const struct hx_section hx_config_auth_section;
extern const struct hx_section hx_config_consumer_section; /* of each of `consumers` */
extern const struct hx_section hx_config_http_section;
extern const struct hx_section hx_config_memory_section;
extern const struct hx_section hx_config_outbox_section;
extern const struct hx_section hx_config_outcome_section; /* of each route */
extern const struct hx_section hx_config_proxy_section;
extern const struct hx_section hx_config_resp_section;
extern const struct hx_section hx_config_tls_section;
extern const struct hx_section hx_config_traces_section;

/* Each has its own threads and connection. */
enum { HX_CONFIG_CONSUMERS_MAX = 100 };

/* Longer than the path of any setting, or the name of its variable. */
enum { HX_SETTING_PATH_SIZE = 96 };

/* "HAPAX_LISTEN_GATEWAY" from "listen.gateway". */
void hx_variable_of_setting(const char *path, char name[HX_SETTING_PATH_SIZE]);

#endif
