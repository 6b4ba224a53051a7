"""Every door reports its decisions in one way: figures by event type (B11, A9), lines for duplicates and runs (E12, A10)."""

import re
import threading

import api
from daemon import log_line, metrics, post, serve, upstream
from harness import ROOT, expect, until
from redis_wire import Wire, door
from test_api import AUTH, TOKENS, Api
from test_resp import fields

DOORS = ("--proxy", "127.0.0.1:0", "--resp", "127.0.0.1:0")
CONFIG = AUTH + "log: {level: debug, rate: 1000}\nscopes:\n  - {scope: default/default, wait: 0s}\n"


def said(daemon, msg):
    return [found for found in map(log_line, list(daemon.lines)) if found.get("msg") == msg]


def figures(daemon):
    return metrics(daemon, Authorization=f"Bearer {TOKENS['read']}")


def events(daemon, kind):
    """By outcome, in the default group."""
    head = f'hapax_events_total{{event_type="{kind}",group="default",outcome="'
    return {name[len(head) : -2]: value for name, value in figures(daemon).items() if name.startswith(head)}


def test_events_of_the_gateway_are_counted_by_type(cli):
    with upstream() as service, serve(cli, service.url, config=CONFIG) as daemon:
        for kind, path in (("a", "/"), ("a", "/"), ("b", "/status/500"), ("b", "/status/400")):
            post(daemon.gateway, f"{kind}{path}", path=path, ce_type=kind)
        post(daemon.gateway, "a/", b'{"other":1}', ce_type="a").is_problem(422)
        expect(events(daemon, "a"), {"processed": 1, "duplicate": 1, "failed": 1})
        expect(events(daemon, "b"), {"processed": 0, "duplicate": 0, "failed": 2})
        expect(figures(daemon)['duplicate_events_skipped_total{event_type="a"}'], 1)


def test_a_repeated_end_counts_once(cli):
    """B11: a client that lost the answer repeats its call; the event was processed, or failed, once."""
    with upstream() as service, serve(cli, service.url, *DOORS, config=CONFIG) as daemon, Wire(door(daemon)) as wire:
        ask = Api(daemon)
        for key, end in (("a", "complete"), ("b", "release")):
            token = ask("POST", "/claim", {"key": key}).json["token"]
            told = [ask("POST", f"/{end}", {"key": key, "token": token}).json for _ in range(2)]
            expect([answer.get("repeated") for answer in told], [None, True])
        token = fields(wire.ask("HAPAX.CLAIM", "c"))["token"]
        expect([wire.ask("HAPAX.COMPLETE", "c", token) for _ in range(2)], [b"+OK\r\n"] * 2)
        expect(events(daemon, ""), {"processed": 2, "duplicate": 0, "failed": 1})
        runs = 'hapax_runs_total{tenant="default",group="default",outcome="ok"}'
        expect(figures(daemon)[runs], 2)


def test_every_door_tells_of_its_duplicates(cli):
    """Done before and in progress; the event's id is the job's."""
    with upstream() as service, serve(cli, service.url, *DOORS, config=CONFIG) as daemon:
        for _ in range(2):
            post(daemon.gateway, "1")
            api.post(daemon.proxy, "/", "p")
        ask = Api(daemon)
        for _ in range(2):
            ask("POST", "/check", {"key": "seen"})
            ask("POST", "/claim", {"key": "held"})
        with Wire(door(daemon)) as wire:
            wire.pipeline([["SET", "s", "v", "NX", "EX", "60"]] * 2 + [["HAPAX.CLAIM", "c"]] * 2)
        for _ in range(len(service.requests)):
            service.arrived.acquire()
        thread = threading.Thread(target=lambda: post(daemon.gateway, "2", path="/hold"))
        thread.start()
        service.arrived.acquire()
        post(daemon.gateway, "2").is_problem(409)
        service.release.set()
        thread.join()
        until(lambda: len(said(daemon, "duplicate job blocked")) == 7, "each is told")
        lines = said(daemon, "duplicate job blocked")
        told = sorted((line["door"], line["decision"]) for line in lines)
        both = [(name, decision) for name in ("admin", "gateway", "resp") for decision in ("in_progress", "replay")]
        expect(told, sorted([*both, ("proxy", "replay")]))
        expect({line.get("job_id") for line in lines if line["door"] == "gateway"}, {"1", "2"})
        for line in lines:
            assert line["idempotency_key"] and line["queue"] == "default/default", line
            assert line["decision"] == "in_progress" or line["first_seen"], line
        # Marks are done at once; no client has ended the claims.
        expect(events(daemon, ""), {"processed": 3, "duplicate": 5, "failed": 0})


