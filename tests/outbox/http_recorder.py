#!/usr/bin/env python3
"""http_recorder PORT FILE - a service that takes CloudEvents and writes them down before it says so.

A line each: body, then NAME=VALUE of each header, with tabs between. Port 0 is any; "ready PORT" is printed. What is
larger than 4 MiB gets 413, what goes to a topic "nowhere" 404.
"""

import http.server
import os
import sys

SIZE_MAX = 4 * 1024 * 1024


class Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        topic = self.path.rsplit("/", 1)[1]
        status = 413 if len(body) > SIZE_MAX else 404 if topic == "nowhere" else 200
        if status == 200:
            fields = [f"{name.lower()}={value}" for name, value in self.headers.items()]
            line = "\t".join([topic, body.decode(), *fields]) + "\n"
            # One write, so that lines of several threads do not mix.
            os.write(self.server.file, line.encode())
        self.send_response_only(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # A relay has up to 32 connections; those that find no room try again after a second.
    request_queue_size = 256


def main():
    server = Server(("127.0.0.1", int(sys.argv[1])), Recorder)
    # A relay that is killed breaks its connections; that is not worth a line.
    server.handle_error = lambda *_: None
    server.file = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    print("ready", server.server_port, flush=True)
    server.serve_forever()


main()
