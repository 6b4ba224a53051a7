/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/service_manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/door_guard.h"
#include "serve/daemon/probe.h"

enum { TEXT_SIZE = 1024 };

/* $WATCHDOG_USEC, unless it is for another process; 0: no watchdog. */
static int64_t watchdog_ns(hx_service_variable_fn *variable)
{
	const char *limit = variable("WATCHDOG_USEC");
	const char *pid = variable("WATCHDOG_PID");
	unsigned long long us;
	char *end;

	if (limit == NULL || (pid != NULL && strtoll(pid, NULL, 10) != (long long)hx_process_id()))
		return 0;
	us = strtoull(limit, &end, 10);
	if (*end != '\0' || us == 0 || us > (unsigned long long)(INT64_MAX / HX_NS_PER_US))
		return 0;
	return (int64_t)us * HX_NS_PER_US;
}

static void notify(struct hx_service *service, const char *text)
{
	if (service->socket != NULL)
		(void)hx_service_notify(service->socket, text);
}

void hx_service_beat(struct hx_service *service)
{
	struct hx_probe probe = {.count = 0};

	hx_probe_live(&probe, service->serve);
	if (hx_health_is_ok(probe.components, probe.count))
		notify(service, "WATCHDOG=1");
}

static void set_timer(struct hx_service *service)
{
	struct hx_reactor *reactor = &service->serve->reactor;

	hx_timer_set(
		&reactor->timers, &service->timer,
		hx_reactor_now_ns(reactor) + service->interval_ns);
}

static void on_timer(struct hx_timer *timer)
{
	struct hx_service *service = timer->context;

	hx_service_beat(service);
	set_timer(service);
}

enum hapax_status hx_service_open(
	struct hx_service *service, struct hx_serve *serve, hx_service_variable_fn *variable,
	struct hapax_error *err)
{
	enum hapax_status status = hx_service_take_sockets(variable, &service->sockets, err);

	if (status != HAPAX_OK)
		return status;
	service->serve = serve;
	if (variable != NULL) {
		service->socket = variable("NOTIFY_SOCKET");
		/* Twice as often as required: one may be late. */
		service->interval_ns = watchdog_ns(variable) / 2;
	}
	return hx_timer_introduce(&serve->reactor.timers, &service->timer, on_timer, service);
}

void hx_service_done(struct hx_service *service)
{
	if (service->serve != NULL)
		hx_timer_retire(&service->serve->reactor.timers, &service->timer);
}

enum hapax_status hx_service_take_door(
	struct hx_service *service, const char *door, size_t loop, int *ret_fd,
	struct hapax_error *err)
{
	int fd = hx_service_socket(&service->sockets, door, loop);

	*ret_fd = 0;
	if (fd == HX_SERVICE_NO_SOCKET)
		return HAPAX_OK;
	if (fd < 0)
		return hx_error_set(
			err, hx_error_status_of(-fd), -fd,
			"could not duplicate socket '%s', which the service manager passed", door);
	*ret_fd = fd;
	return HAPAX_OK;
}

bool hx_service_has_door(
	const struct hx_service *service, const char *door, struct hx_address *ret_address)
{
	const struct hx_net *net = hx_net_system();

	for (size_t i = 0; i < service->sockets.count; i++) {
		if (strcmp(service->sockets.names[i], door) == 0)
			return net->ops->local_address(
				       net->context, service->sockets.fds[i], ret_address) == 0;
	}
	return false;
}

/* The next socket of a door from *index on; false: none. */
static bool next_socket(
	const struct hx_service *service, const char *door, size_t *index,
	struct hx_address *ret_address)
{
	const struct hx_net *net = hx_net_system();

	while (*index < service->sockets.count && strcmp(service->sockets.names[*index], door) != 0)
		(*index)++;
	if (*index == service->sockets.count)
		return false;
	memset(ret_address, 0, sizeof(*ret_address));
	/* A listening socket has an address; an empty one means an unnamed unix socket. */
	(void)net->ops->local_address(net->context, service->sockets.fds[*index], ret_address);
	(*index)++;
	return true;
}

