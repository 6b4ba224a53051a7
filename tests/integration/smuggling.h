/* SPDX-License-Identifier: Apache-2.0 */
/*
 * smuggling.h - requests that are known to be read in two ways by two readers, from the
 * published attacks (CL.TE, TE.CL, TE.TE, CL.CL, CL.0, chunk extensions, bare line ends).
 * The second request of each is the one that an attacker would smuggle.
 */
#ifndef TEST_INTEGRATION_SMUGGLING_H
#define TEST_INTEGRATION_SMUGGLING_H

#include <stddef.h>

struct smuggling_case {
	const char *data;
	size_t size;
};

#define POST "POST / HTTP/1.1\r\nHost: h\r\n"
#define EVIL "GET /evil HTTP/1.1\r\nHost: h\r\n\r\n"
#define PAIR(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

/* clang-format off */
static const struct smuggling_case pairs[] = {
	/* CL.TE and TE.CL */
	PAIR(POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"),
	PAIR(POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5c\r\n" EVIL "\r\n0\r\n\r\n"),
	PAIR(POST "Transfer-Encoding: chunked\r\nContent-Length: 35\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Content-length: 4\r\nTransfer-encoding: identity\r\n\r\nabcd" EVIL),
	/* TE.TE: the name or the value in disguise */
	PAIR(POST "Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding\t: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST " Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\x0b\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding:\x0b" "chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: \xff" "chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: \"chunked\"\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunk\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked;x\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "\0Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\0\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" EVIL),
	PAIR("POST / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" EVIL),
	/* CL.CL */
	PAIR(POST "Content-Length: 0\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 31\r\nContent-Length: 0\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 0, 31\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: +0\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: -1\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 0x1f\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 0 31\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 18446744073709551616\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 18446744073709551647\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 4294967296\r\n\r\n" EVIL),
	PAIR(POST "Content-Length : 31\r\n\r\n" EVIL),
	PAIR(POST "Content_Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Content-Length:\r\n 31\r\n\r\n" EVIL),
	PAIR(POST "Content-Length: 031\r\n\r\n" EVIL),
	PAIR(POST "Content-Length\0: 31\r\n\r\n" EVIL),
	/* CL.0: a body where none is expected */
	PAIR("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR("HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR("DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR("OPTIONS / HTTP/1.1\r\nHost: h\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n" EVIL "\r\n0\r\n\r\n"),
	PAIR(POST "Expect: 100-continue\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Expect: x\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Connection: Content-Length\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" EVIL),
	/* chunks */
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nContent-Length: 31\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\n0\n\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2\r\nabX\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2 \r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n 2\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2;a=\"\r\nab\r\n0\r\n\r\n" EVIL "\"\r\n"),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n2_0\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n00000000000000000002\r\nab\r\n0\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n0\r\nX\r\n\r\n" EVIL),
	PAIR(POST "Transfer-Encoding: chunked\r\n\r\n0\r\nX : y\r\n\r\n" EVIL),
	/* first lines and ends of lines */
	PAIR("GET / HTTP/1.1\r\nHost: h\n\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n"),
	PAIR("GET / HTTP/1.1\r\nHost: h\r\n\n" EVIL),
	PAIR("GET / HTTP/1.1\r\nHost: h\r\n\r" EVIL),
	PAIR("GET / HTTP/1.1\r\n\r\n" EVIL),
	PAIR("GET / HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n" EVIL),
	PAIR("GET http://g/ HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET /\r\n" EVIL),
	PAIR("GET / HTTP/1.1 \r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET  / HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET / a HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET / HTTP/1.2\r\nHost: h\r\n\r\n" EVIL),
	PAIR("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET /%0d%0aHost:%20g HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET /#x HTTP/1.1\r\nHost: h\r\n\r\n" EVIL),
	PAIR("GET / HTTP/1.1\r\nHost: h\r\nX:y:Transfer-Encoding: chunked\r\n\r\n" EVIL),
};
/* clang-format on */

#endif
