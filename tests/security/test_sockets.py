"""Sockets that a service manager hands over are as safe as those that hapax opens."""

import contextlib
import http.client
import signal
import socket

from activation import Activated, listening
from certificates import Authority
from daemon import upstream
from harness import TIMEOUT_SECONDS, expect, expect_in

DOORS = ("gateway", "proxy", "resp", "admin")


@contextlib.contextmanager
def activated(cli, sockets, config, *options):
    """A daemon with these sockets, named as in (name, socket); it is killed at the end."""
    path = cli.folder / "hapax.yaml"
    path.write_text(config, encoding="utf-8")
    with upstream() as service, contextlib.ExitStack() as held:
        for _, door in sockets:
            held.enter_context(contextlib.closing(door))
        daemon = Activated(cli, sockets, service.url, "--config", str(path), "--loops", "2", *options)
        held.callback(daemon.kill)
        yield daemon


def test_tls_of_sockets_that_are_handed_over(cli):
    """tls.client_auth: required counts there, too, wherever listen says that the door is; and after a reload."""
    authority = Authority(cli.folder)
    server, client = authority.issue("server"), authority.issue("client")
    tls = f"tls: {{certificate: {server.path}, key: {server.key}, client_ca: {authority.path}, client_auth: required}}\n"
    tls += "proxy: {routes: [{path: /, upstream: 'http://127.0.0.1:9', credential: none}]}\n"

    def status(to, certificate):
        context = authority.context(certificate)
        with contextlib.closing(http.client.HTTPSConnection(*to, timeout=TIMEOUT_SECONDS, context=context)) as connection:
            connection.request("GET", "/livez")
            return connection.getresponse().status

    for places in ({}, {name: f"unix:{cli.folder / name}" for name in DOORS}):
        sockets = [(name, listening()) for name in DOORS]
        options = [word for name, place in places.items() for word in (f"--{name}", place)]
        with activated(cli, sockets, tls, *options) as daemon:
            for _ in range(2):
                for name, door in sockets:
                    with socket.create_connection(door.getsockname(), timeout=TIMEOUT_SECONDS) as connection:
                        connection.sendall(b"PING\r\n" if name == "resp" else b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                        with contextlib.suppress(ConnectionResetError):
                            reply = connection.recv(4096)
                            # HTTP without TLS gets one answer, which is not from the listener behind TLS.
                            is_refused = reply.startswith(b"HTTP/1.1 400 ") and b"tls-required" in reply
                            assert is_refused or b"HTTP/" not in reply, f"{name} speaks without TLS"
                            assert b"PONG" not in reply, f"{name} speaks without TLS"
                admin = sockets[3][1].getsockname()
                expect(status(admin, client), 200)
                with contextlib.suppress(OSError):
                    raise AssertionError(f"{status(admin, None)} without a certificate")
                daemon.process.send_signal(signal.SIGHUP)
                daemon.wait_for(lambda line: "configuration reloaded" in line)


def test_every_socket_of_a_door_is_looked_at(cli):
    """One on loopback does not vouch for another that all machines reach."""
    for name, words in (("resp", "resp.users"), ("admin", "auth.tokens")):
        sockets = [(name, listening()), (name, listening(where=("0.0.0.0", 0)))]
        try:
            with activated(cli, sockets, ""):
                raise RuntimeError(f"{name} is open to everybody")
        except AssertionError as error:
            expect_in(words, str(error))


def test_a_reload_judges_what_a_socket_speaks(cli):
    """A socket that was handed over goes on as it began: what a new configuration says of TLS does not protect it."""
    authority = Authority(cli.folder)
    server = authority.issue("server")
    tls = f"tls: {{certificate: {server.path}, key: {server.key}, client_ca: {authority.path}, client_auth: required}}\n"
    token = "auth: {tokens: [{name: a, hash: 'sha256:" + "0" * 64 + "', role: read}]}\n"

    def reload(daemon, config):
        (cli.folder / "hapax.yaml").write_text(config, encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        return daemon.wait_for(lambda line: line if "configuration re" in line else None)

    def ask(door):
        with socket.create_connection(("127.0.0.1", door.getsockname()[1]), timeout=TIMEOUT_SECONDS) as connection:
            connection.sendall(b"GET /api/v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection.recv(4096)

    door = listening(where=("0.0.0.0", 0))
    with activated(cli, [("admin", door)], token) as daemon:
        expect_in(b" 401 ", ask(door))
        expect_in("auth.tokens", reload(daemon, tls))
        expect_in(b" 401 ", ask(door))
    # One that speaks TLS needs no token.
    door = listening(where=("0.0.0.0", 0))
    with activated(cli, [("admin", door)], tls) as daemon:
        expect_in("configuration reloaded", reload(daemon, tls))
        expect_in("auth.tokens", reload(daemon, tls.replace("client_auth: required", "client_auth: optional")))


def test_a_unix_socket_that_is_handed_over_speaks_no_tls(cli):
    """As one that hapax opens; its mode says who may connect."""
    authority = Authority(cli.folder)
    server = authority.issue("server")
    path = str(cli.folder / "resp.sock")
    tls = f"tls: {{certificate: {server.path}, key: {server.key}}}\n"
    with activated(cli, [("resp", listening(socket.AF_UNIX, path))], tls, "--resp", "127.0.0.1:0"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_SECONDS)
            connection.connect(path)
            connection.sendall(b"PING\r\n")
            expect(connection.recv(64), b"+PONG\r\n")
