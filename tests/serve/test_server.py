"""--server: commands that speak to a daemon, over TLS and over a path, and what they say when it is lost."""

import contextlib
import os
import re
import signal
import socket
import threading

from certificates import Authority
from daemon import get, serve
from harness import TIMEOUT_SECONDS, expect, expect_in, until
from run_hosts import Log, again, kill_both, start
from test_api import AUTH, NOWHERE, TOKENS


def auth_file(cli, role="admin"):
    path = cli.folder / f"token-{role}"
    path.write_text(TOKENS[role] + "\n")
    return str(path)


def exercise(cli, *there):
    """A claim from its begin to its end, a listing, a run, and what is wrong."""
    expect(cli.run("check", "a", *there).out, "first\n")
    cli.run("check", "a", *there, code=1)
    token = cli.run("claim", "b", "-o", "json", *there).json["token"]
    cli.run("claim", "b", *there, code=75)
    cli.run("complete", "b", "--token", str(token), *there)
    expect(cli.run("lookup", "b", "-o", "json", *there).json["state"], "done")
    expect({line["key"] for line in cli.run("keys", "-o", "json", *there).lines}, {"a", "b"})
    command = ["run", "--key", "r", *there, "--", "sh", "-c", f"echo ran >> {cli.folder}/runs; echo out"]
    expect([cli.run(*command).out, cli.run(*command).out], ["out\n", "out\n"])
    expect((cli.folder / "runs").read_text(), "ran\n")
    cli.run("forget", "b", *there)


def test_over_a_path(cli):
    """http+unix: as the admin door of a service has it."""
    path = cli.folder / "admin.sock"
    with serve(cli, NOWHERE, "--admin", f"unix:{path}", config=AUTH) as _:
        exercise(cli, "--server", f"http+unix:{path}", "--auth-file", auth_file(cli))
        cli.run("keys", "--server", f"http+unix:{path}", code=None).says("401")
        cli.run("check", "d", "--server", f"http+unix:{path}", code=69).says("token")
    cli.run("check", "d", "--server", f"http+unix:{path}", code=69)


def asked(daemon):
    """How many operations the store was asked for, by name."""
    page = get(daemon.admin, "/metrics", Authorization=f"Bearer {TOKENS['read']}").body.decode()
    found = re.findall(r'^hapax_store_operations_total\{operation="(\w+)",result="\w+"\} (\d+)$', page, re.MULTILINE)
    return {operation: int(count) for operation, count in found if count != "0"}


def test_a_run_asks_the_store_three_times(cli):
    """Look, claim, complete; a duplicate looks and claims. One more look is the store's own, which is opened."""
    with serve(cli, NOWHERE, config=AUTH) as daemon:
        there = ("--server", f"http://127.0.0.1:{daemon.admin[1]}", "--auth-file", auth_file(cli, "write"))
        cli.run("run", "--key", "r", *there, "--", "true")
        expect(asked(daemon), {"lookup": 1 + 1, "claim": 1, "complete": 1})
        cli.run("run", "--key", "r", *there, "--", "true")
        expect(asked(daemon), {"lookup": 2 + 2, "claim": 2, "complete": 1})
        cli.run("run", "--key", "f", *there, "--", "false", code=1)
        expect(asked(daemon), {"lookup": 3 + 3, "claim": 3, "complete": 1, "release": 1})


