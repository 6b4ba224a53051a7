"""hapax backtest: what a strategy would have done to events that have been."""

import json
import os
import pty
import subprocess

from harness import PROGRAM, expect, expect_in, expect_match


def lines(*documents):
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


def backtest(cli, events, *options, **more):
    return cli.run("backtest", *options, "-o", "json", input=events, **more).json


FIT = lines({"id": 1, "n": 5}, {"id": 2, "n": 5}, {"n": 5.0, "id": 1}, {"id": 3, "n": 7})


def test_a_fit_strategy(cli):
    answer = backtest(cli, FIT, "-s", "field:id")
    result = answer["result"]
    expect((answer["lines"], answer["bad_lines"]), (4, 0))
    expect((result["events"], result["keys"], result["would_drop"]), (4, 3, 1))
    expect((result["would_drop_other_payload"], result["missing"], result["verdict"]), (0, 0, "fit"))
    expect_in("1 of 4 events (25.00 %) would be dropped", result["explanation"])
    expect_in("more than 5 %", result["explanation"])


def test_a_strategy_that_would_lose_events(cli):
    answer = backtest(cli, FIT, "-s", "field:n", code=1)
    result = answer["result"]
    expect((result["keys"], result["would_drop"], result["would_drop_other_payload"]), (2, 2, 1))
    expect(result["examples"], [{"line": 2, "first_line": 1, "key": "5"}])
    expect(result["verdict"], "unsafe")
    expect_in("they would be lost. Do not use this strategy", result["explanation"])


def test_a_constant_key(cli):
    result = backtest(cli, lines({"t": "x", "n": 1}, {"t": "x", "n": 2}), "-s", "field:t", code=1)["result"]
    expect(result["verdict"], "unsafe")
    expect_in("The 2 events that have a key have the same key", result["explanation"])


def test_a_constant_key_that_few_events_have(cli):
    events = lines(*({"n": n} for n in range(98)), {"t": "x", "n": 1}, {"t": "x", "n": 2})
    result = backtest(cli, events, "-s", "field:t", code=1)["result"]
    expect((result["verdict"], result["missing"]), ("unsafe", 98))
    expect_in("The 2 events that have a key have the same key", result["explanation"])
    expect_in("98 of 100 events (98.00 %) have no key and would be rejected", result["explanation"])


def test_missing_parts(cli):
    events = lines({"id": 1}, {"ID": 2}, {"id": None}, {"ID": 3}, {"id": 4})
    result = backtest(cli, events, "-s", "field:id", code=1)["result"]
    expect((result["missing"], result["verdict"]), (3, "incomplete"))
    expect(
        result["missing_parts"],
        [{"reason": "'id' is missing", "count": 2}, {"reason": "'id' is null", "count": 1}],
    )
    expect_in("3 of 5 events (60.00 %) have no key", result["explanation"])
    result = backtest(cli, events, "-s", "field:id", "--on-missing", "pass", code=1)["result"]
    expect((result["missing"], result["unprotected"], result["verdict"]), (0, 3, "incomplete"))
    expect_in("3 of 5 events (60.00 %) have no key and would pass without protection", result["explanation"])
    result = backtest(cli, events, "-s", "field:id", "--on-missing", "content")["result"]
    expect((result["missing"], result["content_keys"], result["keys"]), (0, 3, 5))


def test_reasons_that_are_not_listed_are_counted(cli):
    events = lines(*({"id": 1, "t": "x" * (n + 129)} for n in range(20)), {"id": 1, "t": "a"})
    answer = cli.run("backtest", "-s", "field:id", "--tenant-from", "t", "-o", "json", input=events, code=1).json["result"]
    expect((len(answer["missing_parts"]), answer["missing_parts_other"], answer["missing"]), (16, 4, 20))
    text = cli.run("backtest", "-s", "field:id", "--tenant-from", "t", input=events, code=1).out
    expect_match(r"^ +4: for other reasons$", text)


def test_an_event_too_large_for_its_key_is_counted(cli):
    """64 parts of 8 MiB take more scratch than there is; the other events are judged."""
    events = lines({"a": 1}, {"a": "x" * (8 << 20)}, {"a": 1})
    result = cli.run("backtest", "-s", "composite:" + ",".join(["a"] * 64), "-o", "json", input=events, code=1)
    answer = result.json["result"]
    expect((answer["events"], answer["missing"], answer["would_drop"]), (3, 1, 1))
    expect_in("scratch memory", answer["missing_parts"][0]["reason"])
    expect(result.err, "")


