"""`hapax consume` from Redis Streams where something ends: entries that are too large, a place for dead letters that is none."""

from harness import expect, expect_in
from streams import Consume, Service, Stream, event, numbers

# A line takes 1 MiB and 16 entries as a reply.
SIZE_MAX = 1000


def large(number, size):
    return event(number, data=f'"{"x" * (size - 2)}"')


def letters(stream):
    return {entry["id"].decode(): entry for entry in stream.entries(f"{stream.name}.dead")}


def test_what_is_too_large_is_a_dead_letter(cli):
    # Two that a reply has room for, two that it has not, among others; more than there are slots.
    sizes = {1: 3000, 3: 2 << 20, 4: 3000, 6: 2 << 20}
    with Stream() as stream, Service() as service:
        ids = stream.fill([large(n, sizes[n]) if n in sizes else event(n) for n in range(8)])
        url = stream.url(size_max=SIZE_MAX, prefetch=2, min_idle="200ms")
        consume = Consume(cli, "--from", url, "--to", service.url)
        consume.until_acknowledged(8)
        figures = consume.stop()
        expect((figures["ok"], figures["dead_letters"], figures["duplicates"]), (4, 4, 0))
        expect(sorted(service.effects), [("/shop", f"A-{n}") for n in (0, 2, 5, 7)])
        found = letters(stream)
        expect({name: len(entry["data"]) for name, entry in found.items()}, {f"A-{n}": size for n, size in sizes.items()})
        letter = found["A-3"]
        expect((letter["type"], letter["source"], letter["hapax-dead-reason"]), (b"order.paid", b"/shop", b"too-large"))
        expect(letter["hapax-dead-place"].decode(), f"{stream.name}/{ids[3]}")
        expect_in(b"size_max", letter["hapax-dead-error"])
        expect((stream.pending(), stream.members()), (0, []))

        # With room for it, it runs; one that is too large again has one reason.
        stream.fill([found["A-1"], {**found["A-3"], "data": b"1"}, found["A-4"]])
        consume = Consume(cli, "--from", stream.url(size_max=3500), "--to", service.url)
        consume.until_acknowledged(3)
        expect(consume.stop()["dead_letters"], 0)
        stream.fill([found["A-6"]])
        consume = Consume(cli, "--from", stream.url(size_max=SIZE_MAX, min_idle="200ms"), "--to", service.url)
        consume.until_acknowledged(1)
        consume.stop()
        last = stream.do("XREVRANGE", f"{stream.name}.dead", "+", "-", "COUNT", "1")[0][1]
        expect(last.count(b"hapax-dead-reason"), 1)


def test_one_that_comes_back_meets_what_is_too_large(cli):
    with Stream() as stream, Service() as service:
        stream.fill([event(0), large(1, 2 << 20), event(2), large(3, 2 << 20), event(4)])
        stream.do("XGROUP", "CREATE", stream.name, "g", "0")
        stream.do("XREADGROUP", "GROUP", "g", "one", "STREAMS", stream.name, ">")
        url = stream.url(size_max=SIZE_MAX, instance="one", min_idle="10m")
        consume = Consume(cli, "--from", url, "--to", service.url)
        consume.until_acknowledged(5)
        figures = consume.stop()
        expect((figures["ok"], figures["dead_letters"], stream.pending()), (3, 2, 0))
        expect(sorted(letters(stream)), ["A-1", "A-3"])


def test_what_is_too_large_is_refused_where_there_are_no_dead_letters(cli):
    with Stream() as stream, Service() as service:
        stream.fill([large(n, 2 << 20 if n % 2 else 3000) for n in range(4)] + [event(n) for n in range(4, 8)])
        url = stream.url(size_max=SIZE_MAX, prefetch=2, min_idle="200ms")
        consume = Consume(cli, "--from", url, "--to", service.url, "--dead-letter", "off")
        consume.until_acknowledged(4)
        consume.until(lambda _: len(consume.all("undelivered")) >= 4, "each is told")
        figures = consume.stop()
        expect((figures["ok"], figures["dead_letters"], stream.pending()), (4, 0, 4))
        said = consume.all("undelivered")
        expect((len(said), len({one["place"] for one in said})), (4, 4), "each once")
        assert all("size_max" in one["why"] and "delay_ms" not in one for one in said), said
        # The next consumer need not wait for min_idle.
        consume = Consume(cli, "--from", stream.url(min_idle="10s"), "--to", service.url)
        consume.until_acknowledged(4)
        expect((consume.stop()["ok"], stream.pending()), (4, 0))


def test_letters_wait_for_a_stream_that_takes_them(cli):
    with Stream() as stream, Service(lambda headers, body: 422) as service:
        stream.do("SET", f"{stream.name}.dead", "x")
        stream.fill(numbers(2) + [large(2, 3000)])
        arguments = ["--to", service.url, "--backoff", "5ms", "--backoff-max", "50ms"]
        consume = Consume(cli, "--from", stream.url(size_max=SIZE_MAX), *arguments)
        consume.until(lambda _: len({said["place"] for said in consume.all("undelivered")}) == 3, "no letter is taken")
        expect_in("WRONGTYPE", consume.all("undelivered")[0]["why"])
        consume.until(lambda f: f.get("received") == 3, "all are in hand")
        expect((consume.figures()["acknowledged"], stream.pending()), (0, 3), "nothing is dropped meanwhile")
        stream.do("DEL", f"{stream.name}.dead")
        consume.until_acknowledged(3)
        expect((consume.stop()["dead_letters"], stream.pending()), (3, 0))
