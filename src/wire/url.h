/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.h - the only parser of URLs: of stores, sources, sinks and called services.
 *
 *	scheme://[user[:password]@]host[:port][,host[:port]...][/path][?name=value&...]
 *	scheme:path[?name=value&...]
 *
 * hx_url_split() finds the parts; they point into the text and are still percent-encoded. It
 * validates nothing: the caller decides which parts its URLs have, and decodes those with
 * hx_url_text(). net/address.h makes an endpoint of a host and port.
 *
 * Options are rows, each bound to a member of the caller's struct. hx_url_options_read() checks
 * and stores the values, and makes the error messages from the rows:
 *
 *	struct place {
 *		char prefix[65];
 *		int db;
 *		bool requires_durable;
 *	};
 *	static const struct hx_url_option rows[] = {
 *		{"prefix", HX_URL_TEXT, "NAME", HX_URL_MEMBER(struct place, prefix)},
 *		{"db", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct place, db), .max = 65535},
 *		{"require", HX_URL_WORD, "durable", HX_URL_MEMBER(struct place, requires_durable),
 *		 .min = true},
 *		{.kind = HX_URL_END},
 *	};
 *	static const struct hx_url_options options = {.of = "a Redis store", .rows = rows};
 *
 *	status = hx_url_options_read(&options, url.query, has_tls, &place, err);
 *
 * A URL may hold secrets anywhere: a password with a '?' that was not encoded looks like options.
 * So messages never contain values. They contain the name of an unknown option only if it cannot
 * be part of a password: see hx_url_option_refuse(). Only wire/public_url.h shows whole URLs.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_URL_H
#define HX_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

/* The parts, not decoded. A missing part has size 0 and data NULL. */
struct hx_url {
	struct hapax_bytes scheme; /* without its colon */
	bool has_authority;        /* "//" follows the scheme */
	struct hapax_bytes user;
	struct hapax_bytes password;
	struct hapax_bytes hosts; /* "host:port", or several, separated by commas */
	struct hapax_bytes path;  /* with its first slash */
	struct hapax_bytes rest;  /* from the scheme, or its "//", to the '?' */
	struct hapax_bytes query; /* after the '?' */
};

/*
 * Find the parts of text. The authority ends at the first '/' or '?', and its user at the last
 * '@' before that. A '#' has no special meaning. False: there is no scheme.
 */
bool hx_url_split(const char *text, struct hx_url *ret_url);

/* Ignores case (RFC 3986, 3.1). */
bool hx_url_has_scheme(const struct hx_url *url, const char *scheme);

/* Does text have only visible ASCII characters, as RFC 3986 requires? */
bool hx_url_is_visible(const char *text);

/* Take the first part off a list, such as the hosts; false: none is left. Empty parts count. */
bool hx_url_next(struct hapax_bytes *list, char separator, struct hapax_bytes *ret_part);

/*
 * Decode part into out as text. False: it is malformed, contains a NUL or does not fit. out may
 * be the part itself if there is room for the NUL after it.
 */
bool hx_url_text(struct hapax_bytes part, char *out, size_t out_size);

/*
 * Decode user and password; each has room for size bytes. A missing one stays unchanged. False:
 * one is malformed or too long.
 */
bool hx_url_user(const struct hx_url *url, char *user, char *password, size_t size);

enum hx_url_kind {
	HX_URL_END,    /* the last row */
	HX_URL_MORE,   /* continue with the rows in more, for the struct at offset */
	HX_URL_TEXT,   /* char[]: decoded, not empty, without NUL */
	HX_URL_NUMBER, /* any integer type: from min to max */
	HX_URL_TIME,   /* int64_t in milliseconds: a duration from min to max */
	HX_URL_WORD,   /* bool: min for the first word of form, min + 1 for the second */
};

struct hx_url_option {
	const char *name;
	enum hx_url_kind kind;
	/*
	 * The form of values, for messages: "NAME", "earliest|latest". A number is shown as
	 * min..max and form, which is its unit or NULL; as form alone if max is INT64_MAX.
	 */
	const char *form;
	size_t offset; /* of the member */
	size_t size;   /* of the member; HX_URL_MEMBER() sets both */
	int64_t min;
	int64_t max;
	bool is_for_tls;                   /* refused if the URL has no TLS */
	bool (*is_good)(const char *text); /* checks a decoded text; NULL: any is valid */
	const struct hx_url_option *more;
};

#define HX_URL_MEMBER(type, member) \
	.offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/* The rest of a row that names a TLS file. */
#define HX_URL_TLS_FILE(type, member) \
	HX_URL_TEXT, "FILE", HX_URL_MEMBER(type, member), .is_for_tls = true

/* Accepts an option without a row; value.data is NULL if there was no '='. */
typedef enum hapax_status hx_url_other_fn(
	void *place, struct hapax_bytes name, struct hapax_bytes value, struct hapax_error *err);

struct hx_url_options {
	const char *of; /* what the URL is for, in messages: "a Redis store" */
	const struct hx_url_option *rows;
	const char *also;       /* further known options, for messages, or NULL */
	hx_url_other_fn *other; /* NULL: options without a row are refused */
};

/*
 * Read all options of a query into the members of place. If an option occurs twice, the last one
 * counts. INVALID: err names the option and its form, and place is partly written.
 */
enum hapax_status hx_url_options_read(
	const struct hx_url_options *options, struct hapax_bytes query, bool has_tls, void *place,
	struct hapax_error *err);

/*
 * Refuse an option as unknown; name and value point into the text of the URL, which ends with a
 * NUL. The message contains the name if it is a plain word, has a value, and no '@' follows it:
 * anything else may be the rest of a password. Returns INVALID.
 */
enum hapax_status hx_url_option_refuse(
	const struct hx_url_options *options, struct hapax_bytes name, struct hapax_bytes value,
	struct hapax_error *err);

#endif
