/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_field.c - the meaning of a whole head: its target and host, where the body ends, and whether
 * the connection stays open (RFC 9112 3, 6 and 9).
 */
#include "wire/http1/http1_parse.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/http1/http1_text.h"

static const struct {
	struct hapax_bytes name;
	bool single; /* two of it are refused, even when they are equal */
} known_fields[HX_HTTP1_KNOWN_COUNT] = {
	[HX_HTTP1_HOST] = {HX_BYTES_LIT("host"), true},
	[HX_HTTP1_CONTENT_LENGTH] = {HX_BYTES_LIT("content-length"), true},
	[HX_HTTP1_TRANSFER_ENCODING] = {HX_BYTES_LIT("transfer-encoding"), true},
	/* Decides how an event is read; two readers may choose different ones. */
	[HX_HTTP1_CONTENT_TYPE] = {HX_BYTES_LIT("content-type"), true},
	[HX_HTTP1_CONNECTION] = {HX_BYTES_LIT("connection"), false},
	[HX_HTTP1_EXPECT] = {HX_BYTES_LIT("expect"), true},
};

/* By its length, for most fields are none of these. */
static int known_by_size(size_t size)
{
	switch (size) {
	case 4: return HX_HTTP1_HOST;
	case 6: return HX_HTTP1_EXPECT;
	case 10: return HX_HTTP1_CONNECTION;
	case 12: return HX_HTTP1_CONTENT_TYPE;
	case 14: return HX_HTTP1_CONTENT_LENGTH;
	case 17: return HX_HTTP1_TRANSFER_ENCODING;
	default: return -1;
	}
}

void hx_http1_note_field(struct hx_http1_head *head, size_t index)
{
	struct hapax_bytes name = head->fields[index].name;
	int known = known_by_size(name.size);

	if (known < 0 || !hx_http1_text_equal(name, known_fields[known].name))
		return;
	if (head->known[known] != 0)
		head->repeated |= 1U << known;
	else
		head->known[known] = (uint8_t)(index + 1);
}

struct hapax_bytes hx_http1_known(const struct hx_http1_head *head, enum hx_http1_known known)
{
	if (head->known[known] == 0)
		return (struct hapax_bytes){NULL, 0};
	return head->fields[head->known[known] - 1].value;
}

size_t hx_http1_find(const struct hx_http1_head *head, struct hapax_bytes name, size_t index)
{
	while (index < head->field_count && !hx_http1_text_equal(head->fields[index].name, name))
		index++;
	return index;
}

/* Refuse because of a known field; at is its value. */
static bool http1_field_refuse(
	const struct hx_http1_head *head, enum hx_http1_known known, unsigned status,
	const char *reason, struct hx_http1_fault *fault)
{
	const struct hapax_field *field = &head->fields[head->known[known] - 1];

	(void)hx_http1_bad(fault, status, field->value.data, reason);
	fault->name = field->name;
	return false;
}

/*
 * For a response, check only its framing: the work is done, and refusing the response would lose
 * it, so that the work would be repeated.
 */
static bool check_single(
	const struct hx_http1_head *head, bool is_request, struct hx_http1_fault *fault)
{
	const unsigned framing = 1U << HX_HTTP1_CONTENT_LENGTH | 1U << HX_HTTP1_TRANSFER_ENCODING;
	unsigned repeated = is_request ? head->repeated : head->repeated & framing;

	for (unsigned known = 0; known < HX_HTTP1_KNOWN_COUNT; known++) {
		if ((repeated & 1U << known) != 0 && known_fields[known].single)
			return http1_field_refuse(
				head, known, 400, "the header occurs twice", fault);
	}
	return true;
}

/* Saturates: a value that does not fit is over every limit. */
static bool read_length(const struct hx_http1_head *head, uint64_t *ret)
{
	struct hapax_bytes text = hx_http1_known(head, HX_HTTP1_CONTENT_LENGTH);
	const unsigned char *at = text.data;
	uint64_t length = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (!hx_http1_is_digit(at[i]))
			return false;
		if (length > (UINT64_MAX - 9) / 10)
			length = UINT64_MAX;
		else
			length = length * 10 + (uint64_t)(at[i] - '0');
	}
	*ret = length;
	return text.size > 0;
}

/*
 * Only "chunked" itself. Where it is last behind others the end of the body is known,
 * but not what is in it (501); where it is not, not even that (400).
 */
