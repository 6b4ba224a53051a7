"""`hapax consume` from RabbitMQ where something ends: size, memory, returns that the broker counts, a broker without room."""

import os
import re
import struct
import subprocess
import time

import harness
from amqp import frame, short
from harness import Skip, expect, expect_in, until
from rabbit import Consume, Proxy, Queue, Service, event, numbers

# Such a queue drops what came back more often.
STRICT = {"x-queue-type": "quorum", "x-delivery-limit": 1}
HELD = {"x-queue-type": "quorum", "x-delivery-limit": 0}

BLOCKED, UNBLOCKED = 60, 61


def large(count):
    return [("x" * (3000 + n), {"message_id": f"large-{n}", "headers": {"n": n}}) for n in range(count)]


def test_what_is_too_large_is_a_dead_letter(cli):
    # More of them than there are slots.
    with Queue() as queue, Service() as service:
        queue.fill(large(6) + numbers(5))
        consume = Consume(cli, "--from", queue.url(size_max=1000, prefetch=2), "--to", service.url)
        consume.until_acknowledged(11)
        figures = consume.stop()
        expect((figures["ok"], figures["dead_letters"], len(service.requests)), (5, 6, 5))
        letters = queue.get_all(f"{queue.name}.dead", 6)
        expect(sorted(len(body) for body, _ in letters), [3000 + n for n in range(6)])
        expect({properties["headers"]["hapax-dead-reason"] for _, properties in letters}, {"too-large"})
        expect(sorted(properties["headers"]["n"] for _, properties in letters), list(range(6)))
        expect_in("size_max", letters[0][1]["headers"]["hapax-dead-error"])
        expect(queue.ready(queue.name), 0)


def test_what_is_too_large_is_refused_where_there_are_no_dead_letters(cli):
    with Queue() as queue, Service() as service:
        queue.fill(large(5) + numbers(5))
        url = queue.url(size_max=1000, prefetch=2)
        consume = Consume(cli, "--from", url, "--to", service.url, "--dead-letter", "off")
        consume.until_acknowledged(5)
        consume.until(lambda _: len(consume.all("undelivered")) == 5, "each is told")
        figures = consume.stop()
        expect((figures["ok"], figures["dead_letters"], figures["given_back"]), (5, 0, 5))
        assert all("size_max" in said["why"] and "delay_ms" not in said for said in consume.all("undelivered"))
        until(lambda: queue.ready(queue.name) == 5, "the broker has them back")


def resident_kb(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"RssAnon:\s+(\d+)", file.read()).group(1))


def test_what_was_read_is_not_kept(cli):
    # librabbitmq keeps it until it is told otherwise. One at a time: a few frames at every wake.
    size, count = 500_000, 100
    with Queue() as queue, Service() as service:
        consume = Consume(cli, "--from", queue.url(prefetch=1), "--to", service.url)
        queue.fill([("x" * size, {"message_id": f"early-{n}"}) for n in range(10)])
        consume.until_acknowledged(10)
        before = resident_kb(consume.process)
        queue.fill([("x" * size, {"message_id": f"late-{n}"}) for n in range(count)])
        consume.until_acknowledged(10 + count)
        grown = resident_kb(consume.process) - before
        consume.stop()
        # A sanitizer keeps what was freed.
        assert harness.is_sanitized() or grown * 1024 < count * size / 4, f"{grown} kB more than before"


def more_than_announced():
    """A delivery of three bytes, and ten of them."""
    deliver = struct.pack(">HH", 60, 60) + short("hapax-0") + struct.pack(">QB", 99, 0) + short("") + short("q")
    header = struct.pack(">HHQH", 60, 0, 3, 0)
    return frame(1, 1, deliver) + frame(2, 1, header) + frame(3, 1, b"x" * 10)


def larger_than_agreed():
    """The beginning of a frame of a gigabyte: the reader neither waits nor makes room for the rest."""
    return struct.pack(">BHI", 3, 1, 1 << 30) + b"x" * 100


def not_a_frame():
    return b"HTTP/1.1 400 Bad Request\r\n\r\n"


def test_a_broker_that_says_what_it_may_not(cli):
    with Queue() as queue, Service() as service, Proxy() as proxy:
        consume = Consume(cli, "--from", queue.url(proxy.address), "--to", service.url)
        for done, frames in enumerate((more_than_announced(), larger_than_agreed(), not_a_frame())):
            queue.fill([(f'{{"n":{done}}}', event(done))])
            consume.until_acknowledged(done + 1)
            said = len(consume.all("source_failed"))
            proxy.say(frames)
            consume.until(lambda _, said=said: len(consume.all("source_failed")) > said, "it reports, and reconnects")
        queue.fill([('{"n":3}', event(3))])
        consume.until_acknowledged(4)
        figures = consume.stop()
        expect((figures["ok"], len(service.effects)), (4, 4))
        expect_in("more data for a message than announced", consume.all("source_failed")[0]["why"])


