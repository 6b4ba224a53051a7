/* SPDX-License-Identifier: Apache-2.0 */
#include "support/virtual_clock.h"

#include <assert.h>
#include <string.h>

static int64_t virtual_wall_ms(void *context)
{
	struct hx_virtual_clock *vc = context;

	return atomic_load(&vc->wall_ms);
}

static int64_t virtual_boot_ms(void *context)
{
	struct hx_virtual_clock *vc = context;

	return atomic_load(&vc->boot_ms);
}

static void virtual_boot_id(void *context, unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	struct hx_virtual_clock *vc = context;
	uint64_t number = atomic_load(&vc->boot_number);

	memset(boot_id, 0, HAPAX_BOOT_ID_SIZE);
	memcpy(boot_id, &number, sizeof(number));
}

void hx_virtual_clock_init(struct hx_virtual_clock *vc, int64_t wall_ms)
{
	atomic_init(&vc->wall_ms, wall_ms);
	atomic_init(&vc->boot_ms, 0);
	/* From 1: the id of boot 0 would read as unknown. */
	atomic_init(&vc->boot_number, 1);
	vc->clock = (struct hapax_clock){
		.wall_ms = virtual_wall_ms,
		.boot_ms = virtual_boot_ms,
		.boot_id = virtual_boot_id,
		.context = vc,
	};
}

const struct hapax_clock *hx_virtual_clock_clock(struct hx_virtual_clock *vc)
{
	return &vc->clock;
}

void hx_virtual_clock_advance(struct hx_virtual_clock *vc, int64_t ms)
{
	assert(ms >= 0);
	(void)atomic_fetch_add(&vc->boot_ms, ms);
	(void)atomic_fetch_add(&vc->wall_ms, ms);
}

void hx_virtual_clock_set_wall(struct hx_virtual_clock *vc, int64_t wall_ms)
{
	atomic_store(&vc->wall_ms, wall_ms);
}

void hx_virtual_clock_reboot(struct hx_virtual_clock *vc)
{
	(void)atomic_fetch_add(&vc->boot_number, 1);
	atomic_store(&vc->boot_ms, 0);
}