static bool check_coding(
	const struct hx_http1_head *head, unsigned unknown_status, struct hx_http1_fault *fault)
{
	const struct hapax_bytes chunked = HX_BYTES_LIT("chunked");
	struct hapax_bytes list = hx_http1_known(head, HX_HTTP1_TRANSFER_ENCODING);
	struct hapax_bytes coding = {NULL, 0};
	unsigned count = 0;
	unsigned chunked_count = 0;

	if (hx_http1_text_equal(list, chunked))
		return true;
	while (hx_http1_list_next(&list, &coding)) {
		count++;
		chunked_count += hx_http1_text_equal(coding, chunked);
	}
	if (chunked_count == 1 && count > 1 && hx_http1_text_equal(coding, chunked))
		return http1_field_refuse(
			head, HX_HTTP1_TRANSFER_ENCODING, unknown_status,
			"only the transfer coding 'chunked' is supported", fault);
	return http1_field_refuse(
		head, HX_HTTP1_TRANSFER_ENCODING, 400, "it must be 'chunked' and nothing else",
		fault);
}

/* The rules that requests and responses share. Sets body for all but "neither". */
static bool read_framing(
	struct hx_http1_head *head, unsigned unknown_status, struct hx_http1_fault *fault)
{
	bool has_length = head->known[HX_HTTP1_CONTENT_LENGTH] != 0;

	head->body = HX_HTTP1_BODY_NONE;
	head->content_length = 0;
	if (has_length && !read_length(head, &head->content_length))
		return http1_field_refuse(
			head, HX_HTTP1_CONTENT_LENGTH, 400, "it is not a number", fault);
	if (head->known[HX_HTTP1_TRANSFER_ENCODING] != 0) {
		if (has_length)
			return http1_field_refuse(
				head, HX_HTTP1_CONTENT_LENGTH, 400,
				"it must not occur together with Transfer-Encoding", fault);
		if (head->version_minor == 0)
			return http1_field_refuse(
				head, HX_HTTP1_TRANSFER_ENCODING, 400,
				"HTTP/1.0 does not have this header", fault);
		if (!check_coding(head, unknown_status, fault))
			return false;
		head->body = HX_HTTP1_BODY_CHUNKED;
	} else if (has_length) {
		head->body = HX_HTTP1_BODY_LENGTH;
	}
	return true;
}

/* Fields that frame, route or type a message: removing them changes its meaning. */
static bool is_end_to_end(struct hapax_bytes name)
{
	int known = known_by_size(name.size);

	return known >= 0 && known != HX_HTTP1_CONNECTION && known != HX_HTTP1_EXPECT &&
		hx_http1_text_equal(name, known_fields[known].name);
}

/*
 * Fields that identify an event (CloudEvents), or that are ours: if they were removed on the way,
 * the next hop would get a different event from the one checked here.
 */
static bool is_identity(const struct hx_http1_head *head, struct hapax_bytes name)
{
	static const struct hapax_bytes prefixes[] = {HX_BYTES_LIT("ce-"), HX_BYTES_LIT("Hapax-")};

	for (size_t i = 0; i < HX_COUNT(prefixes); i++) {
		size_t size = prefixes[i].size;

		if (head->status == 0 && name.size >= size &&
		    hx_http1_text_equal(hx_bytes(name.data, size), prefixes[i]))
			return true;
	}
	return false;
}

static bool read_connection(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	bool close = false;
	bool keep = false;

	for (size_t i = head->known[HX_HTTP1_CONNECTION]; i != 0 && i <= head->field_count; i++) {
		const struct hapax_field *field = &head->fields[i - 1];
		struct hapax_bytes list = field->value;
		struct hapax_bytes option;

		if (!hx_http1_text_equal(field->name, known_fields[HX_HTTP1_CONNECTION].name))
			continue;
		while (hx_http1_list_next(&list, &option)) {
			if (!hx_http1_is_token(option) || is_end_to_end(option) ||
			    is_identity(head, option)) {
				(void)hx_http1_bad(
					fault, 400, option.data,
					hx_http1_is_token(option)
						? "it names a header that every hop needs"
						: "it is not a list of names");
				fault->name = field->name;
				return false;
			}
			close |= hx_http1_text_equal(option, HX_BYTES_LIT("close"));
			keep |= hx_http1_text_equal(option, HX_BYTES_LIT("keep-alive"));
		}
	}
	head->keep_alive = !close && (keep || head->version_minor > 0);
	return true;
}

static bool is_port(const unsigned char *at, const unsigned char *end)
{
	unsigned port = 0;

	/* "host:" has an empty port, which RFC 3986 allows. */
	for (; at < end; at++) {
		if (!hx_http1_is_digit(*at))
			return false;
		port = port * 10 + (unsigned)(*at - '0');
		if (port > 65535)
			return false;
	}
	return true;
}