def test_what_needs_the_holders_token(cli):
    """A claim does not return it; a client that ends another's claim reads it from the record, with the role write."""
    with serve(cli, NOWHERE, config=AUTH) as daemon:
        url = f"http://127.0.0.1:{daemon.admin[1]}"
        there = ("--server", url, "--auth-file", auth_file(cli, "write"))
        # run takes over from one that died on this host: by the free lock, not after the lease.
        log = Log(cli)
        kill_both(start(cli, "host", *there), log.wait_for("begin", 1))
        held = cli.run("lookup", "k", "-o", "json", *there).json
        expect(held["state"], "claimed")
        expect("token" in cli.run("claim", "k", "-o", "json", *there, code=75).json, False)
        hold = log.let_go()
        again(cli, "host", *there)
        os.close(hold)
        found = cli.run("lookup", "k", "-o", "json", *there).json
        expect((found["state"], found["attempt"], found["token"] > held["token"]), ("done", 2, True))
        for way, state in (("--done", "done"), ("--retry", "failed")):
            key = f"p{way}"
            cli.run("park", key, "--token", cli.run("claim", key, *there).out.strip(), *there)
            cli.run("resolve", key, way, *there)
            expect(cli.run("lookup", key, "-o", "json", *there).json["state"], state)
        # A copy has the token of a claim that lives: its holder goes on there.
        token = cli.run("claim", "lives", "--lease", "1h", *there).out.strip()
        copy = f"file:{cli.folder}/copy"
        cli.run("store", "copy", f"{url}?auth_file={auth_file(cli, 'write')}", copy)
        cli.run("complete", "lives", "--token", token, "--store", copy)
        expect(cli.run("lookup", "k", "-o", "json", "--store", copy).json["token"], found["token"])


def test_an_import_into_a_running_daemon(cli):
    """B9: its keys are duplicates at once, and what the daemon did in the meantime stays."""
    rows = "".join(f"k-{i},{'x' * (i % 7)},2035-01-01T00:00:00Z\n" for i in range(2000))
    with serve(cli, NOWHERE, config=AUTH) as daemon:
        there = ("--server", f"http://127.0.0.1:{daemon.admin[1]}", "--auth-file", auth_file(cli))
        cli.run("claim", "k-5", *there)
        command = ("store", "import", "--from", "-", "-o", "json", *there)
        for option, new, existing in ((), 1999, 0), (("--write",), 1999, 0), (("--write",), 0, 1999):
            answer = cli.run(*command, *option, input=("key,result,expires_at\n" + rows).encode(), code=1).json
            expect((answer["new"], answer["existing"], answer["conflicts"]), (new, existing, 1))
        cli.run("check", "k-7", *there, code=1)
        expect(cli.run("claim", "k-8", "-o", "json", *there, code=1).json["result"]["body"], "x")
        expect(cli.run("lookup", "k-8", "-o", "json", *there).json["expires_at"][:10], "2035-01-01")


def test_the_token_of_stores_that_operands_name(cli):
    """--auth-file, and its variable, are for both ends of a copy; a URL that names a file of its own keeps it."""
    with serve(cli, NOWHERE, config=AUTH) as daemon:
        url = f"http://127.0.0.1:{daemon.admin[1]}"
        token, wrong = auth_file(cli), cli.folder / "token-wrong"
        wrong.write_text("no-such-token\n")
        cli.run("check", "k", "--server", url, "--auth-file", token)
        for number, (source, options, env) in enumerate(
            (
                (url, ("--auth-file", token), {}),
                (url, (), {"HAPAX_AUTH_FILE": token}),
                (url, ("--auth-file", token), {"HAPAX_AUTH_FILE": str(wrong)}),
                (f"{url}?auth_file={token}", ("--auth-file", str(wrong)), {"HAPAX_AUTH_FILE": str(wrong)}),
            )
        ):
            copy = f"sqlite:{cli.folder}/copy{number}.db"
            result = cli.run("store", "copy", source, copy, *options, env=env)
            expect((result.fields()["records"], result.err), ("1", ""))
            result = cli.run("store", "info", source, *options, env=env)
            expect((result.fields()["keys"].split()[0], result.err), ("1", ""))
        cli.run("store", "copy", url, f"sqlite:{cli.folder}/none.db", code=None).says("401")
        cli.run("store", "copy", url, f"sqlite:{cli.folder}/none.db", "--auth-file", str(wrong), code=None).says("401")
        # As the target: with the token it is seen that there are keys already.
        cli.run("store", "copy", f"sqlite:{cli.folder}/copy0.db", url, "--auth-file", token, code=None).says("has 1 keys")
        cli.run("store", "copy", f"sqlite:{cli.folder}/copy0.db", url, code=None).says("401")


