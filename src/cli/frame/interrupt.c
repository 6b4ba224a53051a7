/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.c - the signals that hapax does not leave at their defaults.
 */
#include "cli/frame/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

static volatile sig_atomic_t caught;

static const int write_signals[] = {SIGPIPE, SIGXFSZ};

/* In the order of write_signals: not ignored when we were started. */
static bool was_default[HX_COUNT(write_signals)];

static void remember(int number)
{
	caught = number;
}

void hx_interrupt_ignore_writes(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	(void)sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < HX_COUNT(write_signals); i++) {
		struct sigaction before = {.sa_handler = SIG_IGN};

		(void)sigaction(write_signals[i], &action, &before);
		was_default[i] = before.sa_handler != SIG_IGN;
	}
}

void hx_interrupt_child_defaults(sigset_t *ret)
{
	(void)sigemptyset(ret);
	for (size_t i = 0; i < HX_COUNT(write_signals); i++)
		if (was_default[i])
			(void)sigaddset(ret, write_signals[i]);
}

void hx_interrupt_watch(void)
{
	/*
	 * Without SA_RESTART, so that a write to a reader that does not read also ends. With
	 * SA_RESETHAND, so that a second signal always works.
	 */
	struct sigaction action = {.sa_handler = remember, .sa_flags = (int)SA_RESETHAND};

	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

int hx_interrupt_signal(void)
{
	return caught;
}
