"""TLS at every door: real clients, certificates of clients, reloads, cut connections, slow handshakes."""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading

from certificates import Authority, openssl
from daemon import EVENT, dead_address, get, log_line, post, request, serve, upstream
from harness import PROGRAM, TIMEOUT_SECONDS, Skip, expect, expect_in, proof, scaled, until
from redis_wire import pack


def tls_config(certificate, authority=None, client_auth="off", more="", rest=""):
    client = f", client_ca: {authority.path}, client_auth: {client_auth}" if authority else ""
    return f"tls: {{certificate: {certificate.path}, key: {certificate.key}{client}{more}}}\n{rest}"


def tool(name):
    if shutil.which(name) is None:
        raise Skip(f"{name} is not installed (tools/setup test)")
    return name


def curl(authority, *arguments, code=0):
    command = [tool("curl"), "--silent", "--show-error", "--max-time", str(TIMEOUT_SECONDS), "--cacert", str(authority.path)]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, check=False)
    if code is not None:
        expect(done.returncode, code, f"curl {arguments}: {done.stderr.decode()}")
    return done


def url(to, path="/"):
    return f"https://localhost:{to[1]}{path}"


def connect(authority, to, client=None, **options):
    plain = socket.create_connection(to, timeout=TIMEOUT_SECONDS)
    try:
        return authority.context(client, **options).wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
    except BaseException:
        plain.close()
        raise


def https(authority, to, client=None):
    return http.client.HTTPSConnection("127.0.0.1", to[1], timeout=TIMEOUT_SECONDS, context=authority.context(client))


def send_event(connection, event_id, path="/", body=b"{}"):
    return request(None, "POST", path, {**EVENT, "ce-id": event_id}, body, connection)


def is_refused(authority, to, client=None):
    """With TLS 1.3 a client learns it when it reads."""
    try:
        with connect(authority, to, client) as connection:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(4096) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def test_curl_speaks_to_gateway_and_admin(cli):
    authority = Authority(cli.folder)
    server = authority.issue("server")
    fields = [word for name, value in EVENT.items() for word in ("-H", f"{name}: {value}")]
    with upstream() as service, serve(cli, service.url, config=tls_config(server)) as daemon:
        for number, version in enumerate((["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"])):
            sent = ["-H", f"ce-id: {number}", *fields, "-d", "{}", url(daemon.gateway)]
            for _ in range(2):
                expect(curl(authority, *version, *sent).stdout, b"run %d" % (number + 1))
            expect_in(b'"status"', curl(authority, *version, "-H", "Accept: application/json", url(daemon.admin, "/livez")).stdout)
        expect(len(service.requests), 2)
        # A request without TLS is not read; its sender learns why.
        with socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := plain.recv(4096):
                    answer += piece
            expect(answer.split(b"\r\n")[0], b"HTTP/1.1 400 Bad Request")
            expect_in(b"urn:hapax:problem:tls-required", answer)
        expect(len(service.requests), 2)
        curl(Authority(cli.folder, "other"), url(daemon.gateway), code=60)


