"""Traces: what a collector gets, what an upstream gets, and that no request waits for either."""

import json
import signal

from api import api, ask, proxy
from daemon import dead_address, demo, log_line, metrics, post, post_batch, request, serve, structured, upstream
from harness import expect, expect_in, until
from spans import CLIENT, INTERNAL, SERVER, SPAN, TRACE, collector, named


def test_an_event_and_its_duplicate(cli):
    """Names, parents, attributes, what the upstream is told; a duplicate has a link to the run."""
    with collector() as sink, upstream() as service, serve(cli, service.url, config=sink.config()) as daemon:
        first = post(daemon.gateway, "1", traceparent=f"00-{TRACE}-{SPAN}-01", tracestate="rojo=1,congo=2")
        again = post(daemon.gateway, "1")
        expect((first.decision, again.decision), ("acquired", "replay"))
        expect([name for name in (*first.headers, *again.headers) if "trace" in name], [], "fields that are for hapax alone")
        expect(again.headers["x-kept"], "yes")
        spans = sink.events(2)["1"]
        resource = sink.requests[0][2]["resourceSpans"][0]["resource"]["attributes"]
        expect(resource[0], {"key": "service.name", "value": {"stringValue": "hapax"}})
        expect((sink.requests[0][0], sink.requests[0][1]["Content-Type"]), ("/v1/traces", "application/json"))
        run = [span for span in spans if span.trace == TRACE]
        process, check, call = (named(run, name) for name in ("process_cloud_event", "idempotency_check", "POST"))
        expect((process.kind, check.kind, call.kind), (SERVER, INTERNAL, CLIENT))
        expect((process.parent, check.parent, call.parent), (SPAN, process.id, process.id))
        assert process.begin <= check.begin <= check.end <= call.begin <= call.end <= process.end, [s.document for s in run]
        expected = {"event_id": "1", "event_source": "/shop", "event_type": "order.paid"}
        expect({name: process.attributes[f"cloudevents.{name}"] for name in expected}, expected)
        expect((process.attributes["http.response.status_code"], process.attributes["hapax.scope"]), ("200", "default/default"))
        token = service.requests[0][1]["Hapax-Token"]
        expect((check.attributes["hapax.decision"], check.attributes["hapax.token"]), ("acquired", token))
        assert check.attributes["hapax.key_hash"].startswith("sha256:"), check.attributes
        expect((call.attributes["server.address"], call.attributes["http.response.status_code"]), ("127.0.0.1", "200"))
        headers = service.requests[0][1]
        expect((headers["traceparent"], headers["tracestate"]), (f"00-{TRACE}-{call.id}-01", "rojo=1,congo=2"))
        other = [span for span in spans if span.trace != TRACE]
        replay = named(other, "process_cloud_event")
        expect((replay.parent, replay.links, process.links), (None, [(TRACE, process.id)], []))
        expect(named(other, "idempotency_check").attributes["hapax.decision"], "replay")
        expect(len(other), 2, "spans of the duplicate")
        line = daemon.wait_for(lambda text: log_line(text) if "duplicate job blocked" in text else None)
        expect((line["trace_id"], line["span_id"]), (replay.trace, replay.id))
        expect([span.failed for span in spans], [False] * 5)
        until(lambda: metrics(daemon)["hapax_trace_exported_spans_total"] == 5, "they are counted")


