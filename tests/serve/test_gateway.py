"""The CloudEvents gateway: A1 to A5, A10, and the replies that senders rely on."""

import contextlib
import json
import pathlib
import socket
import sqlite3
import threading

from daemon import EVENT, dead_address, demo, expect_marked, metrics, post, post_batch, post_structured, request, serve, structured, upstream
from harness import expect, expect_in, until


def test_three_modes_are_one_event(cli):
    """A1: source and id make it the same, however it is written."""
    with demo(cli) as service, serve(cli, service.url) as daemon:
        first = post(daemon.gateway, "1")
        expect((first.status, first.decision, first.json), (200, "acquired", {"executed": 1}))
        again = post(daemon.gateway, "1", b'{ "total" : 42.0 }')
        expect((again.status, again.decision, again.body), (200, "replay", first.body))
        expect(again.headers["idempotent-replayed"], "true")
        expect(again.headers["content-type"], first.headers["content-type"])
        again = post_structured(daemon.gateway, structured("1"))
        expect((again.status, again.decision, again.body), (200, "replay", first.body))
        batch = post_batch(daemon.gateway, [structured("1"), structured("2"), structured("2"), structured("1")])
        expect((batch.status, batch.body), (200, b""))
        expect(post_batch(daemon.gateway, []).status, 200)
        expect(post(daemon.gateway, "1", ce_source="/other").decision, "acquired")
        expect(post(daemon.gateway, "2").decision, "replay")
        expect(service.count(), {"received": 3, "executed": 3, "keys": 3})


def test_other_data_is_a_mismatch(cli):
    with demo(cli) as service, serve(cli, service.url) as daemon:
        post(daemon.gateway, "1")
        reply = post(daemon.gateway, "1", b'{"total":99}').is_problem(422, "mismatch")
        expect(reply.decision, "mismatch")
        post_structured(daemon.gateway, structured("1", {"total": 99})).is_problem(422)
        expect(post_batch(daemon.gateway, [structured("1", {"total": 99}), structured("9")]).status, 422)
        expect(post(daemon.gateway, "9").decision, "replay")
        expect(service.count()["executed"], 2)
        daemon.wait_for(lambda line: "payload mismatch" in line)


def test_a_mismatch_is_told_in_words_of_the_key(cli):
    config = "gateway:\n  routes:\n    - {path: /field, key: 'field:data.order'}\n    - {path: /}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        for path, part in (("/field", "with the same key had different data"), ("/", "with the same source and id had")):
            expect(post(daemon.gateway, "1", b'{"order":1}', path=path).status, 200)
            post(daemon.gateway, "1", b'{"order":1,"x":1}', path=path).is_problem(422, part)


def test_what_is_stored_and_damaged(cli):
    """A retry changes nothing: 500, without Retry-After, and nothing runs."""
    path = cli.folder / "ledger.db"
    with demo(cli) as service, serve(cli, service.url, store=f"sqlite:{path}") as daemon:
        post(daemon.gateway, "1")
        with contextlib.closing(sqlite3.connect(path)) as ledger, ledger:
            ledger.execute("UPDATE hapax_record SET result_kind = 99")
        reply = post(daemon.gateway, "1").is_problem(500, "urn:hapax:problem:corrupt")
        expect_in("nothing was forwarded", reply.json["detail"])
        expect("retry-after" in reply.headers, False)
        batch = post_batch(daemon.gateway, [structured("1")])
        expect((batch.status, "retry-after" in batch.headers), (409, False))
        expect(post(daemon.gateway, "2").decision, "acquired")
        expect(service.count()["executed"], 2)


