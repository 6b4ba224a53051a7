/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice.c - the key strategy that fits a message without an ID.
 */
#include "source/consume/advice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/macros.h"
#include "wire/json/json.h"

enum { NAME_SIZE_MAX = 64, UNFIT = 99 };

/* Names without case, '-' and '_', the best first: the ID of a message, then of anything. */
static const char *const names[] = {"messageid", "eventid", "id", "uuid", "guid", "requestid"};

/* IDs that many messages share. */
static const char *const shared[] = {
	"traceid",   "spanid",   "parentid",   "correlationid", "causationid",
	"sessionid", "userid",   "customerid", "tenantid",      "accountid",
	"appid",     "clientid", "clusterid",  "aggregateid",
};

/* A name that a path can have as it is: letters, digits, '-' and '_'. Writes it without the rest. */
static bool simplify(struct hapax_bytes name, char out[NAME_SIZE_MAX])
{
	const unsigned char *at = name.data;
	size_t size = 0;

	if (name.size == 0 || name.size >= NAME_SIZE_MAX)
		return false;
	for (size_t i = 0; i < name.size; i++) {
		if (isalnum(at[i]))
			out[size++] = (char)tolower(at[i]);
		else if (at[i] != '-' && at[i] != '_')
			return false;
	}
	out[size] = '\0';
	return true;
}

/* How well a name fits: 0 is the best, UNFIT does not. */
static size_t rank(struct hapax_bytes name)
{
	char simple[NAME_SIZE_MAX];
	size_t size;

	if (!simplify(name, simple))
		return UNFIT;
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		if (strcmp(simple, names[i]) == 0 ||
		    (simple[0] == 'x' && strcmp(simple + 1, names[i]) == 0))
			return i;
	}
	for (size_t i = 0; i < HX_COUNT(shared); i++) {
		if (strstr(simple, shared[i]) != NULL)
			return UNFIT;
	}
	size = strlen(simple);
	return size > 2 && strcmp(simple + size - 2, "id") == 0 ? HX_COUNT(names) : UNFIT;
}

static void propose(
	const char *kind, struct hapax_bytes name, size_t *best, char ret_strategy[HX_ADVICE_SIZE])
{
	size_t found = rank(name);

	if (found >= *best)
		return;
	*best = found;
	(void)snprintf(
		ret_strategy, HX_ADVICE_SIZE, "%s%.*s", kind, (int)name.size,
		(const char *)name.data);
}

/* The members of an object; what is not JSON has none. */
static void look_at_data(struct hapax_bytes data, size_t *best, char ret_strategy[HX_ADVICE_SIZE])
{
	char strategy[HX_ADVICE_SIZE];
	size_t found = *best;
	struct hx_json_token token;
	struct hx_json json;

	(void)snprintf(strategy, sizeof(strategy), "%s", ret_strategy);
	if (data.size == 0 || hx_json_init(&json, data, NULL, 0, NULL) != HAPAX_OK)
		return;
	do {
		if (hx_json_next(&json, &token, NULL) != HAPAX_OK)
			return;
		if (json.depth == 1 && token.name != 0 && !token.name_escaped &&
		    (token.type == HX_JSON_STRING || token.type == HX_JSON_NUMBER))
			propose("field:data.",
				hx_bytes((const char *)data.data + token.name, token.name_size),
				&found, strategy);
	} while (token.type != HX_JSON_END);
	*best = found;
	(void)snprintf(ret_strategy, HX_ADVICE_SIZE, "%s", strategy);
}

void hx_advice_strategy(const struct hx_envelope *envelope, char ret_strategy[HX_ADVICE_SIZE])
{
	size_t best = UNFIT;

	(void)snprintf(ret_strategy, HX_ADVICE_SIZE, "content");
	for (size_t i = 0; i < envelope->field_count; i++) {
		if (envelope->fields[i].value.size > 0)
			propose("header:", envelope->fields[i].name, &best, ret_strategy);
	}
	if (envelope->event.data_kind == HAPAX_DATA_JSON)
		look_at_data(envelope->event.data, &best, ret_strategy);
}
