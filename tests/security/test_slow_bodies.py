"""Bodies that arrive slowly, or take long to read, hold up only their sender."""

import contextlib
import random
import signal
import socket
import threading

from daemon import EVENT, metrics, request, serve, upstream
from harness import TIMEOUT_SECONDS, expect, expect_in, proof, scaled, until


def test_a_body_that_falls_silent(cli):
    """However much has come before: 400 KB bought a connection minutes of silence."""
    with upstream() as service:
        config = "http:\n  body_timeout: 500ms\nproxy:\n  routes:\n"
        config += f"    - {{name: all, path: /, upstream: '{service.url}', credential: none}}\n"
        with serve(cli, service.url, "--proxy", "127.0.0.1:0", config=config) as daemon:
            for door in (daemon.gateway, daemon.proxy):
                with socket.create_connection(door, timeout=TIMEOUT_SECONDS) as connection:
                    connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 400_000)
                    expect_in(b"HTTP/1.1 408 ", connection.recv(4096))
            expect(metrics(daemon)['hapax_refused_total{reason="body_timeout"}'], 2.0)
            expect(service.requests, [])


def slow_names(size):
    """Names that are compared slowly and have to be sorted."""
    names = ["\\u0063" * 8 + f"{number:06x}" for number in range(size // 60)]
    random.Random(size).shuffle(names)
    return names


def object_of(names):
    return ("{" + ",".join(f'"{name}":0' for name in names) + "}").encode()


def hostile(size):
    """The last name is there twice."""
    names = slow_names(size)
    return object_of([*names, names[0]])


def test_a_large_body_of_another_address(cli):
    """What one address has read is its own part of the time."""
    with upstream() as service, serve(cli, service.url) as daemon, contextlib.ExitStack() as ends:

        def post(event_id, data, address):
            headers = {**EVENT, "ce-id": event_id, "X-Forwarded-For": address}
            # Under a sanitizer the last ones take longer than their sender waits.
            with contextlib.suppress(OSError):
                request(daemon.gateway, "POST", f"/hold/{event_id}", headers, data)

        count, body = scaled(6, 14), hostile(scaled(12_000_000, 700_000))
        threads = [threading.Thread(target=post, args=(f"{200 + number}", body, "203.0.113.9")) for number in range(count)]
        small = threading.Thread(target=post, args=("299", b'{"a":"' + b"x" * 300_000 + b'"}', "203.0.113.10"))
        ends.callback(lambda: [thread.join() for thread in (*threads, small)])
        ends.callback(service.release.set)
        with proof("hostile bodies before another address's", count):
            for thread in threads:
                thread.start()
            # The upstream holds them: those that were read are in progress, too.
            until(lambda: metrics(daemon)['hapax_http_requests_in_progress{door="gateway"}'] == count, "all have come")
            read = len(service.requests)
            small.start()
            until(lambda: "/hold/299" in [path for path, _, _ in service.requests], "it was read")
        place = [path for path, _, _ in service.requests].index("/hold/299")
        # Those that were being read when it came are at most four, and one more may have ended beside it.
        assert place <= read + 5, f"{place - read} of {count} others were read while it waited"


def test_bodies_that_end_at_once(cli):
    """None of them is large; each is sent up to its last byte, then the last bytes come in one turn of a loop."""
    options = ("--loops", "1")
    with upstream() as service, serve(cli, service.url, *options) as daemon, contextlib.ExitStack() as ends:
        count, body, connections = scaled(400, 120), object_of(slow_names(250_000)), []
        fields = {**EVENT, "Host": "x", "Content-Type": "application/json", "X-Forwarded-For": "203.0.113.9"}
        for number in range(count):
            connection = ends.enter_context(socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS))
            lines = [f"{name}: {value}" for name, value in {**fields, "ce-id": str(number), "Content-Length": len(body)}.items()]
            connection.sendall(("\r\n".join([f"POST /{number} HTTP/1.1", *lines]) + "\r\n\r\n").encode() + body[:-1])
            connections.append(connection)
        small = {**EVENT, "X-Forwarded-For": "203.0.113.10"}
        # What was sent before has been read.
        for number in range(3):
            expect(request(daemon.gateway, "POST", "/", {**small, "ce-id": f"before-{number}"}, b"{}").status, 200)
        with proof("bodies that end at once", count):
            daemon.process.send_signal(signal.SIGSTOP)
            for connection in connections:
                connection.sendall(body[-1:])
            answers = []
            last = threading.Thread(
                target=lambda: answers.append(request(daemon.gateway, "POST", "/", {**small, "ce-id": "last"}, b"{}"))
            )
            last.start()
            daemon.process.send_signal(signal.SIGCONT)
            last.join()
            read = metrics(daemon)["hapax_key_derivation_duration_seconds_count"] - 4
        expect(answers[0].status, 200)
        assert read < count, f"all {count} bodies were read before the event of another address"