def test_versions_and_ciphers(cli):
    authority = Authority(cli.folder)
    with serve(cli, dead_address(), config=tls_config(authority.issue("server"))) as daemon:
        base = ("s_client", "-connect", f"127.0.0.1:{daemon.gateway[1]}", "-CAfile", authority.path, "-brief")
        for options in (("-tls1_2",), ("-tls1_3",), ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384")):
            openssl(*base, *options)
        weak = "@SECLEVEL=0"
        for bad in (("-tls1_1", "-cipher", "ALL" + weak), ("-tls1", "-cipher", "ALL" + weak)):
            expect_in("alert", openssl(*base, *bad, code=1).stderr.decode().lower(), str(bad))
        for bad in ("ECDHE-ECDSA-AES128-SHA", "AES128-SHA", "NULL", "AECDH"):
            expect_in("alert", openssl(*base, "-tls1_2", "-cipher", bad + ":" + weak, code=1).stderr.decode().lower(), bad)


def test_alpn(cli):
    authority = Authority(cli.folder)

    def chosen(to, *offered):
        context = authority.context()
        context.set_alpn_protocols(offered)
        with socket.create_connection(to, timeout=TIMEOUT_SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                return connection.selected_alpn_protocol()

    with serve(cli, dead_address(), "--resp", "127.0.0.1:0", config=tls_config(authority.issue("server"))) as daemon:
        for door in (daemon.gateway, daemon.admin):
            expect(chosen(door, "h2", "http/1.1"), "http/1.1")
            try:
                chosen(door, "h2")
                raise AssertionError("h2 was agreed upon")
            except ssl.SSLError:
                pass
        with connect(authority, daemon.gateway) as connection:
            expect(connection.selected_alpn_protocol(), None)


def resp_address(daemon):
    host, _, port = daemon.ready["resp"].rpartition(":")
    return host, int(port)


def test_redis_cli_speaks_to_the_redis_door(cli):
    authority = Authority(cli.folder)
    password = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
    rest = f"resp:\n  users:\n    - {{name: default, password_sha256: {password}}}\n"
    config = tls_config(authority.issue("server"), rest=rest)
    with serve(cli, None, "--gateway", "off", "--resp", "127.0.0.1:0", config=config) as daemon:
        to = resp_address(daemon)

        def redis(*words, auth="password"):
            command = [tool("redis-cli"), "-h", "localhost", "-p", str(to[1]), "--tls", "--cacert", str(authority.path)]
            env = {**os.environ, "REDISCLI_AUTH": auth}
            return subprocess.run([*command, *words], capture_output=True, check=False, env=env, timeout=TIMEOUT_SECONDS)

        if b"Unrecognized option" in redis("PING").stdout + redis("PING").stderr:
            raise Skip("redis-cli was built without TLS")
        expect(redis("SET", "k", "v", "NX", "EX", "60").stdout, b"OK\n")
        expect(redis("SET", "k", "v", "NX", "EX", "60").stdout, b"\n")
        expect(redis("GET", "k").stdout, b"v\n")
        expect_in(b"NOAUTH", redis("GET", "k", auth="wrong").stdout)
        # A pipeline of some size, and what it says.
        with connect(authority, to) as connection:
            count = 5000
            connection.sendall(pack("AUTH", "password") + b"".join(pack("SET", f"n{n}", "x" * 50, "NX") for n in range(count)))
            wanted = b"+OK\r\n" * (count + 1)
            answer = b""
            while len(answer) < len(wanted):
                answer += connection.recv(65536)
            expect(answer, wanted)


def test_clients_show_certificates(cli):
    authority, other = Authority(cli.folder), Authority(cli.folder, "other")
    server, good = authority.issue("server"), authority.issue("client")
    options = ("--resp", "127.0.0.1:0")
    config = tls_config(server, authority, "required", more=", admin: {client_auth: optional}")
    with upstream() as service, serve(cli, service.url, *options, config=config) as daemon:
        for door in (daemon.gateway, resp_address(daemon)):
            for bad in (None, other.issue(f"stranger-{door[1]}"), authority.expired(f"old-{door[1]}")):
                assert is_refused(authority, door, bad), (door, bad and bad.path)
        expect(send_event(https(authority, daemon.gateway, good), "1").status, 200)
        line = daemon.wait_for(lambda text: log_line(text) if "handshake failed" in text else None)
        expect((line["door"], line["level"]), ("gateway", "warn"))
        with connect(authority, resp_address(daemon), good) as connection:
            connection.sendall(pack("PING"))
            expect(connection.recv(100), b"+PONG\r\n")
        # Who is only asked may come without, but not with a bad one.
        expect(request(None, "GET", "/livez", connection=https(authority, daemon.admin)).status, 200)
        expect(request(None, "GET", "/livez", connection=https(authority, daemon.admin, good)).status, 200)
        assert is_refused(authority, daemon.admin, other.issue("stranger"))
        expect(len(service.requests), 1)


def test_a_certificate_is_an_identity(cli):
    authority = Authority(cli.folder)
    by_name = authority.issue("reader", subject="/O=Acme, Inc/CN=reader")
    by_print, unnamed = authority.issue("writer"), authority.issue("unnamed")
    made = cli.run("config", "token", "-o", "json", "--name", "t").json
    rows = [
        {"name": "r", "subject": "CN=reader,O=Acme\\, Inc", "role": "read"},
        {"name": "w", "fingerprint": by_print.fingerprint, "role": "write"},
    ]
    rest = f"auth: {{certificates: {json.dumps(rows)}, tokens: [{json.dumps(made['row'])}]}}\n"
    config = tls_config(authority.issue("server"), authority, "optional", rest=rest)
    with serve(cli, None, "--gateway", "off", config=config) as daemon:

        def status(client, **headers):
            return request(None, "GET", "/metrics", headers, connection=https(authority, daemon.admin, client)).status

        expect([status(client) for client in (by_name, by_print, unnamed, None)], [200, 200, 401, 401])
        bearer = {"Authorization": "Bearer " + made["token"]}
        expect([status(client, **bearer) for client in (unnamed, None)], [200, 200])
        # What was said in words counts before it.
        expect(status(by_name, Authorization="Bearer wrong"), 401)


def served(authority, to):
    with connect(authority, to) as connection:
        return connection.getpeercert(binary_form=True)


def hang_up(daemon, word):
    daemon.process.send_signal(signal.SIGHUP)
    return daemon.wait_for(lambda text: log_line(text) if word in text else None)


def replace(certificate, by):
    """As certbot does: the files have new contents."""
    for old, new in ((certificate.path, by.path), (certificate.key, by.key)):
        old.write_bytes(new.read_bytes())


def test_a_reload_takes_new_certificates(cli):
    authority = Authority(cli.folder)
    first, second = authority.issue("first"), authority.issue("second")
    before = first.der
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=tls_config(first)) as daemon:
        doors = (daemon.gateway, daemon.admin, resp_address(daemon))
        expect([served(authority, door) for door in doors], [before] * 3)
        kept, redis = https(authority, daemon.gateway), connect(authority, resp_address(daemon))
        expect(send_event(kept, "1").status, 200)
        port = kept.sock.getsockname()[1]
        replace(first, second)
        hang_up(daemon, "configuration reloaded")
        expect([served(authority, door) for door in doors], [second.der] * 3)
        # Who was there goes on.
        expect(send_event(kept, "2").status, 200)
        expect(kept.sock.getsockname()[1], port)
        redis.sendall(pack("PING"))
        expect(redis.recv(100), b"+PONG\r\n")
        redis.close()
        kept.close()


def test_a_reload_with_broken_files_keeps_the_old(cli):
    authority = Authority(cli.folder)
    server, another = authority.issue("server"), authority.issue("another")
    certificate, key, before = server.path.read_bytes(), server.key.read_bytes(), server.der
    breaks = [
        (lambda: server.path.write_text("no certificate"), "could not read a certificate"),
        (lambda: server.key.write_bytes(another.key.read_bytes()), "does not belong to the certificate"),
        (lambda: server.key.write_bytes(key[: len(key) // 2]), "could not read a private key"),
        (lambda: server.path.unlink(), "No such file"),
    ]
    with upstream() as service, serve(cli, service.url, config=tls_config(server)) as daemon:
        for number, (spoil, word) in enumerate(breaks):
            spoil()
            line = hang_up(daemon, "configuration rejected")
            expect_in(word, line["error"])
            expect_in("listen.gateway", line["error"])
            expect(served(authority, daemon.gateway), before)
            expect(send_event(https(authority, daemon.gateway), str(number)).status, 200)
            server.path.write_bytes(certificate)
            server.key.write_bytes(key)
        hang_up(daemon, "configuration reloaded")
        expect(served(authority, daemon.gateway), before)


def test_a_reload_opens_no_door_to_strangers(cli):
    """What a door needs to be open cannot be taken away from it, nor can TLS be switched off in passing."""
    authority = Authority(cli.folder)
    server = authority.issue("server")
    with serve(cli, dead_address(), config=tls_config(server)) as daemon:
        daemon.config.write_text("log: {level: info}\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.wait_for(lambda text: log_line(text) if "TLS of this listener changes" in text else None)
        expect(line["door"], "gateway")
        daemon.wait_for(lambda text: "configuration reloaded" in text)
        expect(served(authority, daemon.gateway), server.der)


def test_files_that_cannot_be_used(cli):
    """Neither by the daemon nor by the check."""
    authority = Authority(cli.folder)
    server, another = authority.issue("server"), authority.issue("another")
    locked = cli.folder / "locked.key"
    openssl("ec", "-in", server.key, "-aes128", "-passout", "pass:x", "-out", locked)
    empty = cli.folder / "empty.pem"
    empty.touch()
    cases = [
        (server.path, another.key, "", "does not belong to the certificate"),
        (server.path, locked, "", "could not read a private key"),
        (cli.folder / "nothing", server.key, "", "No such file"),
        (empty, server.key, "", "could not read a certificate"),
        (server.path, empty, "", "could not read a private key"),
        (server.path, server.key, f", client_ca: {empty}, client_auth: required", "could not read certificate authorities"),
        (server.path, "''", "", "certificate is set, but key is not"),
        (server.path, server.key, ", client_auth: required", "client_auth needs client_ca"),
        (server.path, server.key, f", admin: {{key: {another.key}}}", "key is set, but certificate is not"),
    ]
    for certificate, key, more, word in cases:
        path = cli.folder / "hapax.yaml"
        path.write_text(f"tls: {{certificate: {certificate}, key: {key}{more}}}\n", encoding="utf-8")
        expect_in(word, cli.run("config", "check", str(path), code=78).err)
        started = cli.run("serve", "--config", str(path), "--store", "memory:", "--gateway", "off", "--admin", "127.0.0.1:0", code=78)
        expect_in(word, started.err)


def test_what_is_odd_is_said(cli):
    authority = Authority(cli.folder)
    server = authority.expired("server")
    server.key.chmod(0o644)
    with serve(cli, dead_address(), config=tls_config(server)) as daemon:
        until(lambda: "certificate has expired" in "".join(daemon.lines), "it is told")
        text = "".join(daemon.lines)
        expect_in("private key is readable by other users", text)
        # Once, though several doors have it.
        expect(text.count("has expired"), 1)
        curl(authority, url(daemon.gateway), code=60)


def test_large_messages(cli):
    """More than the kernel holds, both ways, by a client that reads late."""
    authority = Authority(cli.folder)
    size = 3_000_000
    config = tls_config(authority.issue("server"))
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        body = os.urandom(size)
        headers = {"Content-Type": "application/octet-stream"}
        connection = https(authority, daemon.gateway)
        connection.request("POST", f"/size/{size}", body, {**EVENT, **headers, "ce-id": "1"})
        service.arrived.acquire()
        expect(service.requests[0][2], body)
        expect(connection.getresponse().read(), b"x" * size)
        connection.close()


def test_the_end_is_told(cli):
    """close_notify, so that it does not look like a cut, behind a reply that ends with its connection."""
    authority = Authority(cli.folder)
    with upstream() as service, serve(cli, service.url, config=tls_config(authority.issue("server"))) as daemon:
        for size in (10, 3_000_000):
            head = f"POST /size/{size} HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\nce-id: {size}\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in EVENT.items())
            with connect(authority, daemon.gateway) as connection:
                connection.sendall(head.encode() + b"\r\n{}")
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
                assert answer.endswith(b"x" * size), answer[:200]


def test_a_body_that_was_cut_is_no_body(cli):
    """FIN without close_notify."""
    authority = Authority(cli.folder)
    with upstream() as service, serve(cli, service.url, config=tls_config(authority.issue("server"))) as daemon:
        fields = "".join(f"{name}: {value}\r\n" for name, value in EVENT.items())
        cuts = (f"Content-Length: 10\r\n{fields}\r\n12345", f"Transfer-Encoding: chunked\r\n{fields}\r\n5\r\n12345\r\n")
        for number, rest in enumerate(cuts):
            connection = connect(authority, daemon.gateway)
            connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nce-id: cut-{number}\r\n{rest}".encode())
            plain = socket.socket(fileno=connection.detach())
            plain.settimeout(TIMEOUT_SECONDS)
            plain.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while plain.recv(4096):
                    pass
            plain.close()
        expect(send_event(https(authority, daemon.gateway), "whole").status, 200)
        expect([headers["ce-id"] for _, headers, _ in service.requests], ["whole"])


class CutUpstream:
    """Answers over TLS until its connection ends: properly, or cut off."""

    def __init__(self, certificate):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate.path, certificate.key)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.is_cut = True
        self.count = 0
        threading.Thread(target=self.run, daemon=True).start()
        self.url = f"https://localhost:{self.socket.getsockname()[1]}"

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self.socket.accept()
                with contextlib.suppress(OSError):
                    self.answer(self.context.wrap_socket(plain, server_side=True))

    def answer(self, connection):
        data = b""
        while not data.endswith(b"{}"):
            data += connection.recv(65536)
        self.count += 1
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it")
        if not self.is_cut:
            connection.unwrap()
        with socket.socket(fileno=connection.detach()) as plain:
            plain.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                plain.recv(4096)


def test_an_answer_that_was_cut_is_lost(cli):
    """An upstream whose answer ends with its connection: without close_notify its end is unknown."""
    authority = Authority(cli.folder)
    service = CutUpstream(authority.issue("upstream"))
    env = cli.env(HAPAX_STORE=None, SSL_CERT_FILE=str(authority.path))
    with serve(cli, service.url, config="defaults: {on_lapse: park}\n", env=env) as daemon:
        answer = post(daemon.gateway, "cut", b"{}")
        assert answer.status >= 500 and b"all of it" not in answer.body, (answer.status, answer.body)
        expect(post(daemon.gateway, "cut", b"{}").decision, "parked")
        service.is_cut = False
        expect(post(daemon.gateway, "whole", b"{}").body, b"all of it")
        expect(post(daemon.gateway, "whole", b"{}").decision, "replay")
        expect(service.count, 2)
    service.socket.close()


# The first bytes of a ClientHello: a record that says that 512 bytes follow.
BEGUN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def test_slow_handshakes_are_dropped(cli):
    authority = Authority(cli.folder)
    config = tls_config(authority.issue("server"), more=", handshake_timeout: 300ms")
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon:
        kept = https(authority, daemon.gateway)
        expect(send_event(kept, "1").status, 200)
        for door in (daemon.gateway, daemon.admin, resp_address(daemon)):
            for begun in (b"", BEGUN):
                with socket.create_connection(door, timeout=TIMEOUT_SECONDS) as slow:
                    slow.sendall(begun)
                    with contextlib.suppress(ConnectionResetError):
                        expect(slow.recv(100), b"", "it is closed")
        # One byte at a time does not count as progress.
        with socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS) as slow:

            def drip():
                try:
                    slow.sendall(b"\0")
                    return False
                except OSError:
                    return True

            slow.sendall(BEGUN)
            until(drip, "it is dropped")
        # That time is for the handshake alone.
        expect(send_event(kept, "2").status, 200)
        kept.close()


def test_half_open_connections_hold_nobody_up(cli):
    authority = Authority(cli.folder)
    count = scaled(5000, 200)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = limits[1] if limits[1] != resource.RLIM_INFINITY else 1 << 20
    if room < 2 * count + 200:
        raise Skip(f"no more than {room} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(room, 4 * count + 1000), limits[1]))
    config = tls_config(authority.issue("server"), more=", handshake_timeout: 1h")
    with proof("half-open TLS connections", count), upstream() as service, serve(cli, service.url, config=config) as daemon:
        kept = https(authority, daemon.gateway)
        expect(send_event(kept, "kept").status, 200)
        held = []
        for number in range(count):
            held.append(socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS))
            if number % 2:
                held[-1].sendall(BEGUN)
        for number in range(20):
            expect(send_event(kept, f"kept-{number}").status, 200)
            fresh = https(authority, daemon.gateway)
            expect(send_event(fresh, f"fresh-{number}").status, 200)
            fresh.close()
        text = request(None, "GET", "/metrics", connection=https(authority, daemon.admin)).body.decode()
        expect_in(f'hapax_connections{{door="gateway"}} {count + 1}', text.replace(".0\n", "\n"))
        kept.close()
        for connection in held:
            connection.close()


def test_a_public_door_has_to_know_who_comes(cli):
    """Nothing is opened: it is refused before."""
    for door in ("resp", "admin"):
        arguments = ["--store", "memory:", "--gateway", "off", "--admin", "off", "--resp", "off", f"--{door}", "0.0.0.0:0"]
        said = cli.run("serve", *arguments, code=78).err
        expect_in(f"listen.{door}: refusing public address 0.0.0.0:0", said)
        expect_in("resp.users" if door == "resp" else "auth.tokens", said)


def test_a_reload_takes_nothing_from_a_public_door(cli):
    """Open to others by its tokens: it cannot lose them. In a network of its own, where there are no others."""
    alone = [tool("unshare"), "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("a network of its own cannot be had here")
    row = json.dumps(cli.run("config", "token", "-o", "json").json["row"])
    path = cli.folder / "hapax.yaml"
    path.write_text(f"auth: {{tokens: [{row}]}}\n", encoding="utf-8")
    doors = ["--gateway", "off", "--resp", "off", "--admin", "0.0.0.0:0"]
    command = [*alone, str(PROGRAM), "serve", "--store", "memory:", "--config", str(path), *doors]
    with subprocess.Popen(command, env=cli.env(HAPAX_STORE=None), stderr=subprocess.PIPE, text=True) as daemon:
        try:
            said = iter(daemon.stderr.readline, "")
            warning = log_line(next(line for line in said if "listener is public" in line))
            expect((warning["door"], warning["listen"]), ("admin", "0.0.0.0:0"))
            assert any(log_line(line).get("msg") == "ready" for line in said)
            path.write_text("auth: {tokens: []}\n", encoding="utf-8")
            daemon.send_signal(signal.SIGHUP)
            expect_in("without authentication", next(line for line in said if "configuration" in line))
        finally:
            daemon.kill()


def test_each_door_as_it_is_told(cli):
    """TLS for some, a certificate of its own for another, none on a unix socket."""
    authority = Authority(cli.folder)
    server, own = authority.issue("server"), authority.issue("own")
    more = f", admin: {{enabled: false}}, resp: {{certificate: {own.path}, key: {own.key}}}"
    with serve(cli, dead_address(), "--resp", "127.0.0.1:0", config=tls_config(server, more=more)) as daemon:
        expect(get(daemon.admin, "/livez").status, 200)
        expect(served(authority, daemon.gateway), server.der)
        expect(served(authority, resp_address(daemon)), own.der)
    path = cli.folder / "admin.sock"
    with serve(cli, dead_address(), "--admin", f"unix:{path}", config=tls_config(server)) as daemon:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
            expect_in(b"200 OK", connection.recv(4096))
