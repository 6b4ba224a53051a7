/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - routes operations to the servers of a Redis Cluster.
 *
 *  (1) Every request that has begun is at a link, in `waiting`, or held until tokens are raised
 *      (floor.c).
 *  (2) An operation is sent when the submit's previous operation on the same key is decided: a
 *      server that refuses one may do the next. After an uncertain or expired operation, the
 *      later ones are not sent.
 *  (3) owners[] is the latest known map; -1 is a partition without a server.
 */
#include "store/redis/cluster.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/time.h"
#include "store/core.h"
#include "store/redis/cluster_map.h"
#include "store/redis/floor.h"
#include "store/redis/pipeline.h"
#include "store/redis/redis_member.h"
#include "store/redis/slot.h"
#include "wire/resp/resp_reply.h"

enum {
	/* How often waiting requests are retried and silent links are detected. */
	TICK_MS = 25,
	WATCH_MS = 250,

	/* A link with commands in flight and no answer for this long makes us ask for the map. */
	SILENT_MS = 500,

	/* Between two requests for the map; also when to ask another server. */
	ASK_MS = 20,
	ASK_OTHER_MS = 300,
	ASKS = 3,

	/* After this many redirects in a row an operation waits for a tick. */
	HOPS_MAX = 8,

	CHAINS = 64,
	MAP_SIZE_MAX = 4 * 1024 * 1024,
};

/* The last operation of a submit whose name, without prefix, has a certain hash. */
struct chain {
	uint64_t stamp; /* of the submit */
	struct hx_redis_request *last;
};

/* A request for the map. */
struct ask {
	struct hx_redis_call call;
	struct hapax_buf reply;
	struct hx_redis_client *client;
	struct hx_redis_link *link; /* the link that was asked; NULL: none */
};

struct hx_redis_cluster {
	unsigned slots[HX_REDIS_PARTITIONS];
	int owners[HX_REDIS_PARTITIONS]; /* numbers of links */
	bool has_map;
	bool wants_map;
	struct ask asks[ASKS];
	int64_t asked_ns;
	size_t seed; /* while opening: index of the URL's server to try */
	size_t next; /* the next link to try when none is connected */
	struct hx_timer tick;
	struct hx_redis_request *waiting;
	struct hx_redis_request *waiting_last;
	struct chain chains[HX_REDIS_PARTITIONS][CHAINS];
	uint64_t stamp;
	struct hx_redis_floor *floor;
};

static void update(struct hx_redis_client *client);

/* ---------------------------------------------------------------- links */

static int number_of(const struct hx_redis_client *client, const struct hx_redis_link *link)
{
	for (size_t i = 0; i < client->link_count; i++) {
		if (client->links[i] == link)
			return (int)i;
	}
	return -1;
}

static bool is_owner(const struct hx_redis_client *client, const struct hx_redis_link *link)
{
	int number = number_of(client, link);

	for (size_t i = 0; i < HX_REDIS_PARTITIONS; i++) {
		if (client->cluster->owners[i] == number)
			return true;
	}
	return false;
}

/*
 * Find the link of a server that has left; servers may return under other addresses while the
 * store is open. Links to the URL's servers stay.
 */
static struct hx_redis_link *find_unused(struct hx_redis_client *client)
{
	for (size_t i = client->place->endpoint_count; i < client->link_count; i++) {
		struct hx_redis_link *link = client->links[i];

		if (link->connection.state == HX_REDIS_CONNECTION_CLOSED && link->pending == NULL &&
		    link->unit_count == 0 && link->connection.stream.state == HX_CONNECTION_NONE &&
		    !is_owner(client, link))
			return link;
	}
	return NULL;
}

static bool is_address(struct hapax_bytes host, int64_t port)
{
	return port >= 1 && port <= UINT16_MAX && host.size <= HX_HOST_SIZE_MAX;
}

/* The link to a server, created if necessary. NULL: no memory. */
static struct hx_redis_link *link_to(
	struct hx_redis_client *client, const struct hx_redis_link *told_by,
	struct hapax_bytes host, int64_t port)
{
	struct hx_endpoint endpoint = {.is_unix = false, .port = (uint16_t)port};
	struct hx_redis_link *unused;

