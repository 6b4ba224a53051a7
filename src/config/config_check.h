/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_check.h - check single texts of a config (schema.c says which function checks which text).
 *
 * Each returns whether the text is valid, or writes why not, in words that follow "'TEXT' ". An
 * empty text is valid wherever the schema allows one.
 *
 * Threads: any.
 */
#ifndef HX_CONFIG_CONFIG_CHECK_H
#define HX_CONFIG_CONFIG_CHECK_H

#include "config/schema/schema.h"

hx_setting_check_fn hx_config_check_date;       /* 2027-01-31, or RFC 3339 with a time */
hx_setting_check_fn hx_config_check_digest;     /* sha256: and 64 digits of 0-9a-f */
hx_setting_check_fn hx_config_check_name;       /* UTF-8 without controls */
hx_setting_check_fn hx_config_check_path;       /* begins with a slash; is not decoded */
hx_setting_check_fn hx_config_check_network;    /* an address, or 10.0.0.0/8 */
hx_setting_check_fn hx_config_check_pattern;    /* a name, possibly with * at its end */
hx_setting_check_fn hx_config_check_scope;      /* TENANT/GROUP */
hx_setting_check_fn hx_config_check_scope_part; /* a tenant or group */
hx_setting_check_fn hx_config_check_sha256;     /* 64 digits of 0-9a-f */
hx_setting_check_fn hx_config_check_strategy;   /* of keys, for receivers */
hx_setting_check_fn hx_config_check_url;        /* of an upstream */

/* For the proxy. */
hx_setting_check_fn hx_config_check_method;        /* whose requests have an effect */
hx_setting_check_fn hx_config_check_field;         /* the name of a field */
hx_setting_check_fn hx_config_check_request_field; /* the same, of one that is passed to services */
hx_setting_check_fn hx_config_check_cookie;        /* the name of a cookie */
hx_setting_check_fn hx_config_check_replay_field;  /* the same, of one that may be replayed */
hx_setting_check_fn hx_config_check_credential;    /* auto, none, header:NAME */
hx_setting_check_fn hx_config_check_statuses;      /* 404, 5xx */
hx_setting_check_fn hx_config_check_pass;          /* PATH=VALUE */
hx_setting_check_fn hx_config_check_origin;        /* https://HOST, possibly with a prefix */

/* Read a date as hx_config_check_date allows it; one without a time begins at 00:00 UTC. */
bool hx_config_read_date(const char *text, int64_t *ret_ms);

/* The strategy for the path of PATH=VALUE. Returns the value, or NULL if it has none. */
enum { HX_CONFIG_PASS_SIZE = 512 };
const char *hx_config_pass_strategy(const char *text, char strategy[HX_CONFIG_PASS_SIZE]);

/* Does text match a pattern? */
bool hx_config_pattern_matches(const char *pattern, struct hapax_bytes text);

#endif
