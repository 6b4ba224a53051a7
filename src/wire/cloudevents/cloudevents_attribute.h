/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudevents_attribute.h - the rules that attributes have in every form; for
 * cloudevents*.c only.
 *
 * Each returns NULL, or why the attribute is refused.
 */
#ifndef HX_CLOUDEVENTS_ATTRIBUTE_H
#define HX_CLOUDEVENTS_ATTRIBUTE_H

#include "wire/cloudevents/cloudevents.h"

/* Make event empty. */
void hx_cloudevent_begin(struct hx_cloudevent *event);

/* The name of an attribute that CloudEvents defines, as it is written; NULL: not defined. */
const struct hapax_bytes *hx_cloudevent_defined_name(struct hapax_bytes in_either_case);

/* Lower-case letters and digits, not "data", not too long. */
const char *hx_cloudevent_check_name(struct hapax_bytes name);

/* Add an attribute whose name was checked: once, with a value that it may have. */
const char *hx_cloudevent_add(
	struct hx_cloudevent *event, struct hapax_bytes name, struct hapax_bytes value);

/* The name of a required attribute that is not there, or NULL. */
const char *hx_cloudevent_missing(const struct hx_cloudevent *event);

/* Must it be a string in JSON? Attributes of the specification must. */
bool hx_cloudevent_is_defined(struct hapax_bytes name);

#endif
