/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_signal.c - signals as bytes in a pipe.
 */
#include "cli/run/run_signal.h"

#include <stddef.h>

#include "base/macros.h"
#include "base/stream.h"

/* Added to the number, which is below 65, if the terminal sent it. */
enum { FROM_TERMINAL = 0x80 };

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT};

/* Not open before watch. Set before the handler is. */
static int ends[2] = {-1, -1};

/* A full pipe already holds enough bytes to wake its reader. */
static void write_byte(int number, siginfo_t *info, void *context)
{
	unsigned char byte = (unsigned char)number;

	(void)context;
	if (info->si_code == SI_KERNEL)
		byte |= FROM_TERMINAL;
	(void)hx_stream_write(ends[1], &byte, 1);
}

static void catch (int number, int flags)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | flags};

	action.sa_sigaction = write_byte;
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(number, &action, NULL);
}

int hx_cmd_run_signal_watch(void)
{
	struct sigaction before;
	int failed = hx_stream_pipe(ends, HX_STREAM_READ_NOWAIT | HX_STREAM_WRITE_NOWAIT);

	if (failed)
		return failed;
	/* Even if it was ignored: otherwise the command's end would stay unknown. */
	catch (SIGCHLD, SA_RESTART);
	for (size_t i = 0; i < HX_COUNT(passed_on); i++) {
		if (sigaction(passed_on[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
			continue;
		catch (passed_on[i], SA_RESTART);
	}
	return ends[0];
}

void hx_cmd_run_signal_end_writes(void)
{
	struct sigaction before;

	for (size_t i = 0; i < HX_COUNT(passed_on); i++)
		if (hx_cmd_run_signal_is_end(passed_on[i]) &&
		    sigaction(passed_on[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			catch (passed_on[i], 0);
}

bool hx_cmd_run_signal_next(struct hx_cmd_run_signal *ret)
{
	unsigned char byte;

	if (hx_stream_read(ends[0], &byte, 1) != 1)
		return false;
	ret->number = byte & ~FROM_TERMINAL;
	ret->is_from_terminal = (byte & FROM_TERMINAL) != 0;
	return true;
}

int hx_cmd_run_signal_asked(void)
{
	struct hx_cmd_run_signal signal;

	while (hx_cmd_run_signal_next(&signal))
		if (hx_cmd_run_signal_is_end(signal.number))
			return signal.number;
	return 0;
}

bool hx_cmd_run_signal_is_end(int number)
{
	return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}
