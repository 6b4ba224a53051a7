/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h - the requests that the API accepts: the rows of api_table.c.
 *
 * Threads: any; it is constant.
 */
#ifndef HX_API_ROUTE_H
#define HX_API_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "api/api.h"
#include "wire/json/json_object.h"

struct hx_api_request;

/* A request whose path, role and body match the row; it must get a reply. */
typedef void hx_api_handle_fn(struct hx_api_request *request);

enum hx_api_parameter_kind {
	HX_API_PARAMETER_TEXT,
	HX_API_PARAMETER_COUNT,
	HX_API_PARAMETER_BOOLEAN,
	HX_API_PARAMETER_CHOICE,
};

/* A member of the query. */
struct hx_api_parameter {
	const char *name; /* NULL ends a table */
	enum hx_api_parameter_kind kind;
	int64_t min; /* for a COUNT; for a TEXT its bytes */
	int64_t max;
	const char *const *choices; /* ends with NULL */
	const char *doc;
};

enum hx_api_body {
	HX_API_BODY_NONE,
	HX_API_BODY_OBJECT,   /* one object, by section and use */
	HX_API_BODY_OPTIONAL, /* one object, or nothing */
	HX_API_BODY_BATCH,    /* one object, or an array of them */
	HX_API_BODY_ANY,      /* any object: the handler reads it */
};

enum { HX_API_NAMES_MAX = 3, HX_API_BATCH_MAX = 1024 };

/* A row sets the members of every path by position, method to handle, and optional ones by name. */
struct hx_api_route {
	const char *method;
	const char *path; /* with {names} */
	enum hx_api_role role;
	const char *id;      /* of the operation, for client generators */
	const char *summary; /* a sentence: no full stop */
	hx_api_handle_fn *handle;
	const struct hx_api_parameter *parameters; /* NULL: none */
	enum hx_api_body body;
	const struct hx_json_section *section; /* of the body */
	unsigned use;
	const char *reply;        /* the name of a schema (api_schema.c); NULL: no body */
	const char *content_type; /* NULL: application/json */
	bool is_whole;            /* for all tenants: not allowed with a token of one */
	const char *statuses;     /* statuses besides 200, 400, 401, 403: "404 409" */
};

extern const struct hx_api_route hx_api_routes[];
extern const size_t hx_api_route_count;

/* A path and the values of its {names}, not decoded. */
struct hx_api_match {
	const struct hx_api_route *route; /* NULL: no row has the path, or none with the method */
	bool has_path;
	struct hapax_bytes query;
	struct hapax_bytes names[HX_API_NAMES_MAX];
};

/* path is that of a request, with its query. HEAD is GET. */
void hx_api_match(struct hapax_bytes method, struct hapax_bytes path, struct hx_api_match *ret);

enum { HX_API_ALLOW_SIZE = 64 };

/* The methods of a path: "GET, HEAD, DELETE". */
void hx_api_allow(struct hapax_bytes path, char out[HX_API_ALLOW_SIZE]);

/* The values of a query, in the order of its table. */
enum { HX_API_PARAMETERS_MAX = 8 };

struct hx_api_value {
	bool is_given;
	struct hapax_bytes text; /* decoded */
	int64_t number;          /* a COUNT; 1: true; the index of a choice */
};

/*
 * Read a query; text is decoded into buf, which has room for all of it. INVALID: a member is
 * unknown, duplicate, or does not match its row.
 */
enum hapax_status hx_api_query_read(
	const struct hx_api_parameter *parameters, struct hapax_bytes query, struct hapax_buf *buf,
	struct hx_api_value values[HX_API_PARAMETERS_MAX], struct hapax_error *err);

/* /openapi.json, from the table. */
enum hapax_status hx_api_describe(struct hapax_buf *out);

/* The schemas of replies, by name, as members of an object. */
extern const char hx_api_schemas[];

#endif
