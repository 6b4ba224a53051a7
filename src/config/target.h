/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - an upstream's URL, parsed like the URL of any called service.
 */
#ifndef HX_CONFIG_TARGET_H
#define HX_CONFIG_TARGET_H

#include "config/schema/schema.h"
#include "net/http/http_url.h"

_Static_assert(
	(int)HX_HTTP_URL_WHY_SIZE <= (int)HX_SETTING_WHY_SIZE,
	"what is wrong with one fits the other");

#endif