/* The allowed bytes between brackets; connect(2) decides whether it is a valid address. */
static const unsigned char *skip_literal(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *begin = ++at;

	while (at < end && (hx_http1_hex(*at) >= 0 || *at == ':' || *at == '.'))
		at++;
	return at < end && *at == ']' && at - begin >= 2 ? at + 1 : NULL;
}

static const unsigned char *skip_name(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *begin = at;

	while (at < end && hx_http1_is(*at, HX_HTTP1_REGNAME)) {
		/* A list of hosts, or one in disguise: never used, and readers differ. */
		if (*at == ',' || *at == '%')
			return NULL;
		at++;
	}
	return at > begin ? at : NULL;
}

/* host [":" port], as it may stand in Host. */
static bool is_authority(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	const unsigned char *end = at + text.size;

	if (text.size == 0)
		return false;
	at = *at == '[' ? skip_literal(at, end) : skip_name(at, end);
	if (at == NULL)
		return false;
	return at == end || (*at == ':' && is_port(at + 1, end));
}

/*
 * Every % in a path begins two hexadecimal digits, and none is a NUL: what routes by
 * path and what serves it must see one path. A query is passed on as it is.
 */
static bool check_path(struct hapax_bytes path, struct hx_http1_fault *fault)
{
	const unsigned char *at = path.data;
	const unsigned char *end = at + path.size;
	const unsigned char *query = memchr(at, '?', path.size);

	if (query != NULL)
		end = query;
	while ((at = memchr(at, '%', (size_t)(end - at))) != NULL) {
		bool whole = end - at >= 3 && hx_http1_hex(at[1]) >= 0 && hx_http1_hex(at[2]) >= 0;

		if (!whole || (at[1] == '0' && at[2] == '0'))
			return hx_http1_fails(
				fault, 400, at,
				whole ? "%00 in a path"
				      : "% in a path needs two hexadecimal digits");
		at += 3;
	}
	return true;
}

/* The bytes after "http://" or "https://"; 0: it has another scheme. */
static size_t scheme_size(struct hapax_bytes target)
{
	static const struct hapax_bytes schemes[] = {
		HX_BYTES_LIT("http://"), HX_BYTES_LIT("https://")};

	for (size_t i = 0; i < 2; i++) {
		size_t size = schemes[i].size;

		if (target.size >= size &&
		    hx_http1_text_equal((struct hapax_bytes){target.data, size}, schemes[i]))
			return size;
	}
	return 0;
}

static bool split_absolute(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	const unsigned char *begin = head->target.data;
	const unsigned char *end = begin + head->target.size;
	const unsigned char *host = begin + scheme_size(head->target);
	const unsigned char *at = host;

	if (host == begin)
		return hx_http1_fails(
			fault, 400, begin, "the target must be a path or an http URL");
	while (at < end && *at != '/' && *at != '?')
		at++;
	head->authority = (struct hapax_bytes){host, (size_t)(at - host)};
	head->path = (struct hapax_bytes){at, (size_t)(end - at)};
	if (!is_authority(head->authority))
		return hx_http1_fails(fault, 400, host, "the target has no valid host");
	if (at == end)
		head->path = HX_BYTES_LIT("/");
	else if (*at == '?') {
		/* "http://host?q" has the empty path, which cannot be written as origin-form. */
		return hx_http1_fails(fault, 400, at, "the target has a query but no path");
	}
	return true;
}

/*
 * Sets path and authority from target: the forms of RFC 9112 3.2. CONNECT and its authority-form are
 * not here: the codec never becomes a tunnel.
 */
static bool split_target(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	const unsigned char *begin = head->target.data;

	head->path = head->target;
	head->authority = (struct hapax_bytes){NULL, 0};
	if (hx_bytes_equal(head->target, HX_BYTES_LIT("*"))) {
		if (hx_bytes_equal(head->method, HX_BYTES_LIT("OPTIONS")))
			return true;
		return hx_http1_fails(fault, 400, begin, "the target * is for OPTIONS only");
	}
	if (*begin != '/' && !split_absolute(head, fault))
		return false;
	return check_path(head->path, fault);
}

static bool check_host(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	struct hapax_bytes host = hx_http1_known(head, HX_HTTP1_HOST);

	if (head->known[HX_HTTP1_HOST] == 0) {
		if (head->version_minor == 0)
			return true;
		return hx_http1_fails(
			fault, 400, head->method.data, "the header 'Host' is missing");
	}
	if (!is_authority(host))
		return http1_field_refuse(
			head, HX_HTTP1_HOST, 400, "it is not a valid host", fault);
	/* With two hosts, one reader uses the first and another the second. */
	if (head->authority.size > 0 && !hx_http1_text_equal(head->authority, host))
		return http1_field_refuse(
			head, HX_HTTP1_HOST, 400, "it differs from the host in the request target",
			fault);
	head->authority = host;
	return true;
}