def test_over_tls(cli):
    """https: the daemon is who it says, and so is who asks."""
    authority = Authority(cli.folder)
    server, client = authority.issue("server"), authority.issue("client")
    stranger = Authority(cli.folder, "other")
    config = f"tls: {{certificate: {server.path}, key: {server.key}, client_ca: {authority.path}, client_auth: optional}}\n"
    named = f"  certificates:\n    - {{name: worker, fingerprint: '{client.fingerprint}', role: admin}}\n"
    with serve(cli, NOWHERE, config=config + AUTH + named) as daemon:
        url = f"https://localhost:{daemon.admin[1]}"
        with_token = ("--auth-file", auth_file(cli))
        exercise(cli, "--server", f"{url}?ca={authority.path}", *with_token)
        # By its certificate, without a token.
        known = f"{url}?ca={authority.path}&cert={client.path}&key={client.key}"
        expect(cli.run("check", "c", "--server", known).out, "first\n")
        # A server that cannot be trusted gets nothing, least of all a token.
        for wrong, word in (
            (url, "certificate"),
            (f"{url}?ca={stranger.path}", "certificate"),
            (f"{url}?ca={cli.folder}/none.pem", "none.pem"),
            (f"http://localhost:{daemon.admin[1]}", ""),
        ):
            cli.run("check", "e", "--server", wrong, *with_token, code=None).says(word)
        cli.run("lookup", "e", "--server", known, code=1)


class Line:
    """Stands before a daemon; holds its answers back once told to, and cuts them off."""

    def __init__(self, to):
        self.to, self.is_held, self.has_held = to, False, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.pairs = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.to, timeout=TIMEOUT_SECONDS)
                self.pairs.append((client, server))
                threading.Thread(target=self.copy, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self.copy, args=(server, client, True), daemon=True).start()

    def copy(self, source, target, is_answer):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_answer and self.is_held:
                    self.has_held.set()
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self):
        for pair in self.pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def test_an_answer_that_is_lost(cli):
    """It was done, and the command says that the outcome is unknown; a repeat gets the answer."""
    with serve(cli, NOWHERE, config=AUTH) as daemon:
        line = Line(daemon.admin)
        there = ("--server", line.url, "--auth-file", auth_file(cli))
        direct = ("--server", f"http://127.0.0.1:{daemon.admin[1]}", "--auth-file", auth_file(cli))
        expect(cli.run("check", "a", *there).out, "first\n")
        pipe = cli.folder / "go"
        os.mkfifo(pipe)
        # The claim goes through, the completion's answer does not.
        script = f"touch {cli.folder}/begun; cat {pipe}; echo ran >> {cli.folder}/runs"
        result = []

        def run(place):
            return cli.run("run", "--key", "r", *place, "--", "sh", "-c", script, code=None)

        thread = threading.Thread(target=lambda: result.append(run(there)))
        thread.start()
        until((cli.folder / "begun").exists, "it runs")
        line.is_held = True
        pipe.write_text("go\n")
        until(line.has_held.is_set, "an answer is held back")
        line.is_held = False
        line.cut()
        thread.join()
        # What is repeated until it is known is known in the end: it ran once, and is done.
        expect(result[0].code, 0, result[0].err)
        expect(cli.run("lookup", "r", "-o", "json", *direct).json["state"], "done")
        expect(run(direct).code, 0)
        expect((cli.folder / "runs").read_text(), "ran\n")
        line.listener.close()


