/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_room.h - the state of an operation between a reply that asks for room and its repeat.
 */
#ifndef HX_STORE_REDIS_REDIS_ROOM_H
#define HX_STORE_REDIS_REDIS_ROOM_H

/* In op->private_state. */
enum {
	ROOM_IS_ALL = 1 << 0,    /* the buffer cannot grow ... */
	ROOM_NO_MEMORY = 1 << 1, /* ... because memory ran out, not because of its limit */
};

#endif
