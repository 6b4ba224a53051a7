#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_nginx.py VERDICTS - our HTTP reader and nginx must find the same messages in the same bytes.

Two readers in a row are attacked by bytes that they read in two ways. VERDICTS (http1_verdicts.c) says
what ours makes of every case; nginx reads the same bytes and passes what it finds to us. Prints TAP:

  1  where both find a message, it is the same one, and nginx finds none that ours does not, unless ours
     has refused the stream: ours in front, nginx behind;
  2  what nginx sends on is read by ours as the one message that it was, or refused: nginx in front,
     ours behind;
  3  what our writer sends on is read by nginx as the same messages.

nginx runs from a private folder on a private port; without it the test is skipped.
"""

import asyncio
import collections
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

# Enough to be quick, few enough for the usual limit of descriptors.
CONNECTIONS = 64

CONFIGURATION = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 1000; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    client_header_timeout 2s; client_body_timeout 2s; keepalive_timeout 2s;
    merge_slashes off; ignore_invalid_headers off; underscores_in_headers on;
    upstream recorder {{ server unix:{folder}/recorder; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://recorder;
            proxy_http_version 1.1;
            proxy_ignore_client_abort on;
            proxy_set_header X-Client-Port $remote_port;
        }}
    }}
}}
"""

Message = collections.namedtuple("Message", "method path body")
Stream = collections.namedtuple("Stream", "data verdict sent messages")


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


def verdicts(program, streams=None):
    """What our reader makes of these streams, or of its own tables."""
    lines = None if streams is None else "".join(stream.hex() + "\n" for stream in streams)
    output = subprocess.run(
        [program] + ([] if streams is None else ["-"]), input=lines, capture_output=True, text=True, check=True
    ).stdout
    for line in output.splitlines():
        data, verdict, sent, *parts = line.split()
        parts = [unhex(part) for part in parts]
        messages = [Message(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
        yield Stream(unhex(data), verdict, unhex(sent), messages)


class Recorder:
    """nginx's upstream: takes what comes, keeps it by the port of the client, answers 200."""

    def __init__(self):
        self.raw = collections.defaultdict(list)

    async def handle(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
            body = await reader.readexactly(int(fields.get(b"content-length", 0)))
            self.raw[int(fields[b"x-client-port"])].append(head + body)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def message_of(raw):
    head, body = raw.split(b"\r\n\r\n", 1)
    method, path, _ = head.split(b"\r\n")[0].split(b" ")
    return Message(method, path, body)


class Nginx:
    def __init__(self, folder, recorder):
        self.folder, self.recorder = folder, recorder

    async def start(self, program):
        self.server = await asyncio.start_unix_server(self.recorder.handle, f"{self.folder}/recorder")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        configuration = pathlib.Path(self.folder, "nginx.conf")
        configuration.write_text(CONFIGURATION.format(folder=self.folder, port=self.port))
        self.process = await asyncio.create_subprocess_exec(
            program, "-p", self.folder, "-c", str(configuration), "-e", f"{self.folder}/error.log"
        )
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            except ConnectionRefusedError:
                if self.process.returncode is not None:
                    raise RuntimeError(pathlib.Path(self.folder, "error.log").read_text()) from None
                await asyncio.sleep(0.01)

    async def stop(self):
        self.process.terminate()
        await self.process.wait()
        self.server.close()

    async def read(self, data):
        """The raw requests that nginx finds in data."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        port = writer.get_extra_info("sockname")[1]
        self.recorder.raw.pop(port, None)
        try:
            writer.write(data)
            # No more will come: nginx need not wait for it.
            writer.write_eof()
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        writer.close()
        return self.recorder.raw.pop(port, [])

    async def read_all(self, streams):
        gate = asyncio.Semaphore(CONNECTIONS)

        async def one(data):
            async with gate:
                return await self.read(data)

        return await asyncio.gather(*(one(data) for data in streams))


def differs(ours, theirs, refused):
    """Why two readers could be played against each other, or None."""
    for mine, other in zip(ours, theirs):
        if mine != other:
            return f"ours read {mine}, nginx {other}"
    if not refused and len(theirs) > len(ours):
        return f"nginx found {theirs[len(ours)]}, ours did not"
    return None


class Tap:
    def __init__(self, plan):
        self.number = 0
        self.failed = False
        print(f"1..{plan}")

    def test(self, name, problems, note):
        self.number += 1
        for problem in problems[:10]:
            print(f"# {problem}")
        print(f"# {note}")
        print(f"{'not ok' if problems else 'ok'} {self.number} - {name}", flush=True)
        self.failed |= bool(problems)


def compare_front(streams, found):
    problems, both, lenient = [], 0, 0
    for stream, raws in zip(streams, found):
        theirs = [message_of(raw) for raw in raws]
        both += min(len(theirs), len(stream.messages))
        lenient += stream.verdict == "refused" and len(theirs) > len(stream.messages)
        if why := differs(stream.messages, theirs, stream.verdict == "refused"):
            problems.append(f"{stream.data!r}: {why}")
    if both < 100 or lenient < 10:
        problems.append(f"too little to compare: {both} messages, {lenient} streams")
    return problems, f"{len(streams)} streams, {both} messages read by both, {lenient} refused by ours alone"


def compare_behind(program, found):
    raws = [raw for each in found for raw in each]
    problems, taken = [], 0
    for raw, stream in zip(raws, verdicts(program, raws)):
        taken += stream.verdict == "taken"
        if stream.verdict != "refused" and (stream.verdict, stream.messages) != ("taken", [message_of(raw)]):
            problems.append(f"{raw!r}: ours read {stream.verdict} {stream.messages}")
    if taken < 100:
        problems.append(f"too little to compare: {taken} messages")
    return problems, f"{len(raws)} requests as nginx sends them on, {taken} taken, the others refused"


def compare_sent(streams, found):
    problems, both = [], 0
    for stream, raws in zip(streams, found):
        theirs = [message_of(raw) for raw in raws]
        both += len(theirs)
        if why := differs(stream.messages, theirs, False):
            problems.append(f"{stream.sent!r}: {why}")
    if both < 100:
        problems.append(f"too little to compare: {both} messages")
    return problems, f"{both} messages of our writer read by nginx"


async def run(program, nginx_program, folder):
    streams = list(verdicts(program))
    nginx = Nginx(folder, Recorder())
    await nginx.start(nginx_program)
    try:
        found = await nginx.read_all([stream.data for stream in streams])
        sent = await nginx.read_all([stream.sent for stream in streams])
    finally:
        await nginx.stop()
    tap = Tap(3)
    tap.test("ours in front, nginx behind", *compare_front(streams, found))
    tap.test("nginx in front, ours behind", *compare_behind(program, found))
    tap.test("nginx behind our writer", *compare_sent(streams, sent))
    return int(tap.failed)


def main():
    nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if nginx is None:
        print("1..0 # SKIP nginx is not installed (Debian: nginx-light)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(os.path.abspath(sys.argv[1]), nginx, folder))


if __name__ == "__main__":
    sys.exit(main())
