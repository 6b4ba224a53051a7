/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_faults.h - texts that are no configuration, and the beginning of what is said
 * about each; the file is called h.yaml.
 */
#ifndef TEST_UNIT_CONFIG_FAULTS_H
#define TEST_UNIT_CONFIG_FAULTS_H

static const struct {
	const char *text;
	const char *message;
} config_faults[] = {
	{"defaults:\n  tll: 24h\n", "h.yaml:2:3: unknown key 'tll' (did you mean 'ttl'?)"},
	{"zzz: 1\n", "h.yaml:1:1: unknown key 'zzz' in the file"},
	{"<<: 1\n", "h.yaml:1:1: unknown key '<<' in the file"},
	{"defaults: {ttl: 24}\n",
         "h.yaml:1:17: ttl: '24' is not a duration such as 30s, 5m, 24h or 7d, or forever"},
	{"defaults: {ttl: 0s}\n", "h.yaml:1:17: ttl: '0s' is not between 1ms and "},
	{"defaults: {lease: 8d}\n", "h.yaml:1:19: lease: '8d' is not between 100ms and 1w"},
	{"defaults: {lease: forever}\n", "h.yaml:1:19: lease: 'forever' is not a duration"},
	{"defaults: {on_lapse: prak}\n",
         "h.yaml:1:22: on_lapse: 'prak' is unknown (did you mean 'park'?)"},
	{"defaults: {on_lapse: zzzz}\n", "h.yaml:1:22: on_lapse: 'zzzz' is not retry or park"},
	{"defaults: {enabled: yes}\n", "h.yaml:1:21: enabled: 'yes' is not true or false"},
	{"store: {max_result: 17MiB}\n",
         "h.yaml:1:21: max_result: '17MiB' is not between 1 and 16MiB"},
	/* 0 would be the store's default, and not what was written. */
	{"store: {max_result: 0}\n", "h.yaml:1:21: max_result: '0' is not between 1 and 16MiB"},
	{"store: {max_result: 1.5MiB}\n",
         "h.yaml:1:21: max_result: '1.5MiB' is not a size such as 64KiB or 10MB"},
	{"http: {max_fields: -1}\n", "h.yaml:1:20: max_fields: '-1' is not a whole number"},
	{"http: {max_fields: 101}\n", "h.yaml:1:20: max_fields: '101' is not between 8 and 100"},
	{"http: {max_fields: 99999999999999999999}\n",
         "h.yaml:1:20: max_fields: '99999999999999999999' is not between 8 and 100"},
	{"http: {max_line: 32KiB}\n", "http.max_line: it is larger than http.max_head"},
	{"listen: {gateway: 8080}\n", "h.yaml:1:19: gateway: '8080' is no address:"},
	{"listen: {gateway: 'localhost:99999'}\n",
         "h.yaml:1:19: gateway: 'localhost:99999' is no address:"},
	{"listen: 8080\n", "h.yaml:1:9: 'listen' needs a map of settings"},
	{"listen: [8080]\n", "h.yaml:1:9: 'listen' needs a map of settings"},
	{"scopes: {a: 1}\n", "h.yaml:1:9: 'scopes' needs a list of maps"},
	{"scopes: [a]\n", "h.yaml:1:10: 'scopes' needs a list of maps"},
	{"loops: {}\n", "h.yaml:1:8: 'loops' needs a whole number"},
	{"loops:\n", "h.yaml:1:7: 'loops' needs a whole number"},
	{"- a\n", "h.yaml:1:1: a configuration is a map of settings"},
	{"scopes: [{ttl: 1s}]\n", "h.yaml:1:10: a scope needs 'scope'"},
	{"scopes: [{scope: a}]\n", "h.yaml:1:18: scope: 'a' is not of the form TENANT/GROUP"},
	{"scopes: [{scope: a/b/c}]\n", "h.yaml:1:18: scope: 'a/b/c' has a slash too many"},
	{"scopes: [{scope: /b}]\n", "h.yaml:1:18: scope: '/b' lacks the tenant or the group"},
	{"scopes: [{scope: a*/b}]\n", "h.yaml:1:18: scope: 'a*/b' has a * beside other characters"},
	{"scopes: [{scope: a/b}, {scope: a/b}]\n", "h.yaml:1:24: scope 'a/b' occurs twice"},
	{"defaults: {types: [{type: a}]}\n", "h.yaml:1:20: a type needs 'ttl'"},
	{"defaults: {types: [{type: 'a*b', ttl: 1s}]}\n",
         "h.yaml:1:27: type: 'a*b' has a * that is not its last character"},
	{"gateway: {routes: [{}]}\n",
         "h.yaml:1:20: route 'route-1' has no upstream, and upstream.url is empty"},
	{"gateway: {routes: [{path: x}]}\n", "h.yaml:1:27: path: 'x' does not begin with a slash"},
	{"gateway: {routes: [{path: '/a?b'}]}\n",
         "h.yaml:1:27: path: '/a?b' has a character that a path cannot have"},
	{"gateway: {routes: [{key: 'fild:x'}]}\n", "h.yaml:1:26: key: 'fild:x' is no strategy:"},
	{"gateway: {routes: [{key: uuid7}]}\n", "h.yaml:1:26: key: 'uuid7' is no strategy:"},
	{"gateway: {routes: [{upstream: 'ftp://x'}]}\n",
         "h.yaml:1:31: upstream: 'ftp://x' does not begin with http:// or https://"},
	{"upstream: {url: 'http://'}\n", "h.yaml:1:17: url: 'http://' has no host"},
	{"upstream: {url: 'http://u:p@h'}\n", "h.yaml:1:17: url: 'http://u:p@h' has a user"},
	{"upstream: {url: 'http://h/?q'}\n",
         "h.yaml:1:17: url: 'http://h/?q' has a query or a fragment"},
	{"upstream: {url: 'http://h:0'}\n", "h.yaml:1:17: url: 'http://h:0' has no host and port"},
	{"upstream: {url: 'http://h'}\ngateway: {routes: [{name: a}, {name: a}]}\n",
         "h.yaml:2:31: route 'a' occurs twice"},
	{"upstream: {url: 'http://h'}\ngateway: {routes: [{include: [a]}]}\n",
         "h.yaml:2:20: route 'route-1': "},
	{"upstream: {url: 'http://h'}\ngateway: {routes: [{tenant_from: nonsense}]}\n",
         "h.yaml:2:20: route 'route-1': "},
};

#endif
