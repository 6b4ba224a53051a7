"""consumers: in the configuration of `hapax serve`, from RabbitMQ."""

from consumers import (
    config,
    consume,
    consumers,
    figure,
    health,
    letters_are_listed_and_sent_again,
    listed,
    originals,
    pauses_and_resumes,
    reload,
    row,
    said,
    until_figure,
    with_token,
)
from daemon import metrics, post, serve, upstream
from harness import expect, expect_in, until
from rabbit import Proxy, Queue, Service, event


def messages(*which):
    return [(f'{{"n":{n}}}', event(n)) for n in which]


def test_a_message_and_an_event_are_one(cli):
    with Queue() as queue, Proxy() as proxy, Service() as service, upstream() as behind:
        queue.fill([*messages(1, 2, 2), ("{", {"content_type": "application/cloudevents+json"})])
        text = config(row(**{"from": queue.url(proxy.address)}, to=service.url))
        with serve(cli, behind.url, config=text) as daemon:
            until_figure(daemon, 4, "acknowledged_total")
            # By HTTP what came by the queue, and by the queue what came by HTTP.
            reply = post(daemon.gateway, "A-1", b'{"n":1}')
            expect((reply.status, reply.decision), (200, "replay"))
            expect(post(daemon.gateway, "A-9", b'{"n":9}').decision, "acquired")
            queue.fill(messages(9))
            until_figure(daemon, 5, "acknowledged_total")
            expect(figure(daemon, "duplicates_total", cause="producer"), 1)
            expect(figure(daemon, "duplicates_total", cause="other_door"), 1)
            expect(figure(daemon, "dead_letters_total"), 1)
            expect((figure(daemon, "up"), figure(daemon, "runs_total", outcome="ok")), (1, 2))
            until_figure(daemon, 0, "lag_messages")
            status, part = health(daemon)
            expect((status, part["status"], part["reason"]), (200, "ok", "1 of 1 running"))
            line = next(line for line in said(daemon, "duplicate job blocked") if line["decision"] == "replay")
            expect((line["consumer"], line["cause"], line["original"], line["job_id"]), ("orders", "producer", queue.name, "A-2"))

            # The broker is unavailable, and available again; unacknowledged messages are delivered again.
            proxy.cut()
            until(lambda: said(daemon, "source failed"), "it is told")
            queue.fill(messages(3))
            until(lambda: ("/shop", "A-3") in service.effects, "it goes on")
            assert figure(daemon, "source_failures_total") >= 1
        expect(service.effects, {("/shop", f"A-{n}"): 1 for n in (1, 2, 3)})
        expect(len(behind.requests), 1)
        expect(queue.get(f"{queue.name}.dead")[1]["headers"]["hapax-dead-reason"], "malformed")
        until(lambda: queue.ready(queue.name) == 0, "nothing is left")


def test_a_message_without_an_id_pauses_it(cli):
    """Nothing is a dead letter because no strategy is set. A resume tries again, a reload with a strategy goes on."""
    with Queue() as queue, Service() as service:
        queue.fill([(f'{{"order_id":"o-{n}"}}', {}) for n in (1, 2)])
        settings = {"from": queue.url(), "to": service.url}
        more = with_token()
        with serve(cli, None, "--gateway", "off", config=config(row(**settings), more=more)) as daemon:
            until_figure(daemon, 1, "paused", reason="no_id")
            line = said(daemon, "consumer paused: message without an ID")[0]
            expect((line["consumer"], line["strategy"]), ("orders", "field:data.order_id"))
            status, part = health(daemon)
            expect((status, part["status"]), (200, "failed"))
            expect_in("set key, for example to 'field:data.order_id'", part["reason"])
            until(lambda: metrics(daemon)['hapax_conditions{name="consumer_paused",severity="warning"}'] == 1, "a condition")
            expect(consumers(daemon)["orders"]["state"], "paused")
            until(lambda: queue.ready(queue.name) == 2, "the broker has them back")

            consume(cli, daemon, "resume", "orders")
            until(lambda: len(said(daemon, "consumer paused: message without an ID")) == 2, "it tried again")
            until(lambda: queue.ready(queue.name) == 2, "the broker has them back")
            reload(daemon, config(row(**settings, key="field:data.order_id"), more=more))
            until_figure(daemon, 2, "acknowledged_total")
            until_figure(daemon, 0, "paused", reason="no_id")
            until(lambda: metrics(daemon)['hapax_conditions{name="consumer_paused",severity="warning"}'] == 0, "none")
            expect((figure(daemon, "dead_letters_total"), figure(daemon, "runs_total", outcome="ok")), (0, 2))
            until(lambda: consumers(daemon)["orders"]["state"] == "running", "it runs")


def test_it_runs_when_the_broker_has_accepted_it(cli):
    """A wrong password: it is not ready, and health says why."""
    with Queue() as queue, Service() as service:
        settings = {"from": queue.url().replace("guest:guest", "guest:wrong"), "to": service.url}
        more = with_token()
        with serve(cli, None, "--gateway", "off", config=config(row(**settings), more=more)) as daemon:
            until(lambda: said(daemon, "source failed"), "it is told")
            until(lambda: consumers(daemon)["orders"]["state"] == "failed", "it failed")
            expect((health(daemon)[1]["status"], said(daemon, "consumer ready")), ("failed", []))
            reload(daemon, config(row(**{**settings, "from": queue.url()}), more=more))
            until(lambda: said(daemon, "consumer ready"), "it is told")
            until(lambda: consumers(daemon)["orders"]["state"] == "running", "it runs")
            expect(health(daemon)[1]["status"], "ok")


