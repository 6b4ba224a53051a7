/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.c - the version and the allocator of the library.
 */
#include <hapax/hapax.h>

#include "base/alloc.h"

#define TEXT(number)                #number
#define DOTTED(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *hapax_version(void)
{
	return DOTTED(HAPAX_VERSION_MAJOR, HAPAX_VERSION_MINOR, HAPAX_VERSION_PATCH);
}

enum hapax_status hapax_init(const struct hapax_allocator *allocator)
{
	struct hx_allocator hook;

	if (allocator == NULL || allocator->allocate == NULL || allocator->reallocate == NULL ||
	    allocator->release == NULL)
		return HAPAX_ERR_INVALID;
	hook = (struct hx_allocator){
		allocator->allocate, allocator->reallocate, allocator->release};
	return hx_alloc_hook(&hook) ? HAPAX_OK : HAPAX_ERR_INVALID;
}
