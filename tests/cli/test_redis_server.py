"""A Redis server that answers what no Redis would: the program says so, and what to look at."""

import hashlib
import socketserver
import threading

from harness import expect_in

# What a Cluster answers to CLUSTER SLOTS, but with a port that no server can have.
NO_PORT = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n"


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2])
            self.wfile.write(self.server.answers(words))


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text)


def answers_with(slots):
    def answers(words):
        if words[0] == b"INFO":
            return bulk(b"redis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\nredis_mode:cluster\r\n")
        if words[0] == b"SCRIPT":
            return bulk(hashlib.sha1(words[2]).hexdigest().encode())
        if words[:2] == [b"CLUSTER", b"SLOTS"]:
            return slots
        return b"*2\r\n" + bulk(words[-1]) + bulk(b"no") if words[0] == b"CONFIG" else b"+OK\r\n"

    return answers


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, answers):
        super().__init__(("127.0.0.1", 0), Session)
        self.answers = answers
        self.url = f"redis+cluster://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


def test_a_cluster_map_with_an_impossible_port_is_not_a_lack_of_memory(cli):
    for port in (0, -1, 65536, 2**63 - 1):
        with Server(answers_with(NO_PORT % port)) as server:
            result = cli.run("stats", "--store", server.url, code=69)
            server.shutdown()
        expect_in("did not report the slots of its Cluster", result.err)
