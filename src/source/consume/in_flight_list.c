/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight_list.c - lists of messages; a message is in one of them at a time.
 */
#include "source/consume/consumer.h"

void hx_in_flight_list_add(struct hx_in_flight_list *list, struct hx_in_flight *in_flight)
{
	in_flight->next = NULL;
	in_flight->back = list->last;
	if (list->last != NULL)
		list->last->next = in_flight;
	else
		list->first = in_flight;
	list->last = in_flight;
	list->count++;
}

void hx_in_flight_list_add_first(struct hx_in_flight_list *list, struct hx_in_flight *in_flight)
{
	in_flight->back = NULL;
	in_flight->next = list->first;
	if (list->first != NULL)
		list->first->back = in_flight;
	else
		list->last = in_flight;
	list->first = in_flight;
	list->count++;
}

void hx_in_flight_list_remove(struct hx_in_flight_list *list, struct hx_in_flight *in_flight)
{
	if (in_flight->back != NULL)
		in_flight->back->next = in_flight->next;
	else
		list->first = in_flight->next;
	if (in_flight->next != NULL)
		in_flight->next->back = in_flight->back;
	else
		list->last = in_flight->back;
	list->count--;
}

struct hx_in_flight *hx_in_flight_list_take(struct hx_in_flight_list *list)
{
	struct hx_in_flight *in_flight = list->first;

	if (in_flight != NULL)
		hx_in_flight_list_remove(list, in_flight);
	return in_flight;
}
