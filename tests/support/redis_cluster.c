/* SPDX-License-Identifier: Apache-2.0 */
#include "support/redis_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The i-th of the numbers in a variable; 0: it has no more. */
static long number_in(const char *variable, int i)
{
	const char *text = getenv(variable);
	char *end = NULL;
	long number = 0;

	for (; text != NULL && i >= 0; i--, text = end)
		number = strtol(text, &end, 10);
	return number;
}

void redis_cluster_find(struct redis_cluster *cluster)
{
	const char *masters = getenv("HAPAX_TEST_CLUSTER");

	snprintf(cluster->masters, sizeof(cluster->masters), "%s", masters ? masters : "");
	for (int i = 0; i < REDIS_CLUSTER_SERVERS_MAX; i++) {
		cluster->pids[i] = (pid_t)number_in("HAPAX_TEST_CLUSTER_PIDS", i);
		cluster->ports[i] = (int)number_in("HAPAX_TEST_CLUSTER_PORTS", i);
	}
}

static void give_up(const char *command, const char *answer)
{
	printf("# %s: %s\n", command, answer);
	fflush(stdout);
	abort();
}

void redis_cluster_ask(
	const struct redis_cluster *cluster, int number, const char *command, char *out,
	size_t size)
{
	char line[400];
	FILE *pipe;
	size_t count;

	snprintf(line, sizeof(line), "redis-cli -p %d %s 2>&1", cluster->ports[number], command);
	pipe = popen(line, "r");
	if (pipe == NULL)
		give_up(command, "redis-cli does not start");
	count = fread(out, 1, size - 1, pipe);
	out[count] = '\0';
	(void)pclose(pipe);
}

void redis_cluster_tell(const struct redis_cluster *cluster, int number, const char *command)
{
	char out[400];

	redis_cluster_ask(cluster, number, command, out, sizeof(out));
	if (strncmp(out, "OK", 2) != 0)
		give_up(command, out);
}