def test_a_stop_gives_back_what_has_not_begun(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"cat >>{started}; echo >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Queue() as queue:
        queue.fill(messages(1, 2, 3))
        text = config(row(**{"from": queue.url()}, exec=script, parallel=1))
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 1, "running_messages")
            until_figure(daemon, 3, "received_total")
            daemon.process.terminate()
            expect_in("draining", daemon.wait_for(lambda line: line if "draining" in line else None))
            go.touch()
            daemon.end(how=None)
        until(lambda: queue.ready(queue.name) == 2, "the broker has them back")
    expect(len(started.read_text().split()), 1)


def test_it_is_paused_and_resumed(cli):
    with Queue() as queue, Queue() as beside, Service() as service:

        def fill(at):
            return lambda *which: at.fill(messages(*which))

        pauses_and_resumes(cli, queue.url(), service, fill(queue), beside.url(), fill(beside))
        until(lambda: queue.ready(queue.name) == 0, "nothing is left")


def test_a_paused_consumer_leaves_messages_in_the_queue(cli):
    """It is not subscribed meanwhile, also after it has connected again."""
    with Queue() as queue, Proxy() as proxy, Service() as service:
        text = config(row(**{"from": queue.url(proxy.address)}, to=service.url), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            queue.fill(messages(1))
            until_figure(daemon, 1, "acknowledged_total")
            consume(cli, daemon, "pause", "orders")
            until(lambda: queue.consumers(queue.name) == 0, "it takes no more")
            queue.fill(messages(2))
            expect(queue.ready(queue.name), 1)
            proxy.cut()
            until(lambda: said(daemon, "source failed"), "it is told")
            until_figure(daemon, 1, "lag_messages")
            expect(queue.ready(queue.name), 1)
            consume(cli, daemon, "resume", "orders")
            until(lambda: ("/shop", "A-2") in service.effects, "it goes on")


def test_a_pause_lets_runs_finish(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"cat >>{started}; echo >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Queue() as queue:
        queue.fill(messages(1, 2, 3))
        text = config(row(**{"from": queue.url()}, exec=script, parallel=1), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 1, "running_messages")
            until_figure(daemon, 3, "received_total")
            consume(cli, daemon, "pause", "orders")
            go.touch()
            until_figure(daemon, 1, "acknowledged_total")
            until_figure(daemon, 0, "running_messages")
            expect((figure(daemon, "in_hand_messages"), len(started.read_text().split())), (2, 1))
            consume(cli, daemon, "resume", "orders")
            until_figure(daemon, 3, "acknowledged_total")
        expect(len(started.read_text().split()), 3)


def test_dead_letters_are_listed_and_sent_again(cli):
    with Queue() as queue:

        def fill(*which):
            queue.fill(messages(*which))

        letters_are_listed_and_sent_again(cli, queue.url(), fill)
        until(lambda: queue.ready(f"{queue.name}.dead") == 0, "they are gone")


def test_a_look_at_dead_letters_loses_none(cli):
    """D4: a quorum queue drops what comes back more often than its limit, also what was fetched and not shown."""
    for limit in (2, 0):
        a_look_loses_none(cli, {"x-queue-type": "quorum", "x-delivery-limit": limit})


def a_look_loses_none(cli, arguments):
    with Queue() as queue:
        queue.declare(f"{queue.name}.dead", arguments)
        queue.fill(messages(*range(6)))
        text = config(row(**{"from": queue.url()}, exec="exit 1", attempts=1, parallel=1), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 6, "dead_letters_total")
            ids = {letter["id"] for letter in listed(cli, daemon)}
            for _ in range(5):
                expect(len(listed(cli, daemon, "--limit", "2")), 2)
            found = listed(cli, daemon)
            expect(({letter["id"] for letter in found}, len(found)), (ids, 6))
        # Each header is there once.
        headers = queue.get(f"{queue.name}.dead")[1]["headers"]
        expect((headers["hapax-dead-exchange"], headers["hapax-dead-routing-key"]), ("", queue.name))


def test_a_duplicate_names_the_original(cli):
    """A10, E12: by its CloudEvents attributes, or by the properties of its message."""
    with Queue() as queue, Service() as service:
        plain = [('{"n":2}', {"message_id": name, "type": "order.made"}) for name in ("m-1", "m-2")]
        queue.fill([('{"n":1}', event(1)), ('{"n":1}', event(1, **{"cloudEvents:id": "B-1"})), *plain])
        text = config(row(**{"from": queue.url()}, to=service.url, key="field:data.n", order="partition"))
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 4, "acknowledged_total")
            expect(originals(daemon, 2), [("B-1", "A-1", "order.paid", "/shop"), ("m-2", "m-1", "order.made", None)])


def test_a_queue_cannot_start_over(cli):
    there = ("--from", "amqp://localhost/orders", "--scope", "acme/orders", "--store", f"sqlite:{cli.folder}/q.db", "--yes")
    cli.run("check", "k", "--store", f"sqlite:{cli.folder}/q.db", "--scope", "acme/orders")
    cli.run("consume", "rebuild", *there, code=None).says("keeps no message that was acknowledged")
    cli.run("check", "k", "--store", f"sqlite:{cli.folder}/q.db", "--scope", "acme/orders", code=1)
