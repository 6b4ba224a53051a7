/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/awaited.h"

#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/bytes.h"
#include "base/limits.h"

void hx_postgres_awaited_init(struct hx_postgres_awaited *awaited, struct hapax_store *store)
{
	awaited->store = store;
	for (size_t i = 0; i < HX_POSTGRES_AWAITED_SETS; i++)
		for (size_t k = 0; k < HX_POSTGRES_AWAITED_WAYS; k++)
			hx_buf_init(
				&awaited->sets[i].claims[k].names,
				2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX);
}

void hx_postgres_awaited_done(struct hx_postgres_awaited *awaited)
{
	for (size_t i = 0; i < HX_POSTGRES_AWAITED_SETS; i++)
		for (size_t k = 0; k < HX_POSTGRES_AWAITED_WAYS; k++)
			hx_buf_done(&awaited->sets[i].claims[k].names);
}

/* Tokens follow a clock: the low bits alone would collide. */
static struct hx_postgres_awaited_set *set_of(struct hx_postgres_awaited *awaited, uint64_t token)
{
	return &awaited
			->sets[token * UINT64_C(0x9e3779b97f4a7c15) >> 32 &
			       (HX_POSTGRES_AWAITED_SETS - 1)];
}

static bool is_same(
	const struct hx_postgres_awaited_claim *claim, const struct hapax_op *op, uint64_t token)
{
	size_t group_at = claim->tenant_size;
	size_t key_at = group_at + claim->group_size;

	return claim->token == token &&
		hx_bytes_equal(hx_bytes(claim->names.data, group_at), op->tenant) &&
		hx_bytes_equal(
			hx_bytes(claim->names.data + group_at, claim->group_size), op->group) &&
		hx_bytes_equal(
			hx_bytes(claim->names.data + key_at, claim->names.size - key_at), op->key);
}

void hx_postgres_awaited_add(
	struct hx_postgres_awaited *awaited, const struct hapax_op *op, uint64_t token)
{
	struct hx_postgres_awaited_set *set = set_of(awaited, token);
	struct hx_postgres_awaited_claim *claim = &set->claims[set->next];

	if (token == 0)
		return;
	if (set->ended == token) {
		hapax_store_announce(awaited->store, op->tenant, op->group, op->key);
		return;
	}
	for (size_t i = 0; i < HX_POSTGRES_AWAITED_WAYS; i++) {
		if (is_same(&set->claims[i], op, token))
			return;
	}
	claim->token = 0;
	hx_buf_clear(&claim->names);
	if (hx_buf_append(&claim->names, op->tenant.data, op->tenant.size) != HAPAX_OK ||
	    hx_buf_append(&claim->names, op->group.data, op->group.size) != HAPAX_OK ||
	    hx_buf_append(&claim->names, op->key.data, op->key.size) != HAPAX_OK)
		return;
	claim->token = token;
	claim->tenant_size = op->tenant.size;
	claim->group_size = op->group.size;
	set->next = (set->next + 1) % HX_POSTGRES_AWAITED_WAYS;
}

static void announce(struct hx_postgres_awaited *awaited, struct hx_postgres_awaited_claim *claim)
{
	const unsigned char *names = claim->names.data;
	size_t key_at = claim->tenant_size + claim->group_size;

	claim->token = 0;
	hapax_store_announce(
		awaited->store, hx_bytes(names, claim->tenant_size),
		hx_bytes(names + claim->tenant_size, claim->group_size),
		hx_bytes(names + key_at, claim->names.size - key_at));
}

void hx_postgres_awaited_end(struct hx_postgres_awaited *awaited, uint64_t token)
{
	struct hx_postgres_awaited_set *set = set_of(awaited, token);

	if (token == 0)
		return;
	set->ended = token;
	for (size_t i = 0; i < HX_POSTGRES_AWAITED_WAYS; i++) {
		if (set->claims[i].token == token)
			announce(awaited, &set->claims[i]);
	}
}

void hx_postgres_awaited_end_all(struct hx_postgres_awaited *awaited)
{
	for (size_t i = 0; i < HX_POSTGRES_AWAITED_SETS; i++) {
		for (size_t k = 0; k < HX_POSTGRES_AWAITED_WAYS; k++) {
			if (awaited->sets[i].claims[k].token != 0)
				announce(awaited, &awaited->sets[i].claims[k]);
		}
	}
}