def test_a_request_of_the_proxy(cli):
    """The same of a request with a key, of its duplicate, and of one that passes; no event is made up."""
    with collector() as sink, api() as service, proxy(cli, service.url, config=sink.config()) as daemon:
        first = ask(daemon.proxy, "POST", "/charges", b"{}", "k", traceparent=f"00-{TRACE}-{SPAN}-01", tracestate="rojo=1")
        again = ask(daemon.proxy, "POST", "/charges", b"{}", "k")
        passed = ask(daemon.proxy, "GET", "/charges")
        expect((first.decision, again.decision, passed.decision), ("acquired", "replay", None))
        expect([name for name in (*first.headers, *again.headers, *passed.headers) if "trace" in name], [])
        until(lambda: len([span for span in sink.spans() if span.name == "process_request"]) == 3, "spans have come")
        spans = sink.spans()
        expect([span.name for span in spans if span.name == "process_cloud_event"], [])
        run = [span for span in spans if span.trace == TRACE]
        process, check, call = (named(run, name) for name in ("process_request", "idempotency_check", "POST"))
        expect((process.kind, check.kind, call.kind), (SERVER, INTERNAL, CLIENT))
        expect((process.parent, check.parent, call.parent), (SPAN, process.id, process.id))
        expect((process.attributes["http.response.status_code"], process.attributes["hapax.scope"]), ("200", "default/default"))
        expect([name for name in process.attributes if name.startswith("cloudevents.")], [])
        expect((check.attributes["hapax.decision"], check.attributes["hapax.token"]), ("acquired", service.requests[0].headers["hapax-token"]))
        got = service.requests[0].headers
        expect((got["traceparent"], got["tracestate"]), (f"00-{TRACE}-{call.id}-01", "rojo=1"))
        others = [span for span in spans if span.trace != TRACE and span.name == "process_request"]
        expect(sorted(span.links for span in others), [[], [(TRACE, process.id)]])
        expect([span.failed for span in spans], [False] * len(spans))


def test_failures_are_told(cli):
    """An upstream that fails, one that is not there, other data."""
    with collector() as sink, upstream() as service, serve(cli, service.url, config=sink.config()) as daemon:
        post(daemon.gateway, "1", path="/status/500")
        post(daemon.gateway, "2", path="/drop")
        post(daemon.gateway, "3")
        post(daemon.gateway, "3", b'{"total":43}').is_problem(422)
        events = sink.events(4)
        call, process = named(events["1"], "POST"), named(events["1"], "process_cloud_event")
        expect((call.failed, call.attributes["error.type"]), (True, "500"))
        expect((process.failed, process.attributes["error.type"]), (True, "500"))
        expect(named(events["2"], "POST").attributes["error.type"], "lost")
        decisions = [span.attributes["hapax.decision"] for span in events["3"] if span.name == "idempotency_check"]
        expect(sorted(decisions), ["acquired", "mismatch"])


def test_what_is_no_traceparent_begins_a_trace(cli):
    """Strictly by its form; and then its tracestate goes, too."""
    wrong = [f"00-{TRACE}-{SPAN}-0", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE.upper()}-{SPAN}-01"]
    with collector() as sink, upstream() as service, serve(cli, service.url, config=sink.config()) as daemon:
        for number, text in enumerate(wrong):
            post(daemon.gateway, str(number), traceparent=text, tracestate="a=1")
        post(daemon.gateway, "state", traceparent=f"00-{TRACE}-{SPAN}-01", tracestate="A=1")
        found = sink.events(len(wrong) + 1)
        for number, text in enumerate(wrong):
            process = named(found[str(number)], "process_cloud_event")
            headers = service.requests[number][1]
            expect((process.parent, "tracestate" in headers), (None, False), text)
            expect(headers["traceparent"][:36], f"00-{process.trace}-", text)
            assert process.trace != TRACE, text
        expect(named(found["state"], "process_cloud_event").parent, SPAN)
        assert "tracestate" not in service.requests[-1][1]


def test_who_is_sampled(cli):
    """The sender decides; of those who begin here the share does, and 0 is none. HUP changes it."""
    with collector() as sink, upstream() as service:
        with serve(cli, service.url, config=sink.config('  sample: "0"\n')) as daemon:
            post(daemon.gateway, "unsampled", traceparent=f"00-{TRACE}-{SPAN}-00", tracestate="a=1")
            post(daemon.gateway, "none")
            post(daemon.gateway, "sampled", traceparent=f"00-{TRACE}-{SPAN}-01")
            expect(service.requests[0][1]["traceparent"], f"00-{TRACE}-{SPAN}-00")
            expect(service.requests[0][1]["tracestate"], "a=1")
            expect(service.requests[1][1]["traceparent"][-3:], "-02")
            expect(list(sink.events(1)), ["sampled"])
            daemon.config.write_text(sink.config('  sample: "1"\n'), encoding="utf-8")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(lambda line: "configuration reloaded" in line)
            post(daemon.gateway, "now")
            expect(list(sink.events(2)), ["sampled", "now"])