def test_a_run_is_told_from_its_beginning_to_its_end(cli):
    with upstream() as service, serve(cli, service.url, *DOORS, config=CONFIG) as daemon:
        post(daemon.gateway, "1")
        post(daemon.gateway, "2", path="/status/500")
        until(lambda: said(daemon, "job failed"), "the end is told")
        received, (succeeded,), (failed,) = (said(daemon, f"job {what}") for what in ("received", "succeeded", "failed"))
        expect([(line["level"], line["job_id"], line["attempt"]) for line in received], [("debug", "1", 1), ("debug", "2", 1)])
        expect((succeeded["job_id"], succeeded["outcome"], succeeded["code"], "took" in succeeded), ("1", "ok", 200, True))
        expect((failed["job_id"], failed["outcome"], failed["error"]), ("2", "transient", "the upstream answered with status 500"))
        ask = Api(daemon)
        tokens = {key: ask("POST", "/claim", {"key": key}).json["token"] for key in ("done", "lost")}
        ask("POST", "/complete", {"key": "done", "token": tokens["done"]})
        ask("POST", "/release", {"key": "lost", "token": tokens["lost"], "error": "no"})
        until(lambda: len(said(daemon, "job failed")) == 2, "the end is told")
        expect((said(daemon, "job failed")[1]["error"], said(daemon, "job succeeded")[1]["idempotency_key"]), ("no", "done"))
        expect(events(daemon, ""), {"processed": 1, "duplicate": 0, "failed": 1})


def test_a_run_of_the_api_ends_with_its_event(cli):
    """B11: the type that the claim gave counts its end, too."""
    with upstream() as service, serve(cli, service.url, config=CONFIG) as daemon:
        ask = Api(daemon)
        event = {"id": "job-7", "type": "order.paid"}
        tokens = {key: ask("POST", "/claim", {"key": key, "event": event}).json["token"] for key in ("done", "lost", "kept")}
        ask("POST", "/claim", {"key": "done", "event": event})
        ask("POST", "/complete", {"key": "done", "token": tokens["done"]})
        ask("POST", "/release", {"key": "lost", "token": tokens["lost"]})
        ask("POST", "/park", {"key": "kept", "token": tokens["kept"]})
        expect(events(daemon, "order.paid"), {"processed": 1, "duplicate": 1, "failed": 2})
        expect(events(daemon, ""), {})
        until(lambda: len(said(daemon, "job failed")) == 2, "the end is told")
        ends = said(daemon, "job succeeded") + said(daemon, "job failed")
        expect([(line["idempotency_key"], line["job_id"], line["event_type"]) for line in ends], [(key, "job-7", "order.paid") for key in ("done", "lost", "kept")])


# Names that are not in the macro: of log_text() in serve.c, descriptors.c and state_log.c.
OTHER_FIELDS = {"setting", "scope", "gateway_connections", "proxy_connections", "resp_connections"}


def first_argument(text, at):
    """Up to its comma."""
    end, depth = at, 0
    while depth > 0 or text[end] != ",":
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end]


def test_every_log_field_is_documented(cli):
    """The list in src/observe/README.md has the fields that are used, and no other."""
    macro = re.compile(r"HX_LOGGER_(?:TEXT|BYTES|KEY|SIGNED|UNSIGNED|DURATION|TIME|SHARE|BOOLEAN)\(")
    used = set(OTHER_FIELDS)
    for path in (ROOT / "src").rglob("*.c"):
        text = path.read_text(encoding="utf-8")
        for found in macro.finditer(text):
            used |= set(re.findall(r'"([a-z_]+)"', first_argument(text, found.end())))
    section = (ROOT / "src/observe/README.md").read_text(encoding="utf-8").split("### Log fields\n")[1].split("\n#")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]
    expect(sorted(set(told)), sorted(told), "each stands once")
    expect((sorted(used - set(told)), sorted(set(told) - used)), ([], []), "used and not documented, documented and not used")