	assert(is_address(host, port));
	/* An empty host is the one by which we know the server. */
	if (host.size == 0 || (host.size == 1 && memcmp(host.data, "?", 1) == 0))
		memcpy(endpoint.host, told_by->endpoint.host, sizeof(endpoint.host));
	else
		memcpy(endpoint.host, host.data, host.size);
	for (size_t i = 0; i < client->link_count; i++) {
		struct hx_redis_link *link = client->links[i];

		if (link->endpoint.port == endpoint.port &&
		    strcmp(link->endpoint.host, endpoint.host) == 0)
			return link;
	}
	unused = find_unused(client);
	if (unused == NULL)
		return hx_redis_client_add_link(client, &endpoint);
	unused->endpoint = endpoint;
	unused->connection.failures = 0;
	return unused;
}

/* ---------------------------------------------------------------- requests */

static void wait_for_tick(struct hx_redis_cluster *cluster, struct hx_redis_request *request)
{
	request->next = NULL;
	if (cluster->waiting == NULL)
		cluster->waiting = request;
	else
		cluster->waiting_last->next = request;
	cluster->waiting_last = request;
}

void hx_redis_cluster_dispatch(struct hx_redis_client *client, struct hx_redis_request *request)
{
	struct hx_redis_cluster *cluster = client->cluster;
	int owner = cluster->owners[request->partition];

	if (owner >= 0) {
		hx_redis_pipeline_add(client->links[owner], request);
		return;
	}
	cluster->wants_map = true;
	wait_for_tick(cluster, request);
}

/* One operation of a submit has ended. */
static void parent_step(struct hx_redis_client *client, struct hx_redis_request *parent)
{
	if (--parent->in_flight == 0)
		hx_redis_request_end(client, parent);
}

static struct hx_redis_request *make_child(
	struct hx_redis_client *client, struct hx_redis_request *parent, struct hapax_op *op)
{
	struct hx_redis_request *child = hx_request_queue_borrow(&client->queue);

	if (child == NULL)
		return NULL;
	child->ops = op;
	child->count = 1;
	child->deadline_ns = parent->deadline_ns;
	child->again_from = SIZE_MAX;
	child->parent = parent;
	return child;
}

/* Send it; a load may have to wait for the tokens. */
static void begin_child(struct hx_redis_client *client, struct hx_redis_request *child)
{
	struct hx_redis_floor *floor = client->cluster->floor;

	if (hx_redis_floor_is_below(floor, child->ops))
		hx_redis_floor_hold(floor, child);
	else
		hx_redis_cluster_dispatch(client, child);
}

/* Split into single operations. Those without a predecessor begin when all exist. */
static void split(struct hx_redis_client *client, struct hx_redis_request *parent)
{
	struct hx_redis_cluster *cluster = client->cluster;
	struct hapax_buf *member = &client->encoder.member;
	struct hx_redis_request *first = NULL;
	struct hx_redis_request **end = &first;

	cluster->stamp++;
	/* Keeps the parent alive until all children have begun. */
	parent->in_flight = 1;
	for (size_t i = 0; i < parent->count; i++) {
		struct hapax_op *op = &parent->ops[i];
		struct hx_redis_request *child;
		struct chain *chain;
		uint32_t hash;

		if (op->status != HAPAX_OK)
			continue;
		hx_buf_clear(member);
		child = hx_redis_member_append(member, op->tenant, op->group, op->key) == HAPAX_OK
			? make_child(client, parent, op)
			: NULL;
		if (child == NULL) {
			hx_store_refuse(op, HAPAX_ERR_NO_MEMORY);
			continue;
		}
		child->partition =
			(int)(hx_redis_slot(hx_bytes(member->data, member->size)) %
			      HX_REDIS_PARTITIONS);
		/* Hash the whole name: many keys may share a hash tag, and so a slot. */
		hash = hx_crc32c(0, member->data, member->size);
		chain = &cluster->chains[child->partition][hash % CHAINS];
		parent->in_flight++;
		if (chain->stamp == cluster->stamp) {
			chain->last->follower = child;
		} else {
			*end = child;
			end = &child->next;
		}
		*chain = (struct chain){cluster->stamp, child};
	}
	while (first != NULL) {
		struct hx_redis_request *child = first;

		first = child->next;
		begin_child(client, child);
	}
	parent_step(client, parent);
}

