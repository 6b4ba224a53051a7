"""hapax key: the key of a document, by each strategy."""

import hashlib
import json
import os
import pty
import re
import subprocess

from harness import ROOT, expect, expect_in, expect_match

DOCUMENT = json.dumps({
    "source": "https://shop/orders", "id": "17", "type": "order.placed", "time": "2026-11-15T23:30:00+00:00",
    "aggregateType": "Order", "aggregateId": "o:1", "version": 3,
    "data": {"total": 12.50, "lines": [{"sku": "K", "at": 1}, {"sku": "L", "at": 2}], "tenant": "acme"},
}).encode()  # fmt: skip


def key(cli, strategy, *options, document=DOCUMENT, **more):
    return cli.run("key", "--strategy", strategy, *options, input=document, **more)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_json_in_a_string(cli):
    """E20: the body of a topic or a gateway is a JSON document in a string."""
    inner = json.dumps({"id": 7, "sent_at": 1})
    document = json.dumps({"Message": inner}).encode()
    expect(key(cli, "field:Message|json.id", document=document).out, "7\n")
    content = key(cli, "content", "--exclude", "Message|json.sent_at", document=document).out
    expect(content, sha256('{"Message":{"id":7}}') + "\n")
    event = json.dumps({"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": json.loads(document)})
    expect(key(cli, "field:data.Message|json.id", "--input", "cloudevents", document=event.encode()).out, "7\n")
    key(cli, "field:id|json.x", document=b'{"id":{"x":1}}', code=65).says("'id' is not a string")
    key(cli, "field:id|json.x", document=b'{"id":"{"}', code=65).says("'id' is not JSON: line 1, column 2")


def test_strategies(cli):
    cases = {
        "event-id": "https%3A//shop/orders:17",
        "aggregate-version": "Order:o%3A1:3",
        "field:id": "17",
        "field:data.lines.1.sku": "L",
        "field:/data/lines/0/sku": "K",
        "composite:aggregateId,data.total": "o%3A1:12.5",
        "template:{type}/{date:%Y-%m-%d}": "order.placed/2026-11-15",
        "content": sha256(json.dumps(json.loads(DOCUMENT), sort_keys=True, separators=(",", ":"))),
    }
    for strategy, expected in cases.items():
        expect(key(cli, strategy).out, expected + "\n", strategy)
    key(cli, "aggregate-version:type,id,data.total", code=65).says("cannot use 'data.total' as a version")


def test_content_ignores_what_does_not_matter(cli):
    texts = [b'{"b":[1,2],"a":1}', b' {\n"a" : 1.0 ,"b":[ 1 , 2e0 ]}', b'{"\\u0062":[1,20e-1],"a":10e-1}']
    found = {key(cli, "content", document=text).out for text in texts}
    expect(found, {sha256('{"a":1,"b":[1,2]}') + "\n"})


def test_content_keeps_every_digit(cli):
    first = key(cli, "content", document=b'{"id":9007199254740993}').out
    second = key(cli, "content", document=b'{"id":9007199254740992}').out
    assert first != second


def test_python_makes_the_keys_of_document_c(cli):
    payload = {"b": 2.0, "a": "é", "ts": 1, "n": 10**30, "x": [1e16, -0.0]}
    filtered = {name: value for name, value in payload.items() if name != "ts"}
    expected = hashlib.sha256(json.dumps(filtered, sort_keys=True, default=str).encode()).hexdigest()
    result = key(cli, "content", "--canonical", "python", "--exclude", "ts", document=json.dumps(payload).encode())
    expect(result.out, expected + "\n")


def test_include_and_exclude_at_any_depth(cli):
    cases = [
        (["--include", "id"], {"id": "17"}),
        (["--include", "data.lines[*].sku"], {"data": {"lines": [{"sku": "K"}, {"sku": "L"}]}}),
        (["--include", "data", "--exclude", "**.at", "--exclude", "/data/tenant"],
         {"data": {"total": 12.5, "lines": [{"sku": "K"}, {"sku": "L"}]}}),
    ]  # fmt: skip
    for options, expected in cases:
        text = json.dumps(expected, sort_keys=True, separators=(",", ":"))
        expect(key(cli, "content", *options, "--text").out, text + "\n")
        expect(key(cli, "content", *options).out, sha256(text) + "\n")
    key(cli, "content", "--include", "data.lines.*.price", code=65).says("'data.lines.*.price' is missing")


