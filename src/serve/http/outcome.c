/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/outcome.h"

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "config/config.h"
#include "source/handler/http_handler.h"
#include "wire/http1/http1_text.h"
#include "wire/media_type.h"

enum hapax_run_outcome hx_outcome_of_proxied(const signed char *table, unsigned status)
{
	if (status >= HX_CONFIG_STATUS_MIN && status <= HX_CONFIG_STATUS_MAX &&
	    table[status - HX_CONFIG_STATUS_MIN] >= 0)
		return (enum hapax_run_outcome)table[status - HX_CONFIG_STATUS_MIN];
	if (status >= 300 && status < 400)
		return HAPAX_RUN_OK;
	return status == 404 ? HAPAX_RUN_DEFINITIVE : hx_http_handler_outcome(status);
}

/* ";q=0", ";q=0.0": it is named to be refused. */
static bool is_refused(struct hapax_bytes element)
{
	const char *at = element.data;
	size_t size = element.size;

	for (size_t i = 0; i + 3 < size; i++) {
		if (at[i] != ';')
			continue;
		for (i++; i < size && hx_http1_is_blank((unsigned char)at[i]); i++)
			continue;
		if (i + 2 >= size || (at[i] != 'q' && at[i] != 'Q') || at[i + 1] != '=')
			continue;
		for (i += 2; i < size && (at[i] == '0' || at[i] == '.'); i++)
			continue;
		return i == size || !hx_http1_is_digit((unsigned char)at[i]);
	}
	return false;
}

bool hx_accept_names_json(struct hapax_bytes accept)
{
	struct hapax_bytes element;

	while (hx_http1_list_next(&accept, &element)) {
		struct hapax_bytes type = hx_media_type_essence(element);

		/* Not every +json: who asks for a CloudEvent does not want to read this. */
		if ((hx_http1_text_equal(type, HX_BYTES_LIT("application/json")) ||
		     hx_http1_text_equal(type, HX_BYTES_LIT("text/json"))) &&
		    !is_refused(element))
			return true;
	}
	return false;
}