void hx_redis_cluster_add(struct hx_redis_client *client, struct hx_redis_request *request)
{
	if (request->call != NULL)
		hx_redis_cluster_dispatch(client, request);
	else
		split(client, request);
}

/* Later operations would have no basis, or would be too late. */
static bool ends_chain(const struct hx_redis_client *client, const struct hx_redis_request *child)
{
	enum hapax_status status = child->ops->status;

	return status == HAPAX_ERR_UNCERTAIN ||
		(status == HAPAX_ERR_UNAVAILABLE &&
		 child->deadline_ns <= hx_reactor_now_ns(&client->reactor));
}

void hx_redis_cluster_child_done(struct hx_redis_client *client, struct hx_redis_request *child)
{
	struct hx_redis_request *parent = child->parent;
	struct hx_redis_request *follower = child->follower;
	bool is_last = ends_chain(client, child);

	hx_request_queue_give_back(&client->queue, child);
	while (is_last && follower != NULL) {
		child = follower;
		follower = child->follower;
		hx_redis_request_fail(child, HAPAX_ERR_UNAVAILABLE);
		hx_request_queue_give_back(&client->queue, child);
		parent->in_flight--;
	}
	if (follower != NULL) {
		begin_child(client, follower);
		/* Which link must send is unknown here. */
		hx_reactor_post(&client->reactor, &client->arrived);
	}
	parent_step(client, parent);
}

void hx_redis_cluster_pump(struct hx_redis_client *client)
{
	for (size_t i = 0; i < client->link_count; i++) {
		if (client->links[i]->pending != NULL)
			hx_redis_pipeline_pump(client->links[i]);
	}
	update(client);
}

static void give_up(struct hx_redis_client *client, struct hx_redis_request *request)
{
	hx_redis_request_fail(request, HAPAX_ERR_UNAVAILABLE);
	hx_redis_request_end(client, request);
}

/* ---------------------------------------------------------------- redirects */

/* The server in "MOVED 3999 127.0.0.1:6381". NULL: it names none. */
static struct hx_redis_link *target_of(struct hx_redis_link *told_by, struct hapax_bytes text)
{
	const char *data = text.data;
	const char *space = text.size == 0 ? NULL : memrchr(data, ' ', text.size);
	const char *end = data + text.size;
	struct hapax_bytes host;
	const char *colon;
	int64_t port = 0;

	if (space == NULL)
		return NULL;
	colon = memrchr(space, ':', (size_t)(end - space));
	if (colon == NULL ||
	    !hx_resp_parse_integer(hx_bytes(colon + 1, (size_t)(end - colon - 1)), &port))
		return NULL;
	host = hx_bytes(space + 1, (size_t)(colon - space - 1));
	return is_address(host, port) ? link_to(told_by->client, told_by, host, port) : NULL;
}

void hx_redis_cluster_redirect(
	struct hx_redis_link *link, struct hx_redis_request *request, struct hapax_bytes reply)
{
	struct hx_redis_client *client = link->client;
	struct hx_redis_cluster *cluster = client->cluster;
	struct hx_redis_link *target = NULL;
	struct hx_resp_value value;
	bool is_asked = false;

	request->sent = 0;
	request->asks = false;
	request->hops++;
	if (hx_resp_next(&reply, &value)) {
		is_asked = hx_resp_is_error(&value, "ASK");
		if (is_asked || hx_resp_is_error(&value, "MOVED"))
			target = target_of(link, value.text);
	}
	if (request->deadline_ns <= hx_reactor_now_ns(&client->reactor)) {
		give_up(client, request);
		return;
	}
	cluster->wants_map |= !is_asked;
	if (target != NULL && request->hops <= HOPS_MAX) {
		request->asks = is_asked;
		if (!is_asked)
			cluster->owners[request->partition] = number_of(client, target);
		hx_redis_pipeline_add(target, request);
		if (target != link)
			hx_redis_pipeline_pump(target);
	} else {
		request->hops = 0;
		wait_for_tick(cluster, request);
	}
	update(client);
}

/* ---------------------------------------------------------------- the map */