def test_a_key_that_changes_with_each_delivery(cli):
    events = lines({"id": 1, "n": 5, "at": 1}, {"id": 1, "n": 5, "at": 2}, {"id": 1, "n": 5, "at": 2.0})
    result = backtest(cli, events, "-s", "content")["result"]
    expect((result["would_drop"], result["same_payload_other_key"]), (1, 0))
    deliveries = [{"k": n, "p": n % 3} for n in range(9)] + [{"k": 0, "p": 0}]
    result = backtest(cli, lines(*deliveries), "-s", "field:k", "--exclude", "k", code=1)["result"]
    expect((result["same_payload_other_key"], result["would_drop"], result["verdict"]), (6, 1, "leaky"))
    expect_in("6 events have a new key although their payload was there before, and 1 would be", result["explanation"])
    result = backtest(cli, lines({"k": 1, "p": 1}, {"k": 2, "p": 1}), "-s", "field:k", "--exclude", "k", code=1)["result"]
    expect((result["same_payload_other_key"], result["verdict"]), (1, "leaky"))
    # As many found as escaped: it does more good than harm, and says so.
    deliveries = [{"k": 1, "p": 1}, {"k": 1, "p": 1}, {"k": 2, "p": 1}]
    result = backtest(cli, lines(*deliveries), "-s", "field:k", "--exclude", "k")["result"]
    expect((result["same_payload_other_key"], result["verdict"]), (1, "fit"))
    expect_in("1 others have a new key and a payload that was there before", result["explanation"])
    result = backtest(cli, lines({"k": 1}, {"k": 2}), "-s", "field:k")["result"]
    expect(result["verdict"], "unproven")


def test_what_does_not_matter_is_no_difference(cli):
    events = lines({"id": 1, "at": 1}, {"id": 1, "at": 2})
    expect(backtest(cli, events, "-s", "field:id", code=1)["result"]["would_drop_other_payload"], 1)
    expect(backtest(cli, events, "-s", "field:id", "--exclude", "at")["result"]["would_drop_other_payload"], 0)
    expect(backtest(cli, events, "-s", "content", "--exclude", "at")["result"]["would_drop"], 1)


def test_two_strategies_are_compared(cli):
    answer = backtest(cli, FIT, "-s", "field:id", "--against", "field:n")
    expect(answer["against"]["verdict"], "unsafe")
    comparison = answer["comparison"]
    expect(
        [comparison[name] for name in ("both_drop", "only_first_drops", "only_second_drops", "neither_drops")],
        [1, 0, 1, 2],
    )
    expect_in("decide alike on 3 of 4 events", comparison["explanation"])
    answer = backtest(cli, FIT, "-s", "content", "--include", "n", "--against", "field:id", code=1)
    expect((answer["result"]["keys"], answer["against"]["keys"]), (2, 3))


def test_bad_lines_are_reported_and_do_not_stop_it(cli):
    events = b'{"id":1}\n{"id":2\n\n{"id":1}\n{"id":1,"id":2}\n\xff\n   \n{"id":3}\n' + b"[" * 129
    result = cli.run("backtest", "-s", "field:id", "-o", "json", input=events, code=1)
    answer = result.json
    expect((answer["lines"], answer["bad_lines"], answer["result"]["events"]), (7, 4, 3))
    expect((answer["result"]["would_drop"], answer["result"]["verdict"]), (1, "incomplete"))
    expect_in("4 of 7 lines are not events and were skipped", answer["result"]["explanation"])
    errors = "\n".join(json.loads(line)["error"] for line in result.err.splitlines())
    expect_in("standard input:2: line 1, column 8: ", errors)
    expect_in('standard input:5: line 1, column 9: member "id" occurs twice', errors)
    expect_in("standard input:6: line 1, column 1: byte 0xff", errors)
    expect_in("standard input:9: line 1, column 129: nested deeper than 128 levels", errors)


def test_many_bad_lines_are_counted(cli):
    result = cli.run("backtest", "-s", "field:id", input=b"bad\n" * 25 + b'{"id":1}\n', code=1)
    expect(len(result.err.splitlines()), 11)
    expect_in("standard input: 15 more bad lines", result.err)
    expect_match(r"^bad lines +25 ", result.out)


def test_a_line_that_is_too_long_is_a_bad_line(cli):
    long = b'{"id":"' + b"x" * (64 << 20) + b'"}'
    for events, line in ((b'{"id":1}\n' + long + b'\n{"id":1}\n', 2), (b'{"id":1}\n{"id":1}\n' + long, 3)):
        result = cli.run("backtest", "-s", "field:id", "-o", "json", input=events, code=1)
        answer = result.json
        expect((answer["lines"], answer["bad_lines"], answer["result"]["would_drop"]), (3, 1, 1))
        expect_in(f"standard input:{line}: the line was longer than 64 MiB", result.err)
    result = cli.run("key", "-s", "field:id", "--lines", input=b'{"id":1}\n' + long + b'\n{"id":2}\n', code=65)
    expect(result.out, "1\n\n2\n")