def test_events_of_a_batch(cli):
    with collector() as sink, demo(cli) as service, serve(cli, service.url, config=sink.config()) as daemon:
        parent = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        expect(post_batch(daemon.gateway, [structured("1"), structured("2"), structured("1")], **parent).status, 200)
        found = sink.events(3)
        processes = [span for event in ("1", "2") for span in found[event] if span.name == "process_cloud_event"]
        expect({(span.trace, span.parent) for span in processes}, {(TRACE, SPAN)})
        runs = [span for span in processes if span.attributes["hapax.decision"] == "acquired"]
        replay = [span for span in processes if span.attributes["hapax.decision"] == "replay"]
        expect((len(runs), len(replay)), (2, 1))
        expect(replay[0].links, [(TRACE, runs[0].id)])


def test_a_collector_that_answers_later(cli):
    """503 is not the end: the same spans are sent again; 400 is."""
    path = cli.folder / "headers"
    path.write_text("# for the collector\nAuthorization: Bearer s3cret\n\nX-Tenant:acme\n", encoding="utf-8")
    more = f'  headers_file: "{path}"\n  service_name: shop\n'
    with collector(answers=[503, 200, 400]) as sink, demo(cli) as service:
        with serve(cli, service.url, config=sink.config(more)) as daemon:
            post(daemon.gateway, "1")
            sink.events(1)
            expect([span.id for span in sink.spans(503)], [span.id for span in sink.spans(200)])
            headers = sink.requests[0][1]
            expect((headers["Authorization"], headers["X-Tenant"]), ("Bearer s3cret", "acme"))
            expect_in('"shop"', json.dumps(sink.requests[0][2]))
            post(daemon.gateway, "2")
            line = daemon.wait_for(lambda text: text if "spans dropped" in text else None)
            expect_in("status 400", line)
            expect(metrics(daemon)['hapax_trace_dropped_spans_total{reason="not_taken"}'], 3)
        assert not any("s3cret" in line for line in daemon.lines)


def test_a_collector_that_does_not_answer(cli):
    """Events are not held up, what there is no room for is dropped and counted, and so is the end of the daemon."""
    events = [structured(str(number)) for number in range(1000)]
    with collector(held=True) as sink, demo(cli) as service:
        with serve(cli, service.url, config=sink.config()) as daemon:
            for _ in range(3):
                expect(post_batch(daemon.gateway, events).status, 200)
            expect(service.count()["executed"], 1000)
            assert metrics(daemon)['hapax_trace_dropped_spans_total{reason="queue_full"}'] >= 900
            expect(post(daemon.gateway, "after").status, 200)
            expect(request(daemon.admin, "GET", "/readyz").status, 200)


def test_a_collector_that_is_not_there(cli):
    with demo(cli) as service, serve(cli, service.url, config=f'traces: {{endpoint: "{dead_address()}"}}\n') as daemon:
        expect(post(daemon.gateway, "1").decision, "acquired")
        expect(post(daemon.gateway, "1").decision, "replay")
        expect(metrics(daemon)["hapax_trace_exported_spans_total"], 0)
    assert any("spans dropped" in line for line in daemon.lines), daemon.lines


def test_headers_that_cannot_be_sent(cli):
    path = cli.folder / "headers"
    for text, word in (("no colon\n", "headers_file"), ("Content-Length: 3\n", "Content-Length"), ("a b: c\n", "a b")):
        path.write_text(text, encoding="utf-8")
        config = cli.folder / "bad.yaml"
        config.write_text(f'traces: {{endpoint: "http://127.0.0.1:1", headers_file: "{path}"}}\n', encoding="utf-8")
        arguments = ["--store", "memory:", "--gateway", "127.0.0.1:0", "--admin", "off", "--upstream", "http://127.0.0.1:1"]
        result = cli.run("serve", "--config", str(config), *arguments, code=None)
        assert result.code not in (0, None), text
        expect_in(word, result.err, text)
