/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_cluster.h - the Redis Cluster that tests/redis/with_cluster has started for a test.
 *
 * Whatever a server does not take ends the program with a message.
 */
#ifndef TEST_SUPPORT_REDIS_CLUSTER_H
#define TEST_SUPPORT_REDIS_CLUSTER_H

#include <stddef.h>
#include <sys/types.h>

enum { REDIS_CLUSTER_MASTERS = 3, REDIS_CLUSTER_SERVERS_MAX = 8 };

struct redis_cluster {
	char masters[200]; /* host:port,host:port,... */
	/* Of all, the masters first, then the replica of each. */
	pid_t pids[REDIS_CLUSTER_SERVERS_MAX];
	int ports[REDIS_CLUSTER_SERVERS_MAX];
};

void redis_cluster_find(struct redis_cluster *cluster);

/* Run redis-cli against a server; what it prints goes to out. */
void redis_cluster_ask(
	const struct redis_cluster *cluster, int number, const char *command, char *out,
	size_t size);

/* A command to which the answer is OK. */
void redis_cluster_tell(const struct redis_cluster *cluster, int number, const char *command);

#endif