def test_memory_is_bounded(cli):
    """What was read before it ran out is judged, and that it is not all is said."""
    events = b"".join(b'{"id":%d}\n' % (n // 2) for n in range(100_000))
    result = cli.run("backtest", "-s", "field:id", "--memory", "1MiB", "-o", "json", input=events, code=1)
    answer = result.json
    expect((answer["complete"], answer["result"]["verdict"]), (False, "incomplete"))
    assert 10_000 < answer["lines"] < 50_000, answer["lines"]
    expect(answer["result"]["would_drop"], (answer["lines"] - 1) // 2)
    expect_in("Not enough memory after", answer["result"]["explanation"])
    expect_in("raise --memory", result.err)
    answer = cli.run("backtest", "-s", "field:id", "--memory", "16MiB", "-o", "json", input=events).json
    expect((answer["complete"], answer["result"]["would_drop"]), (True, 50_000))
    for bad in ("1", "1023KiB", "much", ""):
        cli.run("backtest", "-s", "field:id", "--memory", bad, code=64).says("--memory")


def test_nothing_to_judge_by(cli):
    for events in (b"", b"\n\n", b"bad\n"):
        result = cli.run("backtest", "-s", "field:id", "-o", "json", input=events, code=65).json
        expect(result["result"]["verdict"], "empty")


def test_scopes_are_kept_apart(cli):
    events = lines({"t": "a", "id": 1}, {"t": "b", "id": 1}, {"t": "a", "id": 1})
    expect(backtest(cli, events, "-s", "field:id", "--tenant-from", "t")["result"]["would_drop"], 1)
    expect(backtest(cli, events, "-s", "field:id", code=1)["result"]["would_drop"], 2)
    # Nor does a payload of one tenant count as repeated because another one has it.
    answer = backtest(cli, events, "-s", "field:id", "--tenant-from", "t", "--exclude", "t")["result"]
    expect((answer["same_payload_other_key"], answer["verdict"]), (0, "fit"))


def test_cloudevents(cli):
    events = lines(
        {"source": "/a", "id": "1", "data": {"n": 1}}, {"source": "/b", "id": "1", "data": {"n": 2}},
        {"source": "/a", "id": "1", "data": {"n": 1.0}, "traceparent": "other"},
    )  # fmt: skip
    answer = backtest(cli, events, "-s", "event-id", "--against", "field:attr.id", "--input", "cloudevents")
    expect((answer["result"]["verdict"], answer["against"]["verdict"]), ("fit", "unsafe"))


def test_text_output(cli):
    path = cli.folder / "events.ndjson"
    path.write_bytes(FIT)
    text = cli.run("backtest", "-s", "field:id", "--against", "field:n", str(path)).out
    for pattern in (
        r"^strategy +field:id$", r"^events +4$", r"^keys +3 ", r"^would drop +1$", r"^other data +0 ",
        r"^verdict +fit  1 of 4", r"^strategy +field:n$", r"^ +line 2 like line 1, key 5$", r"^verdict +unsafe",
        r"^comparison +The two decide alike on 3 of 4 events",
    ):  # fmt: skip
        expect_match(pattern, text)


def test_usage(cli):
    cli.run("backtest", code=64).says("missing option --strategy")
    cli.run("backtest", "-s", "uuid7", code=64).says("in producers")
    cli.run("backtest", "-s", "field:id", "--against", "nonsense", code=64).says("unknown key strategy 'nonsense'")
    cli.run("backtest", "-s", "field:id", "absent.ndjson", code=66).says("could not read")


def test_progress_on_a_terminal(cli):
    """Enough lines to take longer than the first report; the line is wiped at the end."""
    path = cli.folder / "events.ndjson"
    with path.open("wb") as file:
        for number in range(300_000):
            file.write(b'{"id":%d,"text":"%s"}\n' % (number, b"x" * 100))
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), "backtest", "-s", "content", str(path)],
        env=cli.env(TERM="xterm"), stdout=subprocess.PIPE, stderr=slave, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    out = process.communicate(timeout=60)[0]
    os.close(master)
    expect(process.returncode, 0)
    expect_match(rb"\d+ events, \d+ %".decode(), seen.decode())
    assert seen.endswith(b"\r\x1b[K"), seen[-40:]
    expect_match(r"^events +300000$", out.decode())
    quiet = cli.run("backtest", "-s", "content", str(path))
    expect(quiet.err, "")