static bool check_expect(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	struct hapax_bytes value = hx_http1_known(head, HX_HTTP1_EXPECT);

	head->expects_continue = false;
	if (head->known[HX_HTTP1_EXPECT] == 0)
		return true;
	if (!hx_http1_text_equal(value, HX_BYTES_LIT("100-continue")))
		return http1_field_refuse(
			head, HX_HTTP1_EXPECT, 417, "only '100-continue' is supported", fault);
	/* HTTP/1.0 clients must not get 100, and without a body there is no wait. */
	head->expects_continue = head->version_minor > 0 &&
		(head->body == HX_HTTP1_BODY_CHUNKED || head->content_length > 0);
	return true;
}

static bool check_method(const struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	if (hx_bytes_equal(head->method, HX_BYTES_LIT("CONNECT")))
		return hx_http1_fails(fault, 501, head->method.data, "CONNECT is not supported");
	return true;
}

bool hx_http1_understand_request(struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	head->status = 0;
	head->reason = (struct hapax_bytes){NULL, 0};
	if (!check_method(head, fault) || !split_target(head, fault) ||
	    !check_single(head, true, fault) || !check_host(head, fault) ||
	    !read_framing(head, 501, fault) || !read_connection(head, fault) ||
	    !check_expect(head, fault))
		return false;
	if (head->body != HX_HTTP1_BODY_NONE && hx_bytes_equal(head->method, HX_BYTES_LIT("TRACE")))
		return hx_http1_fails(fault, 400, head->method.data, "TRACE must not have a body");
	return true;
}

bool hx_http1_understand_response(
	struct hx_http1_head *head, bool answers_head, struct hx_http1_fault *fault)
{
	const struct hapax_bytes none = {NULL, 0};
	bool bodiless =
		answers_head || head->status < 200 || head->status == 204 || head->status == 304;

	head->method = head->target = head->path = head->authority = none;
	head->expects_continue = false;
	if (head->status == 101)
		return hx_http1_fails(
			fault, 502, head->reason.data, "a switch of protocols was not requested");
	if (!check_single(head, false, fault) || !read_framing(head, 502, fault) ||
	    !read_connection(head, fault))
		return false;
	if (!bodiless) {
		if (head->body == HX_HTTP1_BODY_NONE)
			head->body = HX_HTTP1_BODY_CLOSE;
		if (head->body == HX_HTTP1_BODY_CLOSE)
			head->keep_alive = false;
		return true;
	}
	/* A forbidden body may arrive anyway: do not reuse the connection. */
	if (!answers_head && head->status != 304 &&
	    (head->body == HX_HTTP1_BODY_CHUNKED || head->content_length > 0))
		head->keep_alive = false;
	head->body = HX_HTTP1_BODY_NONE;
	return true;
}

static bool is_listed(const struct hx_http1_head *head, struct hapax_bytes name)
{
	for (size_t i = head->known[HX_HTTP1_CONNECTION]; i != 0 && i <= head->field_count; i++) {
		struct hapax_bytes list = head->fields[i - 1].value;
		struct hapax_bytes option;

		if (!hx_http1_text_equal(
			    head->fields[i - 1].name, known_fields[HX_HTTP1_CONNECTION].name))
			continue;
		while (hx_http1_list_next(&list, &option)) {
			if (hx_http1_text_equal(option, name))
				return true;
		}
	}
	return false;
}

bool hx_http1_is_hop(const struct hx_http1_head *head, struct hapax_bytes name)
{
	static const struct hapax_bytes hops[] = {
		HX_BYTES_LIT("connection"),
		HX_BYTES_LIT("content-length"),
		HX_BYTES_LIT("expect"),
		HX_BYTES_LIT("keep-alive"),
		HX_BYTES_LIT("proxy-authenticate"),
		HX_BYTES_LIT("proxy-authorization"),
		HX_BYTES_LIT("proxy-connection"),
		HX_BYTES_LIT("te"),
		HX_BYTES_LIT("trailer"),
		HX_BYTES_LIT("transfer-encoding"),
		HX_BYTES_LIT("upgrade"),
	};

	for (size_t i = 0; i < HX_COUNT(hops); i++) {
		if (hx_http1_text_equal(name, hops[i]))
			return true;
	}
	return is_listed(head, name);
}
