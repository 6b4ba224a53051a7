/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.c - the signals that the program does not leave to their defaults.
 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void remember(int number)
{
	caught = number;
}

void hx_interrupt_ignore_writes(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGPIPE, &action, NULL);
	(void)sigaction(SIGXFSZ, &action, NULL);
}

void hx_interrupt_watch(void)
{
	/*
	 * Without SA_RESTART, so that a write to a reader that does not read ends as
	 * well. With SA_RESETHAND, so that the second one always works.
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