def test_a_missing_part_is_named(cli):
    key(cli, "field:order.id", code=65).says("hapax: key: 'order.id' is missing")
    key(cli, "composite:id,data", code=65).says("cannot use 'data' in a key: it is an object")
    key(cli, "header:X-Id", code=65).says("'header.X-Id' is missing")
    expect(key(cli, "field:nothing", code=65).out, "")


def test_policies_for_a_missing_part(cli):
    passed = key(cli, "field:nothing", "--on-missing", "pass")
    expect(passed.out, "\n")
    expect_in("note: 'nothing' is missing; the event would run without protection", passed.err)
    content = key(cli, "field:nothing", "--on-missing", "content")
    expect(content.out, "content:" + key(cli, "content").out)
    answer = key(cli, "field:nothing", "--on-missing", "content", "-o", "json").json
    expect((answer["kind"], answer["missing"]), ("content", "'nothing' is missing"))
    answer = key(cli, "field:nothing", "--on-missing", "pass", "-o", "json").json
    expect((answer["kind"], answer["key"]), ("none", None))


def test_policy_content_when_what_is_included_is_missing(cli):
    options = ["--include", "id", "--exclude", "ts", "--on-missing", "content"]
    documents = [b'{"a":1,"b":2,"ts":1}', b'{"b":2.0,"a":1,"ts":1}', b'{"a":1,"b":2,"ts":9}']
    found = {key(cli, "content", *options, document=document).out for document in documents}
    expect(found, {"content:" + sha256('{"a":1,"b":2}') + "\n"})


def test_nothing_left_is_no_key(cli):
    key(cli, "content", "--exclude", "a", document=b'{"a":1}', code=65).says("leave no value")
    key(cli, "content", "--include", "i.*.sku", document=b'{"id":1,"i":[]}', code=65).says("leave no value")
    for path in ("*", "**", "/*"):
        key(cli, "content", "--exclude", path, code=64).says("exclude everything")
    key(cli, "content", "--exclude", "user*", code=64).says("* must be a whole step")


def test_text_that_is_not_utf8(cli):
    """Refused where it is a setting; where it is data, output is still JSON."""
    for strategy in (b"header:\xff", b"template:\xff{a}", b"field:a\xc3"):
        key(cli, strategy, code=64).says("the key strategy is not UTF-8")
        cli.run("backtest", "-s", strategy, code=64).says("the key strategy is not UTF-8")
    # A path as long as it may be: the message about it ends within a character, and is cut before that.
    for name in ("xxx" + "\U0001f600" * 63, "x" + "é" * 127, "€" * 85):
        expect(len(name.encode()), 255)
        answer = key(cli, "field:" + name, "--on-missing", "pass", "-o", "json").json
        expect(answer["missing"], "'" + name[:-1])


