/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_mark.c - the store's own clock.
 *
 *  (1) Readings of one mark never go back: boot time does not, within a boot.
 *  (2) A store runs at most 1.1 times as fast as boot time, plus one millisecond.
 *  (3) A reboot moves the store's time ahead by at most step_ms_max, never back.
 */
#include "store/clock_mark.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"

/* Each elapsed millisecond pays a tenth of a millisecond of the debt. */
enum { PAY_DIVISOR = 10 };

static int64_t boot_now(const struct hx_clock_mark *mark, const struct hapax_clock *clock)
{
	int64_t boot_ms = clock->boot_ms(clock->context);

	/* The caller's clock may read slightly behind that of another process. */
	return boot_ms > mark->boot_ms ? boot_ms : mark->boot_ms;
}

/*
 * The debt paid between the mark and boot_ms: one millisecond at every tenth one of the boot,
 * wherever the mark is. Moving the mark thus loses no part of a payment.
 */
static int64_t paid_ms(const struct hx_clock_mark *mark, int64_t boot_ms)
{
	int64_t paid = boot_ms / PAY_DIVISOR - mark->boot_ms / PAY_DIVISOR;

	return paid < mark->owed_ms ? paid : mark->owed_ms;
}

void hx_clock_mark_init(struct hx_clock_mark *mark, const struct hapax_clock *clock)
{
	memset(mark, 0, sizeof(*mark));
	mark->store_ms = clock->wall_ms(clock->context);
	mark->boot_ms = clock->boot_ms(clock->context);
	clock->boot_id(clock->context, mark->boot_id);
}

bool hx_clock_mark_is_current(const struct hx_clock_mark *mark, const struct hapax_clock *clock)
{
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];

	clock->boot_id(clock->context, boot_id);
	return hx_clock_boot_id_equal(mark->boot_id, boot_id);
}

void hx_clock_mark_reboot(
	struct hx_clock_mark *mark, const struct hapax_clock *clock, int64_t step_ms_max)
{
	int64_t wall_ms = clock->wall_ms(clock->context);
	int64_t behind_ms;

	assert(step_ms_max >= 0);
	mark->owed_ms = 0;
	if (!__builtin_sub_overflow(wall_ms, mark->store_ms, &behind_ms) && behind_ms > 0) {
		int64_t step_ms = behind_ms < step_ms_max ? behind_ms : step_ms_max;

		mark->store_ms += step_ms;
		mark->owed_ms = behind_ms - step_ms;
	}
	mark->boot_ms = clock->boot_ms(clock->context);
	clock->boot_id(clock->context, mark->boot_id);
}

int64_t hx_clock_mark_now(const struct hx_clock_mark *mark, const struct hapax_clock *clock)
{
	int64_t boot_ms = boot_now(mark, clock);

	return mark->store_ms + (boot_ms - mark->boot_ms) + paid_ms(mark, boot_ms);
}

void hx_clock_mark_advance(struct hx_clock_mark *mark, const struct hapax_clock *clock)
{
	int64_t boot_ms = boot_now(mark, clock);
	int64_t paid = paid_ms(mark, boot_ms);

	mark->store_ms += boot_ms - mark->boot_ms + paid;
	mark->boot_ms = boot_ms;
	mark->owed_ms -= paid;
	assert(mark->owed_ms >= 0);
}