/* Move requests that wait at the wrong link. */
static void reroute(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = client->cluster;

	for (size_t i = 0; i < client->link_count; i++) {
		struct hx_redis_request *next;

		for (struct hx_redis_request *request = client->links[i]->pending; request != NULL;
		     request = next) {
			next = request->next;
			if (request->partition < 0 || request->in_flight > 0 || request->sent > 0 ||
			    request->asks || cluster->owners[request->partition] == (int)i)
				continue;
			hx_redis_pipeline_withdraw(client->links[i], request);
			hx_redis_cluster_dispatch(client, request);
		}
	}
}

/* False: out of memory, or not an address. */
static bool take_range(struct ask *ask, const struct hx_redis_range *range)
{
	struct hx_redis_client *client = ask->client;
	struct hx_redis_cluster *cluster = client->cluster;
	struct hx_redis_link *link;

	if (!is_address(range->host, range->port))
		return false;
	link = link_to(client, ask->link, range->host, range->port);
	if (link == NULL)
		ask->call.status = HAPAX_ERR_NO_MEMORY;
	for (size_t i = 0; link != NULL && i < HX_REDIS_PARTITIONS; i++) {
		if (cluster->slots[i] >= range->first && cluster->slots[i] <= range->last)
			cluster->owners[i] = number_of(client, link);
	}
	return link != NULL;
}

/* False: it is not a map. */
static bool read_map(struct ask *ask)
{
	struct hx_redis_cluster *cluster = ask->client->cluster;
	struct hapax_bytes rest = {ask->reply.data, ask->reply.size};
	struct hx_redis_range range;
	int64_t count;

	if (!hx_redis_map_begin(&rest, &count))
		return false;
	for (size_t i = 0; i < HX_REDIS_PARTITIONS; i++)
		cluster->owners[i] = -1;
	for (int64_t i = 0; i < count; i++) {
		if (!hx_redis_map_next(&rest, &range) || !take_range(ask, &range))
			return false;
	}
	return true;
}

static bool is_covered(const struct hx_redis_cluster *cluster)
{
	for (size_t i = 0; i < HX_REDIS_PARTITIONS; i++) {
		if (cluster->owners[i] < 0)
			return false;
	}
	return true;
}

/* Finish opening when every master has a link. */
static void go_on_opening(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = client->cluster;
	struct hapax_error err = {.status = HAPAX_OK};
	bool is_complete = true;

	if (client->is_opened || !cluster->has_map)
		return;
	if (!is_covered(cluster)) {
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0,
			"the Redis Cluster does not serve all slots; run 'redis-cli cluster info'");
		hx_redis_client_opened(client, &err);
		return;
	}
	for (size_t i = 0; i < client->link_count; i++) {
		struct hx_redis_link *link = client->links[i];

		if (!is_owner(client, link))
			continue;
		is_complete &= link->connection.state == HX_REDIS_CONNECTION_READY;
		if (link->connection.state == HX_REDIS_CONNECTION_CLOSED)
			hx_redis_link_connect(link);
	}
	if (is_complete) {
		hx_redis_client_judge(client);
		hx_redis_client_opened(client, &err);
	}
}

static void on_map(struct hx_redis_call *call, void *context)
{
	struct ask *ask = context;
	struct hx_redis_client *client = ask->client;
	struct hx_redis_cluster *cluster = client->cluster;
	bool is_read = call->status == HAPAX_OK && !client->is_stopping && read_map(ask);
	struct hapax_error err;

	ask->link = NULL;
	if (is_read) {
		cluster->has_map = true;
		cluster->wants_map = !is_covered(cluster);
		reroute(client);
	}
	if (!client->is_opened && !is_read) {
		if (call->status == HAPAX_ERR_NO_MEMORY)
			(void)hx_error_set(
				&err, call->status, 0, "not enough memory to open a store");
		else
			(void)hx_error_set(
				&err, HAPAX_ERR_UNAVAILABLE, 0,
				"the server did not report the slots of its Cluster");
		hx_redis_client_opened(client, &err);
	}
	go_on_opening(client);
	update(client);
}