def test_json_output(cli):
    answer = key(cli, "hybrid", "-o", "json", document=b'{"b":1.0,"a":2}').json
    expect(sorted(answer), ["fingerprint", "key", "kind", "run_id", "scope", "strategy"])
    expect(answer["key"], sha256('{"a":2,"b":1}'))
    expect(answer["fingerprint"], answer["key"])
    expect_match(r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", answer["run_id"])
    expect((answer["kind"], answer["scope"], answer["strategy"]), ("made", "default/default", "hybrid"))


def test_tenant_and_group(cli):
    answer = key(cli, "field:id", "--tenant-from", "data.tenant", "--group", "billing", "-o", "json").json
    expect(answer["scope"], "acme/billing")
    key(cli, "field:id", "--tenant-from", "data.nothing", code=65).says("cannot find the tenant", "'data.nothing'")
    answer = key(cli, "field:id", "--tenant-from", "data.nothing", "--tenant", "other", "-o", "json").json
    expect(answer["scope"], "other/default")


def test_headers(cli):
    expect(key(cli, "header:x-id", "--header", "X-Id: 42").out, "42\n")
    expect(key(cli, "header:X-Id", "-H", "X-Id:a:b").out, "a:b\n")
    key(cli, "header:X-Id", "-H", "X-Id: 1", "-H", "x-id: 2", code=65).says("occurs twice")
    key(cli, "header:X-Id", "-H", "nonsense", code=64).says("is not NAME:VALUE")


def test_dates_need_no_document(cli):
    daily = "template:report-{date:%Y-%m-%d}"
    expect_match(r"^report-20\d\d-\d\d-\d\d$", cli.run("key", "-s", daily, stdin=subprocess.DEVNULL).out)
    master, slave = pty.openpty()
    expect_match(r"^report-20\d\d-\d\d-\d\d$", cli.run("key", "-s", daily, stdin=slave).out)
    os.close(slave)
    os.close(master)
    # But one that is there counts: its day, and not today.
    expect(key(cli, daily).out, "report-2026-11-15\n")
    key(cli, daily, document=b'{"a":1}', code=65).says("'time' is missing")
    key(cli, daily, "/dev/null", code=65).says("cannot find 'time'")
    answer = key(cli, "header:X", "-H", "X: 1", "-o", "json", document=b'{"b":1.0,"a":2}').json
    expect((answer["key"], answer["fingerprint"]), ("1", sha256('{"a":2,"b":1}')))
    result = cli.run("key", "-s", "template:w-{date:%G-W%V}", "--time", "2021-01-01T00:00:00Z")
    expect(result.out, "w-2020-W53\n")
    cli.run("key", "-s", "template:w-{date:%F}", "--time", "soon", code=64).says("'soon' is not an RFC 3339 time")
    key(cli, "template:w-{date:%F}", "-", document=b'{"a":1}', code=65).says("'time' is missing")


def test_cloudevents(cli):
    event = b"""{"specversion":"1.0","source":"/s","id":"1","type":"t","time":"2026-11-15T00:00:00Z","nothing":null,
                "datacontenttype":"application/json","data":{"order":{"id":7},"b":1.0}}"""
    cloud = ["--input", "cloudevents"]
    expect(key(cli, "event-id", *cloud, document=event).out, "/s:1\n")
    expect(key(cli, "composite:attr.type,data.order.id", *cloud, document=event).out, "t:7\n")
    expect(key(cli, "content", *cloud, document=event).out, sha256('{"b":1,"order":{"id":7}}') + "\n")
    expect(key(cli, "template:{date:%F}", *cloud, document=event).out, "2026-11-15\n")
    key(cli, "field:attr.nothing", *cloud, document=event, code=65).says("'attr.nothing' is missing")
    key(cli, "field:order.id", *cloud, document=event, code=64).says("must begin with data.")
    binary = b'{"source":"/s","id":"1","data_base64":"aGVsbG8="}'
    expect(key(cli, "content", *cloud, document=binary).out, sha256("hello") + "\n")
    text = b'{"source":"/s","id":"1","datacontenttype":"text/plain","data":"he\\u006clo"}'
    expect(key(cli, "content", *cloud, document=text).out, sha256("hello") + "\n")
    # null is unset, as for every attribute.
    unset = b'{"source":"/s","id":"1","data_base64":null,"data":{"order":{"id":7},"b":1}}'
    expect(key(cli, "content", *cloud, document=unset).out, sha256('{"b":1,"order":{"id":7}}') + "\n")
    expect(key(cli, "content", *cloud, document=binary[:-1] + b',"data":null}').out, sha256("hello") + "\n")
    key(cli, "content", *cloud, document=b'{"source":"/s","id":"1","data":null}', code=65).says("the event has no data")
    key(cli, "content", "--input", "envelope", document=b'{"data":null}', code=65).says("the event has no data")
    for bad in (b'{"data_base64":"!"}', b'{"data":1,"data_base64":"aGk="}', b"[1]", b'{"id":{}}'):
        key(cli, "event-id", *cloud, document=bad, code=65)


def test_envelopes(cli):
    event = b"""{"data":{"a":1},"header":{"eventId":"e1"},"attr":{"id":"i"},
                "meta":{"topic":"orders","partition":3,"offset":42},"time":"2026-11-15T00:00:00Z"}"""
    envelope = ["--input", "envelope"]
    expect(key(cli, "composite:meta.topic,meta.partition,meta.offset", *envelope, document=event).out, "orders:3:42\n")
    expect(key(cli, "header:EVENTID", *envelope, document=event).out, "e1\n")
    expect(key(cli, "template:{attr.id}-{date:%d}", *envelope, document=event).out, "i-15\n")
    key(cli, "field:data.id", *envelope, document=event, code=65).says("'data.id' is missing")
    key(cli, "field:data.id", *envelope, document=b'{"dta":1}', code=65).says("unknown member in the envelope")


def test_lines_stay_in_step(cli):
    lines = b'{"id":1}\n{"id":2}\nbroken\n{"x":3}\n\r\n{"id":"\\u00e9"}'
    result = cli.run("key", "-s", "field:id", "--lines", input=lines, code=65)
    expect(result.out, "1\n2\n\n\n\né\n")
    for part in ("standard input:3: ", "line 1, column 1", "standard input:4: 'id' is missing", "standard input:5: "):
        expect_in(part, result.err)


def test_files(cli):
    path = cli.folder / "order.json"
    path.write_bytes(DOCUMENT)
    expect(cli.run("key", "-s", "field:id", str(path)).out, "17\n")
    expect(cli.run("key", "-s", "field:id", "-", input=DOCUMENT).out, "17\n")
    cli.run("key", "-s", "field:id", str(cli.folder / "absent.json"), code=66).says("could not read", "No such file")
    cli.run("key", "-s", "field:id", str(cli.folder), code=66).says("could not read")


def test_what_is_not_json_is_refused_with_its_place(cli):
    cases = [
        (b"", "the event has no data"),
        (b" ", "line 1, column 2: the text ended"),
        (b'{"a":1,\n "a":2}', 'line 2, column 2: member "a" occurs twice'),
        (b'["\\ud800"]', "line 1, column 3: an unpaired surrogate"),
        (b'["\xff"]', "line 1, column 3: not UTF-8"),
        (b"[NaN]", "line 1, column 2: NaN is not JSON"),
        (b"[" * 129, "nested deeper than 128 levels"),
    ]
    for document, place in cases:
        expect(key(cli, "content", document=document, code=65).says(place).out, "")


def test_usage(cli):
    cli.run("key", code=64).says("missing option --strategy", "'hapax help key' lists the strategies")
    key(cli, "nonsense", code=64).says("unknown key strategy 'nonsense'", "event-id")
    key(cli, "field", code=64).says("needs a path: field:PATH")
    key(cli, "field:id", "--include", "a", code=64).says("include has no effect on strategy 'field'; use content or hybrid")
    key(cli, "content", "--canonical", "jcs", code=64).says("lossless|python")
    key(cli, "field:id", "--text", code=65).says("does not use canonical text")
    key(cli, "content", "a.json", "b.json", code=64).says("unexpected argument 'b.json'")


def test_help_and_manual_name_every_strategy(cli):
    """Help is made from the table of strategies; the manual is written by hand."""
    listed = cli.run("help", "key").out.split("Strategies:\n")[1].split("\n\n")[0]
    names = re.findall(r"^  (\S+)", listed, re.MULTILINE)
    manual = (ROOT / "man/hapax.1").read_text(encoding="utf-8").replace("\\-", "-")
    for name in ("event-id", "field:PATH", "composite:PATH,PATH...", "template:TEXT", "content", "uuid7"):
        expect_in(name, names)
    for name in names:
        expect_match(rf"^\.B[IR]? {re.escape(re.split('[:[]', name)[0])}", manual)


def test_large_documents(cli):
    items = [{"id": number, "text": "x" * 40} for number in range(100_000)]
    document = json.dumps(items).encode()
    expected = sha256(json.dumps(items, separators=(",", ":")))
    expect(key(cli, "content", document=document).out, expected + "\n")
    numbers = b"[" + b"1," * 2_000_000 + b"1]"
    expect(key(cli, "content", document=numbers).out, sha256(numbers.decode()) + "\n")