bool hx_service_door_is_tcp(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index)
{
	bool is_handed_over = false;
	struct hx_address address;
	size_t at = 0;

	while (next_socket(service, hx_config_tls_name(index), &at, &address)) {
		is_handed_over = true;
		if (address.storage.ss_family != AF_UNIX)
			return true;
	}
	return !is_handed_over && hx_config_listens_by_tcp(config, index);
}

enum hapax_status hx_service_guard_door(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index, const struct hx_address *address, bool speaks_tls,
	const struct hx_inspection *inspection, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	bool is_handed_over = false;
	struct hx_address handed;
	size_t at = 0;

	while (status == HAPAX_OK &&
	       next_socket(service, hx_config_tls_name(index), &at, &handed)) {
		is_handed_over = true;
		status = hx_door_guard(config, index, &handed, speaks_tls, inspection, err);
	}
	if (is_handed_over)
		return status;
	return hx_door_guard(config, index, address, speaks_tls, inspection, err);
}

enum hapax_status hx_service_door_address(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index, struct hx_address *ret_address, struct hapax_error *err)
{
	const struct hx_config_door *door = hx_config_door_of(config, index);

	if (hx_service_has_door(service, hx_config_tls_name(index), ret_address))
		return HAPAX_OK;
	if (hx_endpoint_address(&door->endpoint, ret_address))
		return HAPAX_OK;
	/* A door is opened once; waiting for a name server here delays no request. */
	if (hx_net_system()->ops->resolve(
		    hx_net_system()->context, door->endpoint.host, door->endpoint.port, ret_address,
		    1) == 1)
		return HAPAX_OK;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "listen.%s: invalid address '%s'",
		hx_config_tls_name(index), door->text);
}

enum hapax_status hx_service_find_door(
	struct hx_service *service, enum hx_config_tls_index index,
	struct hx_service_door *ret_door, struct hapax_error *err)
{
	struct hx_serve *serve = service->serve;
	const struct hx_config_door *door = hx_config_door_of(serve->config, index);
	const char *name = hx_config_tls_name(index);
	bool is_handed_over = hx_service_has_door(service, name, &ret_door->address);
	enum hapax_status status;

	ret_door->loop_count = 0;
	if (door->is_off && !is_handed_over)
		return HAPAX_OK;
	/* A path has one listener. */
	ret_door->loop_count = door->endpoint.is_unix && !is_handed_over ? 1 : serve->loop_count;
	status = hx_service_door_address(service, serve->config, index, &ret_door->address, err);
	/* The inspection has allowed it; a name may have another address by now. */
	if (status == HAPAX_OK)
		status = hx_service_guard_door(
			service, serve->config, index, &ret_door->address,
			serve->door_tls.doors[index] != NULL, NULL, err);
	/* Two daemons on one port would be two ledgers for one stream of events. */
	if (status == HAPAX_OK && !is_handed_over && index != HX_CONFIG_TLS_ADMIN)
		status = hx_listener_check_free(hx_net_system(), &ret_door->address, err);
	return status;
}

enum hapax_status hx_service_check_doors(const struct hx_service *service, struct hapax_error *err)
{
	for (size_t i = 0; i < service->sockets.count; i++) {
		if (!service->sockets.is_taken[i])
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"LISTEN_FDNAMES: '%s' is not a listener, or has more sockets "
				"than threads; use gateway, proxy, resp or admin",
				service->sockets.names[i]);
	}
	return HAPAX_OK;
}

void hx_service_ready(struct hx_service *service, const char *status)
{
	char text[TEXT_SIZE];

	(void)snprintf(text, sizeof(text), "READY=1\nSTATUS=%.900s", status);
	notify(service, text);
	if (service->socket != NULL && service->interval_ns != 0 &&
	    !hx_timer_is_set(&service->timer))
		set_timer(service);
}

void hx_service_reloading(struct hx_service *service)
{
	char text[TEXT_SIZE];

	(void)snprintf(
		text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		hx_clock_mono_ns() / HX_NS_PER_US);
	notify(service, text);
}

void hx_service_stopping(struct hx_service *service, const char *status)
{
	char text[TEXT_SIZE];

	(void)snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=%.900s", status);
	notify(service, text);
}
