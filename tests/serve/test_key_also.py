"""The change of a key strategy without a gap: key_also and key_also_until. E20, E22d."""

import contextlib
import datetime
import http.client
import json
import threading
import time

from daemon import Serve, demo, log_line, metrics, post, serve, upstream
from harness import TIMEOUT_SECONDS, expect, expect_in, until
from test_outage import Postgres, redis, running

OLD, NEW = "event-id", "field:data.order"
LATER = "2999-01-31"


def config(key, also=None, ends=LATER, more=""):
    lines = f"gateway:\n  routes:\n    - name: orders\n      key: {key}\n{more}"
    if also is not None:
        lines += f"      key_also: {also}\n      key_also_until: {ends}\n"
    return lines


def send(daemon, event_id, order, path="/"):
    return post(daemon.gateway, event_id, json.dumps({"order": order}).encode(), path).decision


def divergences(daemon):
    found = metrics(daemon)
    name = 'hapax_key_divergence_total{tenant="default",group="default",known="%s"}'
    return [found.get(name % known, 0) for known in ("new", "old", "different")]


def said(daemon, message, reason=""):
    """The first such line, when it comes."""

    def found():
        lines = map(log_line, list(daemon.lines))
        return [line for line in lines if line.get("msg") == message and reason in line.get("reason", "")]

    until(found, message)
    return found()[0]


@contextlib.contextmanager
def stores(cli):
    """Every store that has groups and outlives its daemon."""
    with redis(cli) as cache, running(Postgres, cli) as database:
        yield [f"file:{cli.folder / 'ledger'}", f"sqlite:{cli.folder / 'ledger.db'}", cache.url, database.url]


def test_events_before_and_after_the_change(cli):
    with stores(cli) as urls:
        for url in urls:
            with demo(cli) as service:
                with serve(cli, service.url, store=url, config=config(OLD)) as daemon:
                    expect((send(daemon, "1", "a"), send(daemon, "2", "b")), ("acquired", "acquired"), url)
                with serve(cli, service.url, store=url, config=config(NEW, OLD)) as daemon:
                    expect(said(daemon, "old key strategy is used as well")["until"], LATER, url)
                    # Known by the old key, by both, by the new one.
                    expect((send(daemon, "1", "a"), divergences(daemon)), ("replay", [0, 1, 0]), url)
                    expect((send(daemon, "3", "c"), send(daemon, "3", "c")), ("acquired", "replay"), url)
                    expect(divergences(daemon), [0, 1, 0], url)
                    expect((send(daemon, "4", "c"), divergences(daemon)), ("replay", [1, 1, 0]), url)
                    line = said(daemon, "key strategies disagree", "old key")
                    expect((line["route"], line["reason"]), ("orders", "only the old key is known"))
                    expect((line["idempotency_key"], line["key_also"], line["event_id"]), ("a", "/shop:1", "1"))
                # Each of the two alone knows the event of the time between: forward and back.
                with serve(cli, service.url, store=url, config=config(NEW)) as daemon:
                    expect(send(daemon, "5", "c"), "replay", url)
                with serve(cli, service.url, store=url, config=config(OLD)) as daemon:
                    expect(send(daemon, "3", "c"), "replay", url)
                expect(service.count()["executed"], 3, url)


def test_keys_of_different_runs(cli):
    """Both are known and mean different runs: the new one answers, and nothing runs."""
    loose = "      fingerprint: none\n"
    url = f"file:{cli.folder / 'ledger'}"
    with demo(cli) as service:
        with serve(cli, service.url, store=url, config=config(OLD, more=loose)) as daemon:
            send(daemon, "1", "a")
        with serve(cli, service.url, store=url, config=config(NEW, OLD, more=loose)) as daemon:
            expect(send(daemon, "2", "b"), "acquired")
            reply = post(daemon.gateway, "1", b'{"order":"b"}')
            expect((reply.decision, reply.json), ("replay", {"executed": 2}))
            expect(divergences(daemon), [0, 0, 1])
            said(daemon, "key strategies disagree", "the keys belong to different runs")
            expect(service.count()["executed"], 2)


def test_a_failed_run_frees_both(cli):
    with upstream() as service, serve(cli, service.url, config=config(NEW, OLD)) as daemon:
        expect(post(daemon.gateway, "1", b'{"order":"a"}', "/status/500").status, 500)
        expect((send(daemon, "1", "a"), send(daemon, "1", "a")), ("acquired", "replay"))
        expect(divergences(daemon), [0, 0, 0])