def test_what_an_upstream_gets(cli):
    """Token and attempt from us alone; fields of the connection stay behind."""
    with upstream() as service, serve(cli, service.url + "/base") as daemon:
        post(
            daemon.gateway,
            "1",
            path="/in/box?x=1",
            Hapax_Token="7",
            hapax_attempt="9",
            Hapax_Anything="x",
            X_Mine="kept",
            Connection="keep-alive, X-Hop",
            X_Hop="gone",
            Keep_Alive="timeout=5",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        path, headers, body = service.requests[0]
        names = [name.lower() for name in headers]
        expect((path, body), ("/base/in/box?x=1", b'{"total":42}'))
        expect(headers["Hapax-Attempt"], "1")
        assert int(headers["Hapax-Token"]) > 7
        expect(headers["X-Mine"], "kept")
        expect(headers["ce-id"], "1")
        expect(headers["Host"], service.url[7:])
        expect(headers["X-Forwarded-For"], "127.0.0.1")
        expect(headers["Via"], "1.1 hapax")
        assert headers["traceparent"].startswith("00-")
        for gone in ("hapax-anything", "x-hop", "keep-alive", "connection", "transfer-encoding"):
            assert gone not in names, gone
        expect([names.count(name) for name in ("hapax-token", "host", "content-length")], [1, 1, 1])


def test_what_an_upstream_could_take_for_ours(cli):
    """CGI and WSGI know no difference between Hapax_Token and Hapax-Token: a client must not choose the token."""
    with upstream() as service, serve(cli, service.url) as daemon:
        forged = {"Hapax_Token": "7", "HAPAX_ATTEMPT": "9", "ce_id": "other", "CE_Source": "/other", "X_Mine": "gone"}
        reply = request(daemon.gateway, "POST", "/", {**EVENT, "ce-id": "1", **forged}, b"{}")
        expect((reply.status, reply.decision), (200, "acquired"))
        headers = {name.lower(): value for name, value in service.requests[0][1].items()}
        expect([name for name in headers if "_" in name], [])
        expect(headers["ce-id"], "1")


def test_connection_does_not_name_what_makes_an_event(cli):
    """What is removed on the way would be missing where the event is handled."""
    with upstream() as service, serve(cli, service.url) as daemon:
        for name in ("ce-id", "CE-Type", "close, ce-subject", "hapax-token"):
            post(daemon.gateway, "1", Connection=name).is_problem(400, "every hop")
        expect(service.requests, [])


def test_what_a_client_gets(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        first = post(daemon.gateway, "1", path="/status/201")
        expect((first.status, first.decision, first.body), (201, "acquired", b"run 1"))
        expect((first.headers["x-kept"], first.headers["set-cookie"]), ("yes", "a=b"))
        again = post(daemon.gateway, "1", path="/status/201")
        expect((again.status, again.decision, again.body), (201, "replay", b"run 1"))
        expect(again.headers["x-kept"], "yes")
        assert "set-cookie" not in again.headers
        expect(post(daemon.gateway, "2", path="/status/204").body, b"")
        expect(post(daemon.gateway, "2", path="/status/204").status, 204)


def test_outcomes_of_an_upstream(cli):
    """What is done, and what the next delivery runs again (A5): by default, only 2xx is final."""
    with upstream() as service, serve(cli, service.url) as daemon:
        for status in (200, 202, 204):
            expect(post(daemon.gateway, f"kept-{status}", path=f"/status/{status}").decision, "acquired", str(status))
            again = post(daemon.gateway, f"kept-{status}", path=f"/status/{status}")
            expect((again.status, again.decision), (status, "replay"), str(status))
        for status in (400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 421, 422, 425, 429, 499, 500, 501, 502, 503, 504):
            for attempt in (1, 2):
                reply = post(daemon.gateway, f"again-{status}", path=f"/status/{status}")
                expect((reply.status, reply.decision), (status, "acquired"), str(status))
                expect(service.requests[-1][1]["Hapax-Attempt"], str(attempt), str(status))
        for status in (301, 302, 304, 307):
            post(daemon.gateway, f"moved-{status}", path=f"/status/{status}").is_problem(502, "redirect")
            expect(post(daemon.gateway, f"moved-{status}").decision, "acquired")


def test_a_forged_event_does_not_block_the_genuine_one(cli):
    """E18: the handler refuses the forged data with 400; the genuine delivery runs, alone and in a batch."""
    with upstream() as service, serve(cli, service.url) as daemon:
        for path in ("/status/400", "/status/422"):
            reply = post(daemon.gateway, "1", b'{"total":-1}', path=path)
            expect((reply.status, reply.decision), (int(path[-3:]), "acquired"))
        expect((post(daemon.gateway, "1").status, post(daemon.gateway, "1").decision), (200, "replay"))
        form = {"Content-Type": "application/cloudevents-batch+json"}
        forged = json.dumps([structured("2", {"total": -1})]).encode()
        reply = request(daemon.gateway, "POST", "/status/400", form, forged).is_problem(503)
        expect(reply.headers["retry-after"], "1")
        expect(post_batch(daemon.gateway, [structured("2")]).status, 200)
        expect(len([body for _, _, body in service.requests if b"-1" not in body]), 2)


def test_a_route_says_which_statuses_are_final(cli):
    """E18: `outcomes` of a route of the gateway; an exact status overrules its class."""
    config = """
gateway:
  routes:
    - name: strict
      path: /status
      outcomes: {ok: [304], definitive: [4xx], transient: [409], ambiguous: [500]}
    - {name: rest, path: /}
defaults:
  on_lapse: park
"""
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        for status in (304, 400, 404, 410):
            for decision in ("acquired", "replay"):
                reply = post(daemon.gateway, f"kept-{status}", path=f"/status/{status}")
                expect((reply.status, reply.decision), (status, decision))
        for status in (409, 503):
            for _ in range(2):
                reply = post(daemon.gateway, f"again-{status}", path=f"/status/{status}")
                expect((reply.status, reply.decision), (status, "acquired"))
        expect(post(daemon.gateway, "unknown", path="/status/500").status, 500)
        post(daemon.gateway, "unknown").is_problem(409, "parked")


def test_an_answer_that_is_lost(cli):
    """Sent, and no answer: the outcome is unknown. By default the next delivery runs."""
    with upstream() as service, serve(cli, service.url) as daemon:
        post(daemon.gateway, "1", path="/drop").is_problem(502, "upstream-lost")
        expect(post(daemon.gateway, "1").decision, "acquired")
        expect(service.requests[-1][1]["Hapax-Attempt"], "2")


def test_an_answer_that_is_untidy_is_none_that_is_lost(cli):
    """What decides nothing here is passed on: if it were refused, the next delivery would run again."""
    with upstream() as service, serve(cli, service.url) as daemon:
        for decision in ("acquired", "replay"):
            reply = post(daemon.gateway, "1", path="/twice")
            expect((reply.status, reply.decision, reply.body), (200, decision, b"run 1"))
        expect(len(service.requests), 1)


def test_an_answer_that_is_lost_is_parked(cli):
    config = "defaults:\n  on_lapse: park\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        post(daemon.gateway, "1", path="/drop").is_problem(502, "upstream-lost")
        reply = post(daemon.gateway, "1").is_problem(409, "parked")
        expect((reply.decision, "retry-after" in reply.headers), ("parked", False))
        # A retry changes nothing, nor in a batch, unless another event of it gets better by that.
        reply = post_batch(daemon.gateway, [structured("1")]).is_problem(409)
        assert "retry-after" not in reply.headers, reply.headers
        batch, form = [structured("1"), structured("2")], {"Content-Type": "application/cloudevents-batch+json"}
        reply = request(daemon.gateway, "POST", "/status/503", form, json.dumps(batch).encode())
        expect((reply.status, reply.headers["retry-after"]), (503, "1"))
        expect(post(daemon.gateway, "3").decision, "acquired")
        for batch in ([structured("3", {"total": 99}), structured("1")], [structured("1"), structured("3", {"total": 99})]):
            post_batch(daemon.gateway, batch).is_problem(409)
        expect(len(service.requests), 3)


def test_an_upstream_that_takes_too_long(cli):
    with upstream() as service, serve(cli, service.url, config="defaults:\n  max_run: 200ms\n") as daemon:
        post(daemon.gateway, "1", path="/hold").is_problem(504, "upstream-lost")
        service.release.set()
        expect(post(daemon.gateway, "1").decision, "acquired")


def test_an_upstream_that_is_not_there(cli):
    with serve(cli, dead_address()) as daemon:
        post(daemon.gateway, "1").is_problem(502, "upstream-unreachable")
        post(daemon.gateway, "1").is_problem(502, "upstream-unreachable")
        expect(post_batch(daemon.gateway, [structured("1")]).status, 503)


def test_a_duplicate_while_the_first_runs(cli):
    """A3: 409 with Retry-After; with a wait it attaches, and gets the reply."""
    with upstream() as service:
        config = "scopes:\n  - scope: default/patient\n    wait: 30s\n"
        config += "gateway:\n  routes:\n    - name: patient\n      path: /hold/patient\n      group: patient\n"
        config += "    - name: rest\n      path: /\n"
        with serve(cli, service.url, config=config) as daemon:
            replies = {}

            def send(name, path):
                replies[name] = post(daemon.gateway, "1", path=path)

            threads = [threading.Thread(target=send, args=("first", "/hold"))]
            threads[0].start()
            service.arrived.acquire()
            reply = post(daemon.gateway, "1", path="/hold").is_problem(409, "in-progress")
            expect((reply.decision, reply.headers["retry-after"]), ("in_progress", "1"))
            expect(post_batch(daemon.gateway, [structured("1")]).status, 409)
            threads.append(threading.Thread(target=send, args=("patient", "/hold/patient")))
            threads[1].start()
            service.arrived.acquire()
            for number in range(4):
                threads.append(threading.Thread(target=send, args=(f"waits-{number}", "/hold/patient")))
                threads[-1].start()
            service.release.set()
            for thread in threads:
                thread.join()
            expect({reply.status for reply in replies.values()}, {200})
            expect({reply.body for name, reply in replies.items() if name != "first"}, {replies["patient"].body})
            expect(len(service.requests), 2)


def test_a_duplicate_without_a_kept_reply(cli):
    """A3: 200 with an empty body, which Knative takes; JSON for those that ask for it by name."""
    path = cli.folder / "marks.db"
    cli.run("check", "/shop:marked", "--store", f"sqlite:{path}")
    with demo(cli) as service, serve(cli, service.url, store=f"sqlite:{path}") as daemon:
        for accept in (None, "*/*", "application/*", "text/html", "application/json;q=0", "application/cloudevents+json"):
            reply = post(daemon.gateway, "marked", Accept=accept)
            expect((reply.status, reply.body, reply.decision), (200, b"", "replay"), str(accept))
        for accept in ("application/json", "text/html, application/json;q=0.5", "Application/JSON; charset=utf-8"):
            reply = post(daemon.gateway, "marked", Accept=accept)
            expect(reply.json, {"status": "skipped", "message": "Duplicate event", "eventId": "marked"}, accept)
        expect(service.count()["received"], 0)


def test_a_result_that_is_too_large_to_keep(cli):
    with upstream() as service, serve(cli, service.url, config="store:\n  max_result: 1KiB\n") as daemon:
        expect(post(daemon.gateway, "1", path="/size/1024").body, b"x" * 1024)
        expect(post(daemon.gateway, "1", path="/size/1024").body, b"x" * 1024)
        expect(len(post(daemon.gateway, "2", path="/size/500000").body), 500000)
        again = post(daemon.gateway, "2", path="/size/500000")
        expect((again.status, again.body, again.headers["hapax-body-omitted"]), (200, b"", "500000"))
        expect(len(service.requests), 2)


def processor_ms(daemon):
    """What the threads of the daemon have used, by their names."""
    used = {}
    for folder in pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir():
        name = (folder / "comm").read_text(encoding="utf-8").strip()
        used[name] = used.get(name, 0) + int((folder / "schedstat").read_text(encoding="utf-8").split()[0]) / 1e6
    return used


def test_large_events_are_read_beside_the_loop(cli):
    """In each mode, good and bad: an event that takes long to read and hash holds up no other."""
    rows = [{"id": number, "name": f"row {number}", "values": [1.5, 2, 3]} for number in range(60000)]
    with upstream() as service, serve(cli, service.url, config="loops: 1\nhttp:\n  max_body_memory: 4MiB\n") as daemon:
        before = processor_ms(daemon)
        for _ in range(2):
            reply = post(daemon.gateway, "binary", json.dumps(rows).encode())
        expect(reply.decision, "replay")
        used = processor_ms(daemon)
        # Without the loop's own share: receiving, sending on.
        assert used["hapax-reader"] > (used["hapax-loop-0"] - before.get("hapax-loop-0", 0)) / 4, used
        expect(post(daemon.gateway, "binary", json.dumps(rows[:-1]).encode()).status, 422)
        expect(post_structured(daemon.gateway, structured("binary", rows)).decision, "replay")
        expect(post_structured(daemon.gateway, structured("structured", rows)).decision, "acquired")
        parts = [rows[:20000], rows[20000:40000], rows[40000:]]
        events = [structured(f"batch-{number}", part) for number, part in enumerate(parts)]
        expect(post_batch(daemon.gateway, [*events, *events]).status, 200)
        expect(post_batch(daemon.gateway, [events[0], {**events[1], "data": rows[:9]}]).status, 422)
        request(daemon.gateway, "POST", "/", {"Content-Type": "application/cloudevents-batch+json"}, b"[" + b" " * 300000).is_problem(400)
        post_structured(daemon.gateway, {"id": "1", "data": rows}).is_problem(400)
        expect(len(service.requests), 5)
        expect(json.loads(service.requests[-1][2])["data"], parts[2])


def test_large_events_in_memory(cli):
    """Larger than what is sent to a service at once, by themselves and in a batch."""
    config = "http:\n  max_body: 40MiB\n  max_body_memory: 40MiB\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        data = b"x" * 18000000
        expect(post(daemon.gateway, "1", data, Content_Type="text/plain").status, 200)
        expect(len(service.requests[-1][2]), len(data))
        expect(post_batch(daemon.gateway, [structured("2", data.decode(), datacontenttype="text/plain")]).status, 200)


def test_large_events(cli):
    """In memory, in a temporary file, and too large."""
    with upstream() as service, serve(cli, service.url) as daemon:
        sizes = (0, 1, 256 * 1024, 256 * 1024 + 1, 5 * 1024 * 1024, 16 * 1024 * 1024)
        for size in sizes:
            data = bytes(index % 251 for index in range(1000)) * (size // 1000 + 1)
            reply = post(daemon.gateway, f"{size}", data[:size], Content_Type="application/octet-stream")
            expect((reply.status, reply.decision), (200, "acquired"), str(size))
            assert service.requests[-1][2] == data[:size], size
            expect(post(daemon.gateway, f"{size}", data[:size], Content_Type="application/octet-stream").decision, "replay")
        count = len(service.requests)
        reply = post(daemon.gateway, "more", b"x" * (16 * 1024 * 1024 + 1), Content_Type="text/plain")
        reply.is_problem(413)
        expect(len(service.requests), count)
        expect_marked(daemon, *sizes)


def test_an_event_without_data(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        expect(post(daemon.gateway, "1", None, Content_Type=None).status, 200)
        expect(post(daemon.gateway, "1", None, Content_Type=None).decision, "replay")
        expect(service.requests[0][1]["Content-Length"], "0")


def test_the_handshake_of_webhooks(cli):
    config = "gateway:\n  webhook:\n    allowed_origins: [shop.example]\n    allowed_rate: 120\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        reply = request(daemon.gateway, "OPTIONS", "/", {"WebHook-Request-Origin": "shop.example"})
        expect(reply.headers["webhook-allowed-origin"], "shop.example")
        expect(reply.headers["webhook-allowed-rate"], "120")
        expect_in("POST", reply.headers["allow"])
        for headers in ({"WebHook-Request-Origin": "evil.example"}, {}):
            reply = request(daemon.gateway, "OPTIONS", "/", headers)
            assert "webhook-allowed-origin" not in reply.headers
        expect(service.requests, [])


def test_what_runs_without_a_claim_says_no_decision(cli):
    """E21, D7: nothing was asked, so nothing was acquired; both runs are real."""
    config = "defaults: {on_missing: pass}\nscopes: [{scope: default/off, enabled: false}]\ngateway:\n  routes:\n"
    config += "    - {path: /off, group: 'off'}\n    - {path: /drop, group: 'off'}\n    - {path: /, key: 'field:data.order'}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        for path in ("/off", "/off", "/loose", "/loose"):
            reply = post(daemon.gateway, "1", path=path)
            expect((reply.status, reply.decision), (200, None), path)
        expect(post(daemon.gateway, "1", path="/drop").is_problem(502, "upstream-lost").decision, None)
        expect(post(daemon.gateway, "1", b'{"order":17}').decision, "acquired")
        expect(post(daemon.gateway, "2", b'{"order":17}').decision, "replay")
        expect(len(service.requests), 6)


def test_ttl_by_type(cli):
    config = "defaults:\n  ttl: 1h\n  types:\n    - {type: 'short.*', ttl: 1ms}\n"
    with demo(cli) as service, serve(cli, service.url, config=config) as daemon:
        expect(post(daemon.gateway, "1", ce_type="short.lived").decision, "acquired")
        until(lambda: post(daemon.gateway, "1", ce_type="short.lived").decision == "acquired", "it has expired")
        expect(post(daemon.gateway, "2").decision, "acquired")
        expect(post(daemon.gateway, "2").decision, "replay")


def test_routes(cli):
    with upstream() as one, upstream() as two:
        config = f"""
gateway:
  routes:
    - {{name: audit, path: /, types: ["audit.*"], upstream: "{one.url}", group: audit}}
    - {{name: orders, path: /orders, upstream: "{two.url}"}}
"""
        with serve(cli, None, config=config) as daemon:
            expect(post(daemon.gateway, "1", ce_type="audit.login").decision, "acquired")
            expect(post(daemon.gateway, "1", path="/orders/eu").decision, "acquired")
            post(daemon.gateway, "1", path="/elsewhere").is_problem(404, "no-route")
            expect((len(one.requests), len(two.requests)), (1, 1))


def test_a_batch_goes_on_after_what_no_route_takes(cli):
    """However many of its events are refused or duplicates, every other one is run."""
    with upstream() as service:
        config = f"""
gateway:
  routes:
    - {{name: orders, types: ["order.*"], upstream: "{service.url}"}}
"""
        with serve(cli, None, config=config) as daemon:
            events = [structured(f"{number // 2}", type=kind) for number in range(20) for kind in ("order.made", "lost")]
            post_batch(daemon.gateway, events).is_problem(422)
            expect(len(service.requests), 10)
            refused = [structured(f"lost-{number}", type="lost") for number in range(900)]
            post_batch(daemon.gateway, [*refused, structured("last", type="order.made")]).is_problem(422)
            expect(len(service.requests), 11)


def test_duplicates_are_logged(cli):
    """A10, E12: with the event that the key was claimed for, beside its own."""
    config = "gateway:\n  routes:\n    - {path: /, key: 'field:data.order'}\n"
    body = b'{"order":17}'
    with demo(cli) as service, serve(cli, service.url, config=config) as daemon:
        post(daemon.gateway, "1", body, ce_time="2026-11-18T06:00:00+01:00")
        post(daemon.gateway, "2", body, ce_type="order.again", ce_source="/till")
        line = json.loads(daemon.wait_for(lambda text: text if "duplicate" in text else None))
        expect((line["event_id"], line["event_type"], line["event_source"]), ("2", "order.again", "/till"))
        expect((line["job_id"], line["queue"], line["idempotency_key"]), ("2", "default/default", "17"))
        original = [line[f"original_{name}"] for name in ("job_id", "type", "source", "time")]
        expect(original, ["1", "order.paid", "/shop", "2026-11-18T05:00:00.000Z"])
        assert line["original_token"] > 0, line
        assert line["ttl_remaining"].startswith(("1d", "23h59m")), line
        assert line["first_seen"].endswith("Z"), line


def waiting(daemon):
    return metrics(daemon)["hapax_runs_waiting"]


def test_a_waiter_whose_client_has_gone(cli):
    """It leaves; when the first run fails, the next one in line has its turn."""
    with upstream() as service, serve(cli, service.url, config="defaults:\n  wait: 10m\n") as daemon:
        replies = {}

        def send(name, path):
            replies[name] = post(daemon.gateway, "1", path=path)

        threads = [threading.Thread(target=send, args=("first", "/hold/503"))]
        threads[0].start()
        service.arrived.acquire()
        with socket.create_connection(daemon.gateway) as connection:
            body = b'{"total":42}'
            head = "POST /gone HTTP/1.1\r\nHost: x\r\nce-id: 1\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in EVENT.items())
            connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            until(lambda: waiting(daemon) == 1, "it waits")
            threads.append(threading.Thread(target=send, args=("next", "/next")))
            threads[1].start()
            until(lambda: waiting(daemon) == 2, "both wait")
        until(lambda: waiting(daemon) == 1, "it has left")
        service.release.set()
        for thread in threads:
            thread.join()
        expect([path for path, _, _ in service.requests], ["/hold/503", "/next"])
        expect((replies["first"].status, replies["next"].status), (503, 200))
        expect(replies["next"].decision, "acquired")
