"""hapax lookup."""

import base64
import hashlib

from harness import expect, expect_in, expect_match

COMMON = ["key", "scope", "state", "origin", "token", "attempt", "first_seen", "changed_at", "expires_at", "ttl_ms"]


def test_a_mark(cli):
    cli.run("check", "order-17", "--payload", "-", "--ttl", "90m", input=b"x")
    result = cli.run("lookup", "order-17")
    expect(result.err, "")
    fields = result.fields()
    expect(
        list(fields),
        ["key", "scope", "state", "origin", "attempt", "token", "first seen", "changed", "expires", "ttl", "fingerprint"],
    )
    for name, value in [
        ("key", "order-17"),
        ("scope", "default/default"),
        ("state", "done"),
        ("origin", "check"),
        ("attempt", "1"),
        ("ttl", "90m"),
        ("fingerprint", hashlib.sha256(b"x").hexdigest()),
    ]:
        expect(fields[name], value, name)
    expect_match(r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(\S+ ago\)\Z", fields["first seen"])
    expect_match(r" \(in 1h2\dm\)\Z", fields["expires"])


def test_a_mark_in_json(cli):
    cli.run("check", "order-17")
    record = cli.run("lookup", "order-17", "-o", "json").json
    expect(list(record), COMMON + ["fingerprint", "result"])
    expect((record["state"], record["origin"], record["fingerprint"], record["result"]), ("done", "check", None, None))
    expect(record["ttl_ms"], 24 * 3600 * 1000)


def test_absent(cli):
    cli.run("check", "other")
    result = cli.run("lookup", "order-17", code=1)
    expect(result.out, "")
    result.says("'order-17' has no record in scope default/default of " + cli.store)
    result = cli.run("lookup", "other", "--scope", "acme/mail", code=1).says("in scope acme/mail")
    result = cli.run("lookup", "order-17", "-o", "json", code=1)
    expect(result.json, {"key": "order-17", "scope": "default/default", "state": "absent"})
    expect(result.err, "")


def test_a_claim(cli):
    token = cli.seed("claim", "k", 600000, "host-3")
    fields = cli.run("lookup", "k").fields()
    expect((fields["state"], fields["owner"], fields["on lapse"]), ("claimed", "host-3", "retry"))
    expect((fields["expires"], fields["token"]), ("never", str(token)))
    expect_match(r" \(in 9m\d\ds\)\Z", fields["lease ends"])
    record = cli.run("lookup", "k", "-o", "json").json
    expect(list(record), COMMON + ["lease_ends_at", "on_lapse", "fingerprint", "owner", "result"])
    expect((record["state"], record["owner"], record["token"]), ("claimed", "host-3", token))


def test_a_failure(cli):
    cli.seed("release", "k", "exit status 3\nand more")
    fields = cli.run("lookup", "k").fields()
    expect((fields["state"], fields["error"]), ("failed", r"exit status 3\nand more"))
    record = cli.run("lookup", "k", "-o", "json").json
    expect((record["state"], record["error"]), ("failed", "exit status 3\nand more"))


def test_a_parked_key(cli):
    cli.seed("park", "k", "the reply was lost")
    record = cli.run("lookup", "k", "-o", "json").json
    expect((record["state"], record["error"], record["expires_at"]), ("parked", "the reply was lost", None))
    expect(cli.run("lookup", "k").fields()["state"], "parked")


def test_a_result_of_text(cli):
    cli.seed("http", "k", 201, "grüße\t\"x\"\n".encode())
    fields = cli.run("lookup", "k").fields()
    expect(fields["result"], "http ok, status 201, 12 bytes")
    expect(fields["body"], 'grüße\\t"x"\\n')
    result = cli.run("lookup", "k", "-o", "json").json["result"]
    expect(
        result,
        {
            "kind": "http",
            "class": "ok",
            "status": 201,
            "headers": "Content-Type: text/plain\r\n",
            "body": 'grüße\t"x"\n',
        },
    )


def test_a_result_that_is_no_text(cli):
    body = bytes(range(256))
    cli.seed("exec", "k", 3, body)
    result = cli.run("lookup", "k", "-o", "json").json["result"]
    expect(list(result), ["kind", "class", "status", "body_base64"])
    expect(base64.b64decode(result["body_base64"], validate=True), body)
    for size in range(1, 7):
        cli.seed("exec", f"k{size}", 0, b"\xff" * size)
        result = cli.run("lookup", f"k{size}", "-o", "json").json["result"]
        expect(base64.b64decode(result["body_base64"], validate=True), b"\xff" * size)


def test_a_long_body_is_cut_in_text_only(cli):
    cli.seed("large", "k", 100_000)
    fields = cli.run("lookup", "k").fields()
    expect(fields["body"], "x" * 512 + "... (-o json shows all)")
    expect(cli.run("lookup", "k", "-o", "json").json["result"]["body"], "x" * 100_000)


def test_a_body_that_was_too_large_to_keep(cli):
    cli.seed("large", "k", 300_000)
    expect_in("300000 bytes, too large to keep", cli.run("lookup", "k").fields()["omitted"])
    result = cli.run("lookup", "k", "-o", "json").json["result"]
    expect((result["body"], result["omitted_bytes"]), ("", 300_000))


def test_control_characters_in_json(cli):
    text = "".join(chr(code) for code in range(1, 0xA1))
    cli.seed("release", "k", text)
    result = cli.run("lookup", "k", "-o", "json")
    expect(result.json["error"], text)
    assert not any(byte < 0x20 and byte != 0x0A or byte == 0x7F for byte in result.raw_out)


def test_lookup_changes_nothing(cli):
    cli.run("check", "k")
    before = cli.sql("SELECT * FROM hapax_record")
    cli.run("lookup", "k")
    cli.run("lookup", "absent", code=1)
    expect(cli.sql("SELECT * FROM hapax_record"), before)
