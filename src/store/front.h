/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - a store that stands in front of another one: outage/, near/, tenant/.
 *
 * A front decides what to do with a submit. Everything else goes to the store behind it: scans,
 * statistics, sweeps, counters, the guarantee and the announcements of ended records. Its URL,
 * name and capabilities are those of that store, which outlives it.
 *
 *	struct near_store { struct hx_front front; ... };
 *
 *	hx_front_init(&near->front, store, near_submit, near_close);
 *	status = hx_front_attach(&near->front, &options, err);
 *	...
 *	hx_front_detach(&near->front);	in near_close(), also after a failed attach
 *
 * Before it is attached, a front may replace members of ops.
 *
 * Threads: any, as for every store; init, attach and detach the owner's.
 */
#ifndef HX_STORE_FRONT_H
#define HX_STORE_FRONT_H

#include <stdatomic.h>

#include <hapax/ext/store_ops.h>

struct hx_front {
	struct hapax_store base;
	struct hapax_store_ops ops;
	struct hapax_store *store; /* behind it */
	struct hapax_watcher watcher;
	_Atomic uint32_t is_watching; /* watcher is on store: this store has one, too */
};

/* front is zero. close is also called if hx_front_attach() fails, by the owner. */
void hx_front_init(
	struct hx_front *front, struct hapax_store *store, hapax_store_submit_fn *submit,
	hapax_store_close_fn *close);

/* hapax_store_attach() with the URL of the store behind. */
enum hapax_status hx_front_attach(
	struct hx_front *front, const struct hapax_store_options *options, struct hapax_error *err);

/* hapax_store_detach(); announcements end first. */
void hx_front_detach(struct hx_front *front);

#endif
