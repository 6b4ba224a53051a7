/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_place.h - the URL of a daemon: its address and our credentials.
 *
 *	http://HOST[:PORT][/PREFIX][?auth_file=FILE]
 *	https://HOST[:PORT][/PREFIX][?auth_file=FILE&ca=FILE&cert=FILE&key=FILE]
 *	http+unix:PATH[?auth_file=FILE]
 *
 * Values are percent-decoded. A URL never contains the API token, because process lists and logs
 * show URLs.
 *
 * Threads: any.
 */
#ifndef HX_STORE_SERVER_SERVER_PLACE_H
#define HX_STORE_SERVER_SERVER_PLACE_H

#include <stdbool.h>

#include <hapax/error.h>

#include "net/address.h"

enum {
	HX_SERVER_PATH_SIZE = 4096,
	HX_SERVER_PREFIX_SIZE = 256,
	HX_SERVER_TOKEN_SIZE = 1024,
	HX_SERVER_PORT = 8099,
};

struct hx_server_place {
	bool is_tls;
	struct hx_endpoint endpoint;
	char authority[HX_HOST_SIZE_MAX + 16]; /* for Host */
	char prefix[HX_SERVER_PREFIX_SIZE];    /* before /api/v1; "" or "/base" */
	char auth_file[HX_SERVER_PATH_SIZE];   /* "": none; the same for the next */
	char authority_file[HX_SERVER_PATH_SIZE];
	char certificate_file[HX_SERVER_PATH_SIZE];
	char key_file[HX_SERVER_PATH_SIZE];
};

/* INVALID: err says what is wrong. UNSUPPORTED: https without TLS. */
enum hapax_status hx_server_place_parse(
	const char *text, struct hx_server_place *ret_place, struct hapax_error *err);

/* Read the API token without its newline; "" if there is no file. Blocks. */
enum hapax_status hx_server_token_read(
	const struct hx_server_place *place, char ret_token[HX_SERVER_TOKEN_SIZE],
	struct hapax_error *err);

#endif
