/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/descriptors.h"

#include "base/macros.h"
#include "config/config.h"
#include "observe/logger/logger.h"

enum {
	/* The descriptors of an idle daemon, generously. */
	OWN = 64,
	OWN_OF_A_LOOP = 8,

	ADMIN_MAX = 10000,
	ADMIN_PART = 8, /* an eighth */
	PART_PER_ADDRESS = 8,
};

static const enum hx_door limited[] = {HX_DOOR_GATEWAY, HX_DOOR_PROXY, HX_DOOR_RESP};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void hx_descriptors_init(struct hx_descriptors *descriptors, uint64_t limit, size_t loop_count)
{
	uint64_t own = OWN + OWN_OF_A_LOOP * (uint64_t)loop_count;
	uint64_t kept = most(least(limit / 2, HX_DESCRIPTORS_KEPT_MAX), own);

	descriptors->limit = limit;
	/* With hardly any descriptors no answer is right, but some client must be admitted. */
	descriptors->doors = most(limit > kept ? limit - kept : 0, limit / 4);
}

/* The configured limit of a door; 0: no limit. */
static uint64_t wanted(const struct hx_config *config, enum hx_door door)
{
	return door == HX_DOOR_RESP ? config->resp.max_connections : config->http.max_connections;
}

static uint64_t admin_of(const struct hx_descriptors *descriptors)
{
	return least(ADMIN_MAX, descriptors->doors / ADMIN_PART);
}

/* The share of room that a door could use; room excludes the admin door. */
static uint64_t claim_of(const struct hx_config *config, enum hx_door door, uint64_t room)
{
	uint64_t max = wanted(config, door);

	return max == 0 ? room : least(max, room);
}

uint64_t hx_descriptors_connections(
	const struct hx_descriptors *descriptors, const struct hx_config *config, enum hx_door door)
{
	uint64_t room = descriptors->doors - admin_of(descriptors);
	uint64_t sum = 0;
	uint64_t own;

	if (door == HX_DOOR_ADMIN)
		return most(admin_of(descriptors), 1);
	for (size_t i = 0; i < HX_COUNT(limited); i++) {
		if (descriptors->is_open[limited[i]])
			sum += claim_of(config, limited[i], room);
	}
	own = claim_of(config, door, room);
	return most(sum <= room ? own : own * room / sum, 1);
}

uint64_t hx_descriptors_per_address(
	const struct hx_descriptors *descriptors, const struct hx_config *config, enum hx_door door)
{
	uint64_t has = hx_descriptors_connections(descriptors, config, door);
	uint64_t scaled;
	uint64_t max = door == HX_DOOR_RESP ? config->resp.max_connections_per_address
					    : config->http.max_connections_per_address;

	if (max == 0)
		return 0;
	if (door == HX_DOOR_ADMIN)
		return least(max, most(has / PART_PER_ADDRESS, 1));
	if (wanted(config, door) == 0 || has >= wanted(config, door))
		return max;
	/* A limit that is already low stays. */
	scaled = (uint64_t)((double)max * (double)has / (double)wanted(config, door));
	return most(most(scaled, least(max, has / PART_PER_ADDRESS)), 1);
}

void hx_descriptors_say(
	const struct hx_descriptors *descriptors, const struct hx_config *config,
	struct hx_logger *log)
{
	/* Not the names of the doors: scripts look for those in the line "ready". */
	static const char *const names[] = {
		"gateway_connections", "proxy_connections", "resp_connections"};
	struct hx_logger_field fields[1 + HX_COUNT(limited)] = {
		HX_LOGGER_UNSIGNED("descriptors", descriptors->limit)};
	size_t count = 1;

	for (size_t i = 0; i < HX_COUNT(limited); i++) {
		uint64_t max = wanted(config, limited[i]);
		uint64_t has = hx_descriptors_connections(descriptors, config, limited[i]);

		if (descriptors->is_open[limited[i]] && max > has)
			fields[count++] = (struct hx_logger_field)HX_LOGGER_UNSIGNED(names[i], has);
	}
	if (count > 1)
		hx_logger(
			log, HX_LOGGER_INFO, "connection limits reduced: too few file descriptors",
			fields, count);
}
