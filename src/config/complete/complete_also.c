/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_also.c - key_also: the end of an old key strategy, and whether the store can hold two
 * keys for one event. The store is not opened: the daemon checks what its URL does not tell.
 */
#include <string.h>

#include "base/bytes.h"
#include "config/complete/complete.h"
#include "config/config_check.h"

/* A group of keys may lie on several servers of a cluster, which have no common step. */
static bool has_no_groups(const char *url)
{
	static const char *const schemes[] = {"redis+cluster:", "rediss+cluster:"};

	for (size_t i = 0; i < HX_COUNT(schemes); i++) {
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
			return true;
	}
	return false;
}

void hx_complete_also(
	struct hx_complete *complete, const struct hx_config *config, const char *what,
	const struct hx_place *place, struct hx_config_keying *keying)
{
	bool has_key = keying->key_also[0] != '\0';
	bool has_date = keying->key_also_until[0] != '\0';

	if (has_key != has_date) {
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, place, "%s: %s needs %s", what,
			has_key ? "key_also" : "key_also_until",
			has_key ? "key_also_until, the date on which it ends" : "key_also");
		return;
	}
	if (!has_key)
		return;
	/* The date was checked when it was read. */
	(void)hx_config_read_date(keying->key_also_until, &keying->also_until_ms);
	if (strcmp(keying->key, keying->key_also) == 0)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, place,
			"%s: key and key_also are the same strategy; remove key_also", what);
	if (has_no_groups(config->store.url))
		hx_fault(
			complete->faults, HAPAX_ERR_UNSUPPORTED, place,
			"%s: key_also needs a store that claims two keys in one step; a Redis "
			"Cluster cannot",
			what);
}