def test_a_daemon_that_is_killed(cli):
    """Under a command that runs: its work is done, and it says that this is not known to be stored."""
    store = f"file:{cli.folder}/store"
    pipe = cli.folder / "go"
    os.mkfifo(pipe)
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(serve_killed(cli, store))
        there = ("--server", f"http://127.0.0.1:{daemon.admin[1]}", "--auth-file", auth_file(cli))
        command = ["run", "--key", "r", "--lease", "1s", *there, "--", "sh", "-c", f"touch {cli.folder}/begun; cat {pipe}; echo out"]
        result = []
        thread = threading.Thread(target=lambda: result.append(cli.run(*command, code=None)))
        thread.start()
        until((cli.folder / "begun").exists, "it runs")
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        pipe.write_text("go\n")
        thread.join()
        expect((result[0].code, result[0].out), (0, "go\nout\n"))
        expect_in("hapax", result[0].err)


@contextlib.contextmanager
def serve_killed(cli, store):
    """It does not come to its end by itself."""
    context = serve(cli, NOWHERE, config=AUTH, store=store)
    daemon = context.__enter__()
    try:
        yield daemon
    finally:
        daemon.kill()


@contextlib.contextmanager
def stranger(reply):
    """A server that is not hapax: it sends the same reply to every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run():
            while True:
                try:
                    peer = listener.accept()[0]
                except OSError:
                    return
                with peer:
                    peer.recv(65536)
                    peer.sendall(reply)

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def test_hints_name_what_repairs_the_connection(cli):
    """Each cause has its own hint, and none of them speaks of a disk."""
    authority = Authority(cli.folder)
    server = authority.issue("server")
    config = f"tls: {{certificate: {server.path}, key: {server.key}}}\n{AUTH}"
    with serve(cli, NOWHERE, "--gateway", "off", config=config) as daemon:
        port = daemon.admin[1]
        safe = f"https://localhost:{port}?ca={authority.path}"
        cases = [
            (("--server", f"https://localhost:{port}"), ("certificate", "?ca=FILE")),
            (("--server", f"http://localhost:{port}"), ("requires TLS", "https://")),
            (("--server", safe), ("the role", "read", "hint: name the file of an API token with --auth-file")),
            (("--server", safe, "--auth-file", auth_file(cli, "read")), ("needs an API token with the role 'write'",)),
        ]
        for there, parts in cases:
            cli.run("check", "k", *there, code=None).says(*parts)
        with_write = ("--server", safe, "--auth-file", auth_file(cli, "write"))
        cli.run("forget", "k", "--force", *with_write, code=69).says("needs an API token with the role 'admin'")
        cli.run("run", "-k", "k", *cases[3][0], "--", "true", code=125).says("the role 'write'")
        reply = get(daemon.admin, "/healthz")
        expect((reply.status, reply.json["type"]), (400, "urn:hapax:problem:tls-required"))
    with serve(cli, NOWHERE, "--gateway", "off") as daemon:
        port = daemon.admin[1]
        result = cli.run("check", "k", "--server", f"https://127.0.0.1:{port}", code=69)
        result.says("the server does not use TLS", "hint: if its listener has no TLS, use http://")
        for command in (["serve", "--gateway", "off", "--store", "memory:", "--admin"], ["demo-upstream", "--listen"]):
            result = cli.run(*command, f"127.0.0.1:{port}", code=69).says(f"127.0.0.1:{port}", "in use")
            assert "disk" not in result.err and "hapax gc" not in result.err, result.err
    result = cli.run("check", "k", "--server", f"http://127.0.0.1:{port}", code=69)
    result.says("Connection refused", "hint: check that 'hapax serve' is running")


def test_a_server_that_is_not_hapax(cli):
    page = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhome"
    for status, part in ((b"404 Not Found", "is not the admin listener of a hapax daemon: it answered 404"),
                         (b"200 OK", "not a hapax daemon")):
        with stranger(page % status) as url:
            for command in (["check", "k"], ["keys"]):
                cli.run(*command, "--server", url, code=None).says(part)


def test_a_hint_belongs_to_its_cause(cli):
    """A file that is too large has nothing to do with a disk that is full."""
    large = cli.folder / "large"
    large.write_text("x" * 5000)
    result = cli.run("check", "k", "--server", "http://127.0.0.1:1", "--auth-file", str(large), code=69)
    result.says("larger than 1023 bytes")
    assert "hint" not in result.err, result.err
