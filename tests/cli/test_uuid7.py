"""hapax uuid7: ids that sort by time, and the time of one. D1."""

import datetime
import uuid

from harness import expect, expect_match


def test_one(cli):
    before = datetime.datetime.now(datetime.timezone.utc)
    text = cli.run("uuid7").out
    expect_match(r"\A[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n\Z", text)
    made = datetime.datetime.fromtimestamp((uuid.UUID(text.strip()).int >> 80) / 1000, datetime.timezone.utc)
    assert abs((made - before).total_seconds()) < 60, made


def test_many_are_rising(cli):
    made = cli.run("uuid7", "--count", "20000").out.split()
    expect(len(set(made)), 20000)
    expect(made, sorted(made))


def test_time_is_read_back(cli):
    expect(cli.run("uuid7", "0190163d-8694-739b-aea5-966c26f8ad91").out, "2024-06-14T10:14:09.300Z\n")
    expect(cli.run("uuid7", "0190163D-8694-739B-AEA5-966C26F8AD91").out, "2024-06-14T10:14:09.300Z\n")
    answer = cli.run("uuid7", "-o", "json").json
    expect(cli.run("uuid7", answer["uuid"]).out, answer["time"] + "\n")


def test_what_holds_no_time_is_refused(cli):
    cli.run("uuid7", "9b2c4a1e-5b0a-4f0e-8a9d-3f1c2b4d5e6f", code=65).says("not a version 7 UUID")
    cli.run("uuid7", "ffffffff-ffff-7fff-bfff-ffffffffffff", code=65).says("after the year 9999")
    expect(cli.run("uuid7", "e677d21f-dbff-7000-8000-000000000000").out, "9999-12-31T23:59:59.999Z\n")
    cli.run("uuid7", "e677d21f-dc00-7000-8000-000000000000", code=65).says("after the year 9999")
    for text in ("", "nonsense", "0190163d8694739baea5966c26f8ad91", "0190163d-8694-739b-aea5-966c26f8ad9"):
        cli.run("uuid7", text, code=64).says("is not a UUID")
    cli.run("uuid7", "0190163d-8694-739b-aea5-966c26f8ad91", "-n", "2", code=64).says("cannot be used with a UUID")
    cli.run("uuid7", "--count", "0", code=64)


def test_no_store_is_made(cli):
    cli.run("uuid7")
    assert not cli.path.exists()
