/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - the tenant and group of an event.
 *
 * If the event lacks the tenant that it should name, that is an error, unless the configuration
 * names a default: work of one tenant must never be taken for another's. An unreadable tenant is
 * always an error.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "key/key.h"
#include "key/part.h"
#include "wire/scope_name.h"

/* The tenant hapax has records of the daemon's own: an event must not reach them. */
static enum hapax_status check_name(
	const char *what, struct hapax_bytes name, struct hapax_error *err)
{
	char why[HX_UTF8_FAULT_SIZE];
	const char *fault;

	if (hx_utf8_fault(name, HAPAX_SCOPE_SIZE_MAX, why))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "%s %s", what, why);
	fault = hx_scope_name_fault(name);
	if (fault != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "%s '%.*s' %s", what, (int)name.size,
			(const char *)name.data, fault);
	if (strcmp(what, "tenant") == 0 && hx_bytes_equal(name, HX_BYTES_LIT("hapax")))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the tenant 'hapax' is reserved");
	return HAPAX_OK;
}

static enum hapax_status parse_rule(
	struct hx_key_scope_rule *rule, const char *what, const char *text, const char *from,
	bool relative, struct hapax_error *err)
{
	struct hapax_bytes name = hapax_bytes_from_text(text != NULL ? text : "default");
	enum hapax_status status = HAPAX_OK;

	if (text != NULL || from == NULL) {
		status = check_name(what, name, err);
		if (status != HAPAX_OK)
			return status;
		memcpy(rule->text, name.data, name.size);
		rule->text_size = name.size;
	}
	if (from == NULL)
		return HAPAX_OK;
	rule->from = hx_alloc_zero(1, sizeof(*rule->from));
	if (rule->from == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a key strategy");
	return hx_key_path_parse(rule->from, hapax_bytes_from_text(from), relative, false, err);
}

enum hapax_status hx_key_scope_parse(
	struct hapax_key_strategy *strategy, const struct hapax_key_options *options,
	struct hapax_error *err)
{
	bool relative = (strategy->flags & HAPAX_KEY_RELATIVE) != 0;
	enum hapax_status status = parse_rule(
		&strategy->tenant, "tenant", options->tenant, options->tenant_from, relative, err);

	if (status != HAPAX_OK)
		return status;
	return parse_rule(
		&strategy->group, "group", options->group, options->group_from, relative, err);
}

static void set_name(struct hapax_bytes name, char *out, size_t *ret_size)
{
	memcpy(out, name.data, name.size);
	out[name.size] = '\0';
	*ret_size = name.size;
}

static enum hapax_status make_name(
	const struct hx_key_scope_rule *rule, const char *what, struct hx_key_view *view, char *out,
	size_t *ret_size, struct hapax_error *err)
{
	struct hapax_bytes name = hx_bytes(rule->text, rule->text_size);
	struct hapax_error why = {HAPAX_OK, 0, ""};
	enum hx_key_made made;
	enum hapax_status status;

	if (rule->from == NULL) {
		set_name(name, out, ret_size);
		return HAPAX_OK;
	}
	made = hx_part_text(view, rule->from, &name, &why);
	if (made != HX_KEY_MADE && (made != HX_KEY_ABSENT || rule->text_size == 0))
		return hx_error_set(
			err, why.status, 0, "cannot find the %s: %s", what, why.message);
	status = check_name(what, name, err);
	if (status == HAPAX_OK)
		set_name(name, out, ret_size);
	return status;
}

enum hapax_status hx_key_scope_make(
	const struct hapax_key_strategy *strategy, struct hx_key_view *view, struct hapax_key *ret,
	struct hapax_error *err)
{
	enum hapax_status status =
		make_name(&strategy->tenant, "tenant", view, ret->tenant, &ret->tenant_size, err);

	if (status != HAPAX_OK)
		return status;
	return make_name(&strategy->group, "group", view, ret->group, &ret->group_size, err);
}
