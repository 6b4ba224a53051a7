/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/http_status.h"

#include <assert.h>
#include <stddef.h>

#include "base/macros.h"

/* The first row that contains the status decides; the columns follow enum hx_http_status_of. */
static const struct {
	unsigned from, to;
	enum hapax_run_outcome outcome[3];
} rows[] = {
	{200, 299, {HAPAX_RUN_OK, HAPAX_RUN_OK, HAPAX_RUN_OK}},
	{300, 399, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_OK}},
	{401, 401, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT}},
	{403, 403, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT}},
	{404, 404, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_DEFINITIVE}},
	{408, 409, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT}},
	{421, 421, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT}},
	{425, 425, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT}},
	{429, 429, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT, HAPAX_RUN_TRANSIENT}},
	{400, 499, {HAPAX_RUN_TRANSIENT, HAPAX_RUN_DEFINITIVE, HAPAX_RUN_DEFINITIVE}},
};

enum hapax_run_outcome hx_http_status_outcome(
	enum hx_http_status_of of, const signed char *own, unsigned status)
{
	assert((unsigned)of < HX_COUNT(rows[0].outcome));
	if (own != NULL && status >= HX_HTTP_STATUS_MIN && status <= HX_HTTP_STATUS_MAX &&
	    own[status - HX_HTTP_STATUS_MIN] >= 0) {
		assert(own[status - HX_HTTP_STATUS_MIN] <= HAPAX_RUN_AMBIGUOUS);
		return (enum hapax_run_outcome)own[status - HX_HTTP_STATUS_MIN];
	}
	for (size_t i = 0; i < HX_COUNT(rows); i++) {
		if (status >= rows[i].from && status <= rows[i].to)
			return rows[i].outcome[of];
	}
	return HAPAX_RUN_TRANSIENT;
}
