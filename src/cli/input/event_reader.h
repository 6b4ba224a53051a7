/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_reader.h - read a JSON text as an event, to make its key.
 */
#ifndef HX_CLI_INPUT_EVENT_READER_H
#define HX_CLI_INPUT_EVENT_READER_H

#include <hapax/key.h>

#include "base/buf.h"

/* The form of a JSON text. */
enum hx_event_form {
	HX_EVENT_DOCUMENT = 0,    /* the data itself; paths are relative to it */
	HX_EVENT_CLOUDEVENTS = 1, /* a structured CloudEvent: attributes, and data */
	HX_EVENT_ENVELOPE = 2,    /* {"data":, "attr":{}, "header":{}, "meta":{}, "time":} */
};

/* More fields than any protocol carries. */
enum { HX_EVENT_FIELDS_MAX = 256 };

/* Reads one event at a time. Zero it, then init. */
struct hx_event_reader {
	enum hx_event_form form;
	struct hapax_buf scratch; /* nodes */
	struct hapax_buf values;  /* fields point into it */
	struct hapax_field attributes[HX_EVENT_FIELDS_MAX];
	struct hapax_field headers[HX_EVENT_FIELDS_MAX];
	struct hapax_field meta[HX_EVENT_FIELDS_MAX];
};

void hx_event_reader_init(struct hx_event_reader *reader, enum hx_event_form form);
void hx_event_reader_done(struct hx_event_reader *reader);

/*
 * Read text as an event into *ret, which points into text and reader until the next call. INVALID:
 * text is not such an event.
 */
enum hapax_status hx_event_reader_read(
	struct hx_event_reader *reader, struct hapax_bytes text, struct hapax_event *ret,
	struct hapax_error *err);

#endif
