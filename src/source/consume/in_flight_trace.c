/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight_trace.c - the trace that a handler continues.
 */
#include <string.h>

#include "base/bytes.h"
#include "source/consume/in_flight.h"

/* "00-", the digits of the trace, "-" */
enum { TRACE_ID_FROM = 3, TRACE_ID_SIZE = 32 };

/* Whether the run is in the trace that the message names. */
static bool is_continued(const struct hx_in_flight *in_flight)
{
	struct hapax_bytes own = hx_envelope_header(&in_flight->envelope, "traceparent");

	return own.size >= HAPAX_TRACEPARENT_SIZE &&
		memcmp((const char *)own.data + TRACE_ID_FROM, in_flight->trace.run + TRACE_ID_FROM,
		       TRACE_ID_SIZE) == 0;
}

struct hapax_bytes hx_in_flight_trace_header(const struct hx_in_flight *in_flight, const char *name)
{
	if (in_flight->is_traced && strcmp(name, "traceparent") == 0)
		return hx_bytes(in_flight->trace.handler, sizeof(in_flight->trace.handler));
	if (in_flight->is_traced && strcmp(name, "tracestate") == 0 && !is_continued(in_flight))
		return hx_bytes(NULL, 0);
	return hx_envelope_header(&in_flight->envelope, name);
}
