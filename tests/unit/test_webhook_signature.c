/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of webhooks: the examples that the senders publish are valid, and whatever differs
 * from them is not.
 */
#include "wire/webhook_signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

enum { FIELDS_MAX = 4, MINUTE_MS = 60 * 1000 };

/* A signed delivery. */
struct example {
	enum hx_webhook_scheme scheme;
	const char *secret; /* as in its file */
	int64_t time;       /* 0: it has none */
	const char *fields[FIELDS_MAX][2];
	const char *content_type;
	const char *target;
	const char *body;
};

/*
 * Published by GitHub, Slack, Svix and Twilio, in their documents or libraries. Stripe and Shopify
 * publish none: theirs were made with Python's hmac.
 */
static const struct example examples[] = {
	{HX_WEBHOOK_GITHUB,
	 "It's a Secret to Everybody",
	 0,
	 {{"X-Hub-Signature-256",
	   "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
	 "application/json",
	 "/",
	 "Hello, World!"},
	{HX_WEBHOOK_SLACK,
	 "8f742231b10e8888abcd99yyyzzz85a5",
	 1531420618,
	 {{"X-Slack-Request-Timestamp", "1531420618"},
	  {"X-Slack-Signature",
	   "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}},
	 "application/x-www-form-urlencoded",
	 "/",
	 "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id="
	 "G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command="
	 "%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F"
	 "T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015."
	 "47445629121.803a0bc887a14d10d2c447fce8b6703c"},
	{HX_WEBHOOK_STANDARD,
	 "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	 1614265330,
	 {{"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
	  {"webhook-timestamp", "1614265330"},
	  {"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
	 "application/json",
	 "/",
	 "{\"test\": 2432232314}"},
	{HX_WEBHOOK_TWILIO,
	 "12345",
	 0,
	 {{"X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8="}},
	 "application/x-www-form-urlencoded; charset=UTF-8",
	 "/myapp.php?foo=1&bar=2",
	 "To=%2B18005551212&CallSid=CA1234567890ABCDE&Digits=1234&Caller=%2B14158675309&From=%2B"
	 "14158675309"},
	{HX_WEBHOOK_TWILIO,
	 "12345",
	 0,
	 {{"X-Twilio-Signature", "a9nBmqA0ju/hNViExpshrM61xv4="}},
	 "application/json",
	 "/myapp.php?foo=1&bar=2&bodySHA256="
	 "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620",
	 "{\"property\": \"value\", \"boolean\": true}"},
	{HX_WEBHOOK_STRIPE,
	 "whsec_test_secret",
	 1492774577,
	 {{"Stripe-Signature",
	   "t=1492774577,v1=10b0a2815816a45e6b874658b928cae03296be10637343405aaf1e8306ddffdc,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989"
	   "a39"}},
	 "application/json",
	 "/",
	 "{\"id\": \"evt_1\"}"},
	{HX_WEBHOOK_SHOPIFY,
	 "hush",
	 0,
	 {{"X-Shopify-Hmac-Sha256", "qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I="}},
	 "application/json",
	 "/",
	 "{\"id\":820982911946154508}"},
};
enum { EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

/* What a test may change in an example. */
struct change {
	const char *secret; /* NULL: as it is, also below */
	const char *more_secret;
	const char *signature;
	const char *also; /* one more signature header */
	const char *body;
	const char *target;
	const char *content_type;
	int64_t later_ms;
};

static const char *const headers[] = {
	[HX_WEBHOOK_GITHUB] = "X-Hub-Signature-256", [HX_WEBHOOK_SHOPIFY] = "X-Shopify-Hmac-Sha256",
	[HX_WEBHOOK_SLACK] = "X-Slack-Signature",    [HX_WEBHOOK_STANDARD] = "webhook-signature",
	[HX_WEBHOOK_STRIPE] = "Stripe-Signature",    [HX_WEBHOOK_TWILIO] = "X-Twilio-Signature",
};

static const char * or (const char *changed, const char *original)
{
	return changed != NULL ? changed : original;
}

static enum hapax_status check(
	const struct example *example, const struct change *change, struct hapax_error *err)
{
	struct hapax_field fields[FIELDS_MAX + 1];
	unsigned char bytes[2][256];
	struct hapax_bytes secrets[2] = {{bytes[0], 0}, {bytes[1], 0}};
	struct hx_webhook webhook = {
		.scheme = example->scheme,
		.secrets = secrets,
		.secret_count = change->more_secret != NULL ? 2 : 1,
		.tolerance_ms = 5 * MINUTE_MS,
		.now_ms = 1000 * example->time + change->later_ms,
		.fields = fields,
		.content_type =
			hapax_bytes_from_text(or (change->content_type, example->content_type)),
		.origin = HX_BYTES_LIT("https://mycompany.com"),
		.target = hapax_bytes_from_text(or (change->target, example->target)),
		.body = hapax_bytes_from_text(or (change->body, example->body))};
	struct hapax_buf scratch;
	enum hapax_status status;

	assert_true(hx_webhook_secret_read(
		example->scheme, hapax_bytes_from_text(or (change->secret, example->secret)),
		bytes[0], &secrets[0].size));
	if (change->more_secret != NULL)
		assert_true(hx_webhook_secret_read(
			example->scheme, hapax_bytes_from_text(change->more_secret), bytes[1],
			&secrets[1].size));
	for (size_t i = 0; i < FIELDS_MAX && example->fields[i][0] != NULL; i++) {
		const char *name = example->fields[i][0];
		const char *value = example->fields[i][1];

		if (change->signature != NULL && strcmp(name, headers[example->scheme]) == 0)
			value = change->signature;
		fields[webhook.field_count++] = (struct hapax_field){
			hapax_bytes_from_text(name), hapax_bytes_from_text(value)};
	}
	if (change->also != NULL)
		fields[webhook.field_count++] = (struct hapax_field){
			hapax_bytes_from_text(headers[example->scheme]),
			hapax_bytes_from_text(change->also)};
	hx_buf_init(&scratch, 64 * 1024);
	status = hx_webhook_signature_check(&webhook, &scratch, err);
	hx_buf_done(&scratch);
	return status;
}

static void valid(const struct example *example, struct change change)
{
	struct hapax_error err;

	if (check(example, &change, &err) != HAPAX_OK)
		fail_msg("%s: %s", headers[example->scheme], err.message);
}

static void invalid(const struct example *example, struct change change, const char *why)
{
	struct hapax_error err;

	assert_int_equal(check(example, &change, &err), HAPAX_ERR_INVALID);
	if (strstr(err.message, why) == NULL)
		fail_msg("%s: '%s', not '%s'", headers[example->scheme], err.message, why);
}

static void what_the_senders_publish(void **state)
{
	(void)state;
	for (size_t i = 0; i < EXAMPLES; i++)
		valid(&examples[i], (struct change){.later_ms = 0});
}

static void another_secret_or_body(void **state)
{
	(void)state;
	for (size_t i = 0; i < EXAMPLES; i++) {
		const struct example *one = &examples[i];

		invalid(one, (struct change){.secret = "AAAA"}, "does not match");
		invalid(one, (struct change){.body = "x=1"},
			one->scheme == HX_WEBHOOK_TWILIO && i > 3 ? "not a form"
								  : "does not match");
		invalid(one, (struct change){.signature = ""},
			one->scheme == HX_WEBHOOK_STRIPE ? "no time" : "does not match");
		invalid(one, (struct change){.also = "x"}, "occurs twice");
		/* Either secret counts while one is replaced. */
		valid(one, (struct change){.secret = "AAAA", .more_secret = one->secret});
		valid(one, (struct change){.more_secret = "AAAA"});
	}
}

static void every_digit_counts(void **state)
{
	static const char prefix[] = "sha256=";
	const struct example *one = &examples[0];
	char text[128];

	(void)state;
	assert_int_equal(one->scheme, HX_WEBHOOK_GITHUB);
	for (size_t i = sizeof(prefix) - 1; one->fields[0][1][i] != '\0'; i++) {
		(void)snprintf(text, sizeof(text), "%s", one->fields[0][1]);
		text[i] = text[i] == '0' ? '1' : '0';
		invalid(one, (struct change){.signature = text}, "does not match");
	}
}

/* Too old, or from a clock that is ahead. */
static void the_time_of_a_signature(void **state)
{
	(void)state;
	for (size_t i = 0; i < EXAMPLES; i++) {
		const struct example *one = &examples[i];

		valid(one, (struct change){.later_ms = 5 * MINUTE_MS});
		valid(one, (struct change){.later_ms = -5 * MINUTE_MS});
		if (one->time == 0)
			continue;
		invalid(one, (struct change){.later_ms = 5 * MINUTE_MS + 1}, "too far");
		invalid(one, (struct change){.later_ms = -5 * MINUTE_MS - 1}, "too far");
	}
}

static const struct example *example_of(enum hx_webhook_scheme scheme)
{
	for (size_t i = 0; i < EXAMPLES; i++) {
		if (examples[i].scheme == scheme)
			return &examples[i];
	}
	return NULL;
}

#define GOOD "10b0a2815816a45e6b874658b928cae03296be10637343405aaf1e8306ddffdc"
#define BAD  "0000000000000000000000000000000000000000000000000000000000000000"

static void several_signatures(void **state)
{
	const struct example *stripe = example_of(HX_WEBHOOK_STRIPE);
	const struct example *standard = example_of(HX_WEBHOOK_STANDARD);

	(void)state;
	valid(stripe, (struct change){.signature = "v1=" BAD ",v1=" GOOD ",t=1492774577"});
	invalid(stripe, (struct change){.signature = "t=1492774577,v0=" GOOD}, "does not match");
	invalid(stripe, (struct change){.signature = "v1=" GOOD}, "no time");
	invalid(stripe, (struct change){.signature = "t=1492774577,t=1492774577,v1=" GOOD},
		"more than one time");
	invalid(stripe, (struct change){.signature = "t=1492774577 ,v1=" GOOD}, "is invalid");
	invalid(stripe, (struct change){.signature = "t=-1,v1=" GOOD}, "is invalid");
	invalid(stripe, (struct change){.signature = "t=,v1=" GOOD}, "is invalid");
	invalid(stripe, (struct change){.signature = "t=1492774577000,v1=" GOOD}, "is invalid");
	valid(standard,
	      (struct change){
		      .signature = "v1,AAAA v1a,xx "
				   "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="});
	invalid(standard,
		(struct change){.signature = "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		"does not match");
	/* As long as a signature of 32 bytes, with one more. */
	invalid(standard,
		(struct change){.signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OEA"},
		"does not match");
}

/* Fields of a form count in any order, each pair once; the URL counts as it is. */
static void forms(void **state)
{
	const struct example *one = example_of(HX_WEBHOOK_TWILIO);

	(void)state;
	valid(one,
	      (struct change){
		      .body = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits="
			      "1234&From=%2b14158675309&To=%2B18005551212&Digits="
			      "1234"});
	invalid(one, (struct change){.target = "/myapp.php?bar=2&foo=1"}, "does not match");
	invalid(one, (struct change){.target = "/myapp.php"}, "does not match");
	invalid(one, (struct change){.body = "To=%2"}, "percent");
	invalid(one, (struct change){.content_type = "application/json"}, "not a form");
	invalid(one, (struct change){.content_type = ""}, "not a form");
	/* A name and its value have no border: fail, unless all of it is the same. */
	invalid(one, (struct change){.body = ""}, "does not match");
}

static void secrets(void **state)
{
	unsigned char bytes[HX_WEBHOOK_SECRET_SIZE_MAX + 1];
	size_t size;

	(void)state;
	assert_false(hx_webhook_secret_read(HX_WEBHOOK_GITHUB, HX_BYTES_LIT(""), bytes, &size));
	memset(bytes, 'x', sizeof(bytes));
	assert_false(hx_webhook_secret_read(
		HX_WEBHOOK_GITHUB, hx_bytes(bytes, sizeof(bytes)), bytes, &size));
	assert_false(
		hx_webhook_secret_read(HX_WEBHOOK_STANDARD, HX_BYTES_LIT("whsec_"), bytes, &size));
	assert_false(
		hx_webhook_secret_read(HX_WEBHOOK_STANDARD, HX_BYTES_LIT("whsec_a"), bytes, &size));
	assert_true(
		hx_webhook_secret_read(HX_WEBHOOK_STANDARD, HX_BYTES_LIT("AAAA"), bytes, &size));
	assert_int_equal(size, 3);
	/* That of Stripe begins the same way, and is used as it is. */
	assert_true(hx_webhook_secret_read(
		HX_WEBHOOK_STRIPE, HX_BYTES_LIT("whsec_AAAA"), bytes, &size));
	assert_int_equal(size, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_senders_publish),
		cmocka_unit_test(another_secret_or_body),
		cmocka_unit_test(every_digit_counts),
		cmocka_unit_test(the_time_of_a_signature),
		cmocka_unit_test(several_signatures),
		cmocka_unit_test(forms),
		cmocka_unit_test(secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
