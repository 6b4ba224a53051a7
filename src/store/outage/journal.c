/* SPDX-License-Identifier: Apache-2.0 */
#include "store/outage/journal.h"

#include "base/error.h"
#include "store/store_copy.h"

enum hapax_status hx_journal_prepare(struct hapax_store *store, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(store, &stats, NULL, NULL, err);
	uint64_t token;

	if (status != HAPAX_OK || hx_journal_gave(stats.token))
		return status;
	if (stats.keys != 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"'%.200s' has %llu keys and is not a journal; use an empty store as the "
			"journal",
			hapax_store_url(store), (unsigned long long)stats.keys);
	return hx_store_raise_token(store, HX_JOURNAL_TOKEN, &token, err);
}

enum hapax_status hx_journal_count(
	struct hapax_store *journal, uint64_t *ret_count, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(journal, &stats, NULL, NULL, err);

	*ret_count = stats.keys;
	return status;
}
