"""What an operator has at hand: an Idempotency-Key, an answer, a store in use, a Redis that forgets. A4, E13, E18."""

import re
import subprocess

from daemon import dead_address, log_line, request, serve, upstream
from harness import expect, expect_in, expect_match
from redis_wire import real_redis

ROUTE = """
listen: {gateway: 'off'}
proxy:
  routes:
    - {path: /, tenant: acme, group: pay, outcomes: {ambiguous: [5xx]}}
"""


def charge(daemon, key, path="/status/500", credential="Bearer one"):
    headers = {"Idempotency-Key": key, "Authorization": credential, "Content-Type": "text/plain"}
    return request(daemon.proxy, "POST", path, headers, b"1")


def park(daemon, key, **more):
    """An answer that leaves the outcome unknown; then what a retry gets."""
    expect(charge(daemon, key, **more).status, 500)
    return charge(daemon, key, **more).is_problem(409, "parked")


def test_the_answer_for_a_parked_request_is_a_command(cli):
    """It names the key as `resolve` takes it, and running it lets the next request run."""
    store = f"sqlite:{cli.folder}/ledger.db"
    with upstream() as service, serve(cli, service.url, "--proxy", "127.0.0.1:0", store=store, config=ROUTE) as daemon:
        detail = park(daemon, "order-17").json["detail"]
        found = re.search(r"'hapax (resolve [0-9a-f]{32}/order-17 --scope acme/pay)' with --done if it happened, or with --retry", detail)
        assert found, detail
        cli.run(*found[1].split(), "--retry", env={"HAPAX_STORE": store})
        expect((charge(daemon, "order-17").status, len(service.requests)), (500, 2))
        # A key that a shell would take apart is not offered as a command.
        detail = park(daemon, '"it\'s $HOME"').json["detail"]
        assert "$HOME" not in detail and "hapax resolve" in detail, detail


def test_a_request_is_found_by_its_idempotency_key(cli):
    store = f"sqlite:{cli.folder}/ledger.db"
    env = {"HAPAX_STORE": store}
    with upstream() as service, serve(cli, service.url, "--proxy", "127.0.0.1:0", store=store, config=ROUTE) as daemon:
        park(daemon, "order-17")
        park(daemon, "twice")
        park(daemon, "twice", credential="Bearer two")
    # As it is sent, with or without quotes; a key that only ends like it is another one.
    cli.run("check", "0" * 31 + "/order-17", env=env)
    cli.run("check", "x/order-17", env=env)
    for text in ("order-17", '"order-17"'):
        answer = cli.run("lookup", text, "--idempotency-key", "-o", "json", env=env).json
        expect_match("^[0-9a-f]{32}/order-17$", answer["key"])
        expect((answer["scope"], answer["state"]), ("acme/pay", "parked"))
    cli.run("lookup", "order-18", "--idempotency-key", code=1, env=env).says("'order-18' has no record of the proxy")
    cli.run("lookup", "order-17", "--idempotency-key", "--scope", "other", code=1, env=env).says("no record of the proxy")
    cli.run("lookup", "a,b", "--idempotency-key", code=64, env=env).says("is not an Idempotency-Key")
    # Two clients sent it: a person chooses.
    result = cli.run("resolve", "twice", "--idempotency-key", "--done", code=1, env=env)
    result.says("'twice' has several records", "name one by its key and --scope")
    expect(result.err.count("/twice' in scope acme/pay is parked"), 2)
    cli.run("resolve", "order-17", "--idempotency-key", "--done", env=env)
    expect(cli.run("lookup", "order-17", "--idempotency-key", "-o", "json", env=env).json["state"], "done")


def test_a_store_in_use_names_its_daemon(cli):
    """By the URL that --server takes; a daemon without an API is named by its pid alone."""
    store = f"file:{cli.folder}/ledger"
    env = {"HAPAX_STORE": store}
    in_use = "is in use by process %d; a file: store has one owner"
    with serve(cli, dead_address(), store=store) as daemon:
        server = f"http://127.0.0.1:{daemon.admin[1]}"
        result = cli.run("lookup", "k", code=69, env=env)
        result.says(in_use % daemon.process.pid, f"hint: use the daemon that has it: --server {server}\n")
        cli.run("lookup", "k", "--server", server, code=1)
    # The URL of a daemon that has ended is not offered, nor kept by the next owner.
    cli.run("lookup", "k", code=1, env=env)
    expect_match("^[0-9]+\n$", (cli.folder / "ledger/LOCK").read_text())
    socket = f"{cli.folder}/admin.sock"
    with serve(cli, dead_address(), "--admin", f"unix:{socket}", store=store):
        cli.run("lookup", "k", code=69, env=env).says(f"hint: use the daemon that has it: --server http+unix:{socket}\n")
        # Bytes that are not a daemon's are not shown.
        for note in ("1\nhttp://a\x1b[2J\n", "1\nfile:///x\n", "1\nhttp://" + "a" * 200 + "\n", "1\nhttp://a\nb\n", "x\nhttp://a\n"):
            (cli.folder / "ledger/LOCK").write_text(note)
            result = cli.run("lookup", "k", code=69, env=env).says("in use by process unknown", "hint: ")
            assert "--server" not in result.err, result.err


def test_a_redis_that_forgets_is_told(cli):
    with real_redis(cli) as path:
        store = f"redis+unix:{path}"
        with serve(cli, dead_address(), store=store) as daemon:
            line = daemon.wait_for(lambda text: log_line(text) if "store may lose answers" in text else None)
            expect(line["level"], "warn")
            expect_in("nothing survives a restart", line["why"])
        result = cli.run("run", "--key", "k", "--", "true", env={"HAPAX_STORE": store})
        expect_match("^hapax: run: note: this Redis has no append-only file: nothing survives a restart[^\n]*; set appendonly yes\n$", result.err)
        expect(cli.run("run", "-q", "--key", "k", "--", "true", env={"HAPAX_STORE": store}).err, "")
        subprocess.run(["redis-cli", "-s", str(path), "config", "set", "appendonly", "yes"], check=True, capture_output=True)
        expect(cli.run("run", "--key", "l", "--", "true", env={"HAPAX_STORE": store}).err, "")
