"""Bodies that arrive slowly, or take long to read, hold up only their sender."""

import contextlib
import random
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


def hostile(size):
    """Names that are compared slowly and have to be sorted; the last one is there twice."""
    names = ["\\u0063" * 8 + f"{number:06x}" for number in range(size // 60)]
    random.Random(size).shuffle(names)
    return ("{" + ",".join(f'"{name}":0' for name in [*names, names[0]]) + "}").encode()


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