/* The link that is likely to answer soonest; NULL: none. */
static struct hx_redis_link *link_to_ask(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = client->cluster;
	struct hx_redis_link *best = NULL;

	for (size_t i = 0; i < client->link_count; i++) {
		struct hx_redis_link *link = client->links[i];
		bool is_asked = false;

		assert(link != NULL);
		for (size_t k = 0; k < ASKS; k++)
			is_asked |= cluster->asks[k].link == link;
		/* A link may be lost without knowing it yet. */
		if (link->connection.state != HX_REDIS_CONNECTION_READY ||
		    link->connection.stream.state != HX_CONNECTION_OPEN || is_asked)
			continue;
		if (best == NULL || link->answered_ns > best->answered_ns)
			best = link;
	}
	return best;
}

/* No link can be asked: try the known servers in turn. */
static void find_link(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = client->cluster;

	for (size_t i = 0; i < client->link_count; i++) {
		enum hx_redis_connection_state state = client->links[i]->connection.state;

		if (state == HX_REDIS_CONNECTION_DIALLING || state == HX_REDIS_CONNECTION_GREETING)
			return;
	}
	for (size_t i = 0; i < client->link_count; i++) {
		struct hx_redis_link *link = client->links[cluster->next++ % client->link_count];

		if (link->connection.state == HX_REDIS_CONNECTION_CLOSED) {
			hx_redis_link_connect(link);
			return;
		}
	}
}