def test_many_at_once(cli):
    """One new key and many old ones: one runs, the others get its answer."""
    with demo(cli, "--delay", "200ms") as service, serve(cli, service.url, config=config(NEW, OLD) + "defaults: {wait: 20s}\n") as daemon:
        decisions = []
        threads = [threading.Thread(target=lambda n=number: decisions.append(send(daemon, str(n), "a"))) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect((decisions.count("acquired"), decisions.count("replay")), (1, 11))
        expect(service.count()["executed"], 1)


def test_a_crash_in_between(cli):
    """Both keys are held when the daemon dies, taken over together, and done together."""
    url = f"file:{cli.folder / 'ledger'}"
    lease = "defaults: {lease: 1s}\n"
    with upstream() as service:
        daemon = Serve(cli, service.url, store=url, config=config(NEW, OLD) + lease)
        sender = threading.Thread(target=try_send, args=(daemon,))
        sender.start()
        expect(service.arrived.acquire(timeout=TIMEOUT_SECONDS), True)
        daemon.kill()
        sender.join()
        with serve(cli, service.url, store=url, config=config(OLD) + lease) as daemon:
            # By the old key alone it is still held; then it runs, and the new key is free.
            until(lambda: send(daemon, "1", "a") == "acquired", "the claim lapses")
        with serve(cli, service.url, store=url, config=config(NEW, OLD) + lease) as daemon:
            expect((send(daemon, "1", "a"), divergences(daemon)[1]), ("replay", 1))
        expect(len(service.requests), 2)


def try_send(daemon):
    with contextlib.suppress(OSError, http.client.HTTPException):
        send(daemon, "1", "a", "/hold")


def test_the_end(cli):
    url = f"file:{cli.folder / 'ledger'}"
    with demo(cli) as service:
        with serve(cli, service.url, store=url, config=config(OLD)) as daemon:
            send(daemon, "1", "a")
        ends = datetime.datetime.fromtimestamp(int(time.time()) + 2, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        with serve(cli, service.url, store=url, config=config(NEW, OLD, ends)) as daemon:
            said(daemon, "old key strategy ends, only the new one is used")
            expect((send(daemon, "1", "a"), send(daemon, "1", "a")), ("acquired", "replay"))
            expect(divergences(daemon), [0, 0, 0])
        text = config(NEW, OLD, "2020-01-31")
        with serve(cli, service.url, store=url, config=text) as daemon:
            expect(said(daemon, "old key strategy has ended, remove key_also")["until"], "2020-01-31")
        path = cli.folder / "hapax.yaml"
        path.write_text(text + f"upstream: {{url: '{service.url}'}}\n", encoding="utf-8")
        result = cli.run("config", "check", path)
        expect_in("warning: old key strategy has ended, remove key_also (route: orders, until: 2020-01-31)", result.err)


def test_an_event_without_the_new_key(cli):
    """What the old strategy accepted is not rejected before it ends."""
    url = f"file:{cli.folder / 'ledger'}"

    def bare(daemon, event_id):
        reply = post(daemon.gateway, event_id, b"{}")
        return reply.decision if reply.status == 200 else reply.status

    with demo(cli) as service:
        with serve(cli, service.url, store=url, config=config(OLD)) as daemon:
            expect(bare(daemon, "1"), "acquired")
        with serve(cli, service.url, store=url, config=config(NEW, OLD)) as daemon:
            expect((bare(daemon, "1"), bare(daemon, "2"), bare(daemon, "2")), ("replay", "acquired", "replay"))
        with serve(cli, service.url, store=url, config=config(NEW)) as daemon:
            expect(bare(daemon, "1"), 400)
        expect(service.count()["executed"], 2)


def test_an_end_within_one_ttl(cli):
    """Records from just before the change would outlive it; the longest ttl counts."""
    path = cli.folder / "hapax.yaml"
    word = "old key strategy ends within one ttl"
    ends = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=5)).strftime("%Y-%m-%d")
    consumer = "consumers: [{name: c, from: 'redis://127.0.0.1:1/s?group=g', exec: 'cat', key: '%s', key_also: '%s', key_also_until: %s, ttl: %s}]\n"
    cases = [
        (config(NEW, OLD, ends), None),
        (config(NEW, OLD, ends) + "defaults: {ttl: 6d}\n", f"(route: orders, until: {ends}, ttl: 6d)"),
        (config(NEW, OLD, ends) + "scopes: [{scope: default/default, types: [{type: a, ttl: forever}]}]\n", "ttl: forever)"),
        (config(NEW, OLD, ends) + "scopes: [{scope: acme/default, ttl: 6d}]\n", None),
        (consumer % (NEW, OLD, ends, "6d"), f"(consumer: c, until: {ends}, ttl: 6d)"),
        (consumer % (NEW, OLD, ends, "1d"), None),
    ]
    for text, details in cases:
        path.write_text("upstream: {url: 'http://127.0.0.1:9'}\n" + text, encoding="utf-8")
        told = [line for line in cli.run("config", "check", path).err.splitlines() if word in line]
        expect([line.endswith(details or "") for line in told], [True] if details else [], text)
    with demo(cli) as service, serve(cli, service.url, config=cases[1][0]) as daemon:
        said(daemon, f"{word}, events from before a recent change may run again")


def test_what_is_refused(cli):
    path = cli.folder / "hapax.yaml"

    def refusal(text, store="memory:"):
        path.write_text(f"store: {{url: '{store}'}}\nupstream: {{url: 'http://127.0.0.1:9'}}\n" + text, encoding="utf-8")
        return cli.run("config", "check", path, env={"HAPAX_STORE": store}, code=78).err

    cluster = refusal(config(NEW, OLD), "redis+cluster://127.0.0.1:1")
    expect_in("route 'orders': key_also needs a store that claims two keys in one step; a Redis Cluster cannot", cluster)
    expect_in("key_also needs key_also_until", refusal(config(NEW) + "      key_also: event-id\n"))
    expect_in("key_also_until needs key_also", refusal(config(NEW) + "      key_also_until: 2030-01-01\n"))
    expect_in("is not a date", refusal(config(NEW, OLD, "soon")))
    expect_in("are the same strategy", refusal(config(NEW, NEW)))
    expect_in("is not a valid key strategy", refusal(config(NEW, "nonsense")))
    consumer = "consumers: [{name: c, from: 'redis://127.0.0.1:1/s?group=g', exec: 'cat', key: '%s', key_also: '%s', key_also_until: 2030-01-01}]\n"
    expect_in("consumer 'c': key_also needs a store", refusal(consumer % (NEW, OLD), "redis+cluster://127.0.0.1:1"))