def test_what_does_not_fit_comes_again_when_there_is_room(cli):
    # Each of them waits for the first, for which there is room alone; and none may come back twice.
    with Queue(STRICT) as queue, Service(lambda headers, body: time.sleep(0.005) or 200) as service:
        queue.fill([("x" * 3000, {"message_id": f"m-{n}"}) for n in range(40)])
        consume = Consume(cli, "--from", queue.url(held_max=10000, prefetch=20), "--to", service.url)
        consume.until_acknowledged(40)
        figures = consume.stop()
        expect((figures["ok"], figures["received"], figures["duplicates"]), (40, 40, 0))
        expect(queue.ready(queue.name), 0)
        # One that is larger than all there may be is taken alone.
        queue.fill([("x" * 9000, {"message_id": "n-1"}), ("x", {"message_id": "n-2"})])
        consume = Consume(cli, "--from", queue.url(held_max=7000), "--to", service.url)
        consume.until_acknowledged(2)
        expect(consume.stop()["ok"], 2)


def test_what_waits_is_held_and_does_not_come_back(cli):
    with Queue(HELD) as queue, Service() as service, Proxy() as proxy:
        token = cli.run("claim", "/shop:A-0", "-o", "json").json["token"]
        queue.fill(numbers(2))
        arguments = ["--to", service.url, "--backoff", "5ms", "--backoff-max", "5ms"]
        consume = Consume(cli, "--from", queue.url(proxy.address), *arguments)
        consume.until(lambda f: f.get("in_progress", 0) >= 5 and f.get("ok") == 1, "another consumer runs it")
        cli.run("release", "/shop:A-0", "--token", str(token))
        consume.until_acknowledged(2)
        expect(consume.stop()["ok"], 2)
        # Nor does it come back because it took long.
        expect_in(short("x-consumer-timeout"), proxy.said)


def test_what_came_back_often_is_told(cli):
    with Queue() as queue, Service() as service:
        queue.fill(numbers(1))
        queue.bounce(queue.name, 10)
        consume = Consume(cli, "--from", queue.url(), "--to", service.url)
        consume.until_acknowledged(1)
        consume.until(lambda _: consume.all("source_failed"), "it is told")
        expect_in("was delivered and returned 10 times", consume.all("source_failed")[0]["why"])
        expect(consume.stop()["ok"], 1)


def test_a_broker_that_takes_nothing_is_waited_for(cli):
    with Queue() as queue, Service(lambda headers, body: 422) as service, Proxy() as proxy:
        consume = Consume(cli, "--from", queue.url(proxy.address), "--to", service.url, "--drain", "100ms")

        def fill(number):
            queue.fill(numbers(number + 1)[number:])

        def is_asked(count):
            consume.until(lambda f: f.get("definitive") == count and f.get("running") == 0, "a letter is to be sent")

        fill(0)
        consume.until_acknowledged(1)
        expect_in(short("connection.blocked") + b"t\1", proxy.said)

        # Short of memory: letters wait, and go when there is some.
        proxy.tell(BLOCKED, short("low on memory"))
        consume.until(lambda _: consume.all("source_failed"), "it is told")
        expect_in("low on memory", consume.all("source_failed")[0]["why"])
        fill(1)
        is_asked(2)
        expect(consume.figures()["acknowledged"], 1)
        proxy.tell(UNBLOCKED)
        consume.until_acknowledged(2)
        expect(consume.all("undelivered"), [], "waiting is not a failure")

        # What was said of one connection does not hold for the next.
        proxy.tell(BLOCKED, short("low on disk"))
        consume.until(lambda _: len(consume.all("source_failed")) == 2, "it is told again")
        fill(2)
        is_asked(3)
        proxy.cut()
        consume.until(lambda f: queue.ready(f"{queue.name}.dead") == 3, "the letter is there")

        # A stop waits no longer than it may.
        consume.until(lambda f: f.get("in_hand") == 0 and f.get("lag") == 0, "all is done")
        said = len(consume.all("source_failed"))
        proxy.tell(BLOCKED, short("low on memory"))
        consume.until(lambda _: len(consume.all("source_failed")) > said, "it is told a third time")
        fill(3)
        is_asked(consume.figures()["definitive"] + 1)
        consume.stop()
        expect_in("drain_ms", "".join(consume.errors))
        until(lambda: queue.ready(queue.name) == 1, "the broker has it back")


def test_an_alarm_of_the_broker_is_noticed(cli):
    """As the test before, with a broker that has no memory. Each word to it costs a second of CPU time."""
    if not harness.is_proof():
        raise Skip("for proofs (HAPAX_PROOF=1)")
    control = os.environ["HAPAX_TEST_RABBITMQ_CONTROL"]

    def set_watermark(text):
        subprocess.run([control, "set_vm_memory_high_watermark", *text.split()], check=True, stdout=subprocess.DEVNULL, timeout=60)

    with Queue() as queue, Service(lambda headers, body: 422) as service:
        queue.fill(numbers(4))
        set_watermark("0.0000001")
        try:
            consume = Consume(cli, "--from", queue.url(), "--to", service.url)
            consume.until(lambda _: consume.all("source_failed"), "it is told")
            expect_in("low on memory", consume.all("source_failed")[0]["why"])
        finally:
            set_watermark("absolute 1GB")
        consume.until(lambda f: f.get("lag") == 0 and f.get("in_hand") == 0, "all is done")
        expect(consume.all("undelivered"), [])
        expect(consume.stop()["dead_letters"], 4)