/* Only opening fails; later the request is retried. */
static void refuse_to_open(struct hx_redis_client *client)
{
	struct hapax_error err;

	(void)hx_error_set(&err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	if (!client->is_opened)
		hx_redis_client_opened(client, &err);
}

static void ask_for_map(struct hx_redis_client *client)
{
	static const char command[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
	struct hx_redis_cluster *cluster = client->cluster;
	int64_t now_ns = hx_reactor_now_ns(&client->reactor);
	struct hx_redis_link *link = link_to_ask(client);
	struct hx_redis_request *request;
	struct ask *ask = NULL;

	for (size_t i = 0; i < ASKS; i++) {
		if (cluster->asks[i].link == NULL)
			ask = &cluster->asks[i];
	}
	cluster->asked_ns = now_ns;
	if (link == NULL)
		find_link(client);
	if (link == NULL || ask == NULL)
		return;
	request = hx_request_queue_borrow(&client->queue);
	if (request == NULL) {
		refuse_to_open(client);
		return;
	}
	ask->link = link;
	ask->call = (struct hx_redis_call){
		.command = {command, sizeof(command) - 1},
		.reply = &ask->reply,
		.fn = on_map,
		.context = ask,
	};
	request->call = &ask->call;
	request->count = 1;
	request->again_from = SIZE_MAX;
	request->partition = -1;
	request->deadline_ns = now_ns + client->options->timeout_ms * HX_NS_PER_MS;
	hx_redis_pipeline_add(link, request);
	hx_redis_pipeline_pump(link);
}

/* ---------------------------------------------------------------- time */

static bool is_asking(const struct hx_redis_cluster *cluster)
{
	for (size_t i = 0; i < ASKS; i++) {
		if (cluster->asks[i].link != NULL)
			return true;
	}
	return false;
}

/* Ask for the map if it is wanted, and set the timer if anything waits. */
static void update(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = client->cluster;
	int64_t now_ns = hx_reactor_now_ns(&client->reactor);
	int64_t wait_ms = is_asking(cluster) ? ASK_OTHER_MS : ASK_MS;
	bool is_busy = false;
	int64_t at_ns = 0;

	if (client->is_stopping)
		return;
	if (cluster->wants_map && client->is_opened &&
	    now_ns - cluster->asked_ns >= wait_ms * HX_NS_PER_MS)
		ask_for_map(client);
	for (size_t i = 0; i < client->link_count; i++)
		is_busy |= client->links[i]->unit_count > 0 || client->links[i]->pending != NULL;
	if (cluster->waiting != NULL || cluster->wants_map)
		at_ns = now_ns + TICK_MS * HX_NS_PER_MS;
	else if (is_busy)
		at_ns = now_ns + WATCH_MS * HX_NS_PER_MS;
	if (at_ns == 0)
		hx_timer_clear(&client->reactor.timers, &cluster->tick);
	else if (!hx_timer_is_set(&cluster->tick) || cluster->tick.at > at_ns)
		hx_timer_set(&client->reactor.timers, &cluster->tick, at_ns);
}

static void on_tick(struct hx_timer *timer)
{
	struct hx_redis_client *client = timer->context;
	struct hx_redis_cluster *cluster = client->cluster;
	struct hx_redis_request *request = cluster->waiting;
	int64_t now_ns = hx_reactor_now_ns(&client->reactor);

	cluster->waiting = NULL;
	cluster->waiting_last = NULL;
	while (request != NULL) {
		struct hx_redis_request *next = request->next;

		if (request->deadline_ns <= now_ns)
			give_up(client, request);
		else
			hx_redis_cluster_dispatch(client, request);
		request = next;
	}
	for (size_t i = 0; i < client->link_count; i++) {
		const struct hx_redis_link *link = client->links[i];

		cluster->wants_map |= link->unit_count > 0 &&
			now_ns - link->answered_ns > SILENT_MS * HX_NS_PER_MS;
		cluster->wants_map |= link->pending != NULL &&
			link->connection.state != HX_REDIS_CONNECTION_READY;
	}
	hx_redis_cluster_pump(client);
}

/* ---------------------------------------------------------------- links report */

void hx_redis_cluster_ready(struct hx_redis_client *client, struct hx_redis_link *link)
{
	struct hx_redis_cluster *cluster = client->cluster;

	link->answered_ns = hx_reactor_now_ns(&client->reactor);
	if (client->is_opened) {
		hx_redis_client_judge(client);
		update(client);
	} else if (!cluster->has_map) {
		ask_for_map(client);
	} else {
		go_on_opening(client);
	}
}

bool hx_redis_cluster_failed(
	struct hx_redis_client *client, struct hx_redis_link *link, const struct hapax_error *err)
{
	struct hx_redis_cluster *cluster = client->cluster;

	if (client->is_opened) {
		cluster->wants_map = true;
		update(client);
		return client->open_err.status == HAPAX_OK && link->pending != NULL;
	}
	if (cluster->has_map) {
		if (is_owner(client, link))
			hx_redis_client_opened(client, err);
		return false;
	}
	/* Another server of the URL may know more. */
	if (++cluster->seed < client->place->endpoint_count)
		hx_redis_link_connect(client->links[cluster->seed]);
	else
		hx_redis_client_opened(client, err);
	return false;
}

void hx_redis_cluster_lost(struct hx_redis_client *client)
{
	client->cluster->wants_map = true;
	update(client);
}

/* ---------------------------------------------------------------- life */

enum hapax_status hx_redis_cluster_new(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = hx_alloc_zero(1, sizeof(*cluster));
	enum hapax_status status;

	if (cluster == NULL)
		return HAPAX_ERR_NO_MEMORY;
	cluster->floor = hx_redis_floor_new(client);
	status = cluster->floor == NULL
		? HAPAX_ERR_NO_MEMORY
		: hx_timer_introduce(&client->reactor.timers, &cluster->tick, on_tick, client);
	if (status != HAPAX_OK) {
		hx_redis_floor_free(cluster->floor);
		hx_free(cluster);
		return status;
	}
	for (unsigned i = 0; i < HX_REDIS_PARTITIONS; i++) {
		char prefix[HX_REDIS_PARTITION_PREFIX_SIZE];
		size_t size = hx_redis_partition_prefix(client->place, i, prefix);

		cluster->slots[i] = hx_redis_slot(hx_bytes(prefix, size));
		cluster->owners[i] = -1;
	}
	for (size_t i = 0; i < ASKS; i++) {
		cluster->asks[i].client = client;
		hx_buf_init(&cluster->asks[i].reply, MAP_SIZE_MAX);
	}
	client->cluster = cluster;
	return HAPAX_OK;
}

void hx_redis_cluster_free(struct hx_redis_client *client)
{
	struct hx_redis_cluster *cluster = client->cluster;

	if (cluster == NULL)
		return;
	hx_timer_retire(&client->reactor.timers, &cluster->tick);
	for (size_t i = 0; i < ASKS; i++)
		hx_buf_done(&cluster->asks[i].reply);
	hx_redis_floor_free(cluster->floor);
	hx_free(cluster);
	client->cluster = NULL;
}
