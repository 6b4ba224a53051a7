"""kafka.py - a Kafka for tests, clients of it, and `hapax consume` as a process.

The mock cluster of librdkafka is there wherever hapax has Kafka. HAPAX_KAFKA_MOCK and HAPAX_KAFKA_CLIENT name
tests/kafka/mock_cluster.c and client.c as built. With HAPAX_KAFKA_REAL=1 it is Apache Kafka, one for each test, by
tools/kafka.
"""

import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from harness import PROGRAM, ROOT, TIMEOUT_SECONDS, Skip, expect, until  # noqa: E402

BUILD = PROGRAM.parent
MOCK = os.environ.get("HAPAX_KAFKA_MOCK", str(BUILD / "tests/kafka/kafka_mock_cluster"))
CLIENT = os.environ.get("HAPAX_KAFKA_CLIENT", str(BUILD / "tests/kafka/kafka_client"))


class MockKafka:
    """A mock cluster; topics are {name: partitions}."""

    is_real = False

    def __init__(self, topics, brokers=1):
        names = [f"{name}:{count}" for name, count in topics.items()]
        self.topics = topics
        self.process = subprocess.Popen(
            [MOCK, str(brokers), *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.servers = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=TIMEOUT_SECONDS)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        expect(self.process.stdout.readline(), "ok\n")

    def interrupt(self):
        """It goes away, and comes back with all that it had."""
        self.tell("down 1")
        self.tell("up 1")

    def client(self, *arguments, text=""):
        done = subprocess.run(
            [CLIENT, self.servers, *[str(a) for a in arguments]],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        expect(done.returncode, 0, f"client {arguments}: {done.stderr}")
        return done.stdout

    def produce(self, topic, messages):
        """messages: (key, data, {header: value}); None for none."""
        lines = []
        for key, data, headers in messages:
            fields = ["\\N" if key is None else key, "\\N" if data is None else data]
            fields += [f"{name}={value}" if value is not None else name for name, value in headers.items()]
            lines.append("\t".join(fields))
        self.client("produce", topic, text="\n".join(lines) + "\n")

    def read(self, topic, count):
        """[(key, data, headers)] of a topic, from its beginning."""
        found = []
        for line in self.client("read", topic, count).splitlines():
            _, _, key, data, *headers = line.split("\t")
            found.append((key, data, dict(h.split("=", 1) for h in headers)))
        return found

    def committed(self, group, topic):
        return int(self.client("committed", group, topic, self.topics[topic]))

    def reset(self, group, topic):
        self.client("reset", group, topic, self.topics[topic])

    def url(self, topic, group="g", **options):
        # The mock cluster knows no leaving: who left is a member until the session ends.
        options.setdefault("session.timeout.ms", "6000")
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"kafka://{self.servers}/{topic}?group={group}{more}"


class RealKafka(MockKafka):
    """The same by Apache Kafka. What is down was killed, and has what it had when it is up again."""

    is_real = True

    def __init__(self, topics):
        self.topics = topics
        self.folder = tempfile.mkdtemp(prefix="hapax-kafka-")
        self.servers = self.control("start")
        for name, count in topics.items():
            self.client("topic", name, count)

    def __exit__(self, *_):
        self.control("kill")
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, command):
        done = subprocess.run([ROOT / "tools/kafka", command, self.folder], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            raise Skip(done.stderr.strip())
        expect(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def tell(self, line):
        self.control({"down 1": "kill", "up 1": "start"}[line])


Kafka = RealKafka if os.environ.get("HAPAX_KAFKA_REAL") else MockKafka


class Consume:
    """`hapax consume -o json`, its lines read as they come."""

    def __init__(self, cli, *arguments, env=None):
        self.events = []
        # To fetch small amounts at once, and to join without delay.
        self.process = cli.start("consume", "-o", "json", "--progress", "50ms", *arguments, env=env)
        self.errors = []
        self.readers = [
            threading.Thread(target=self.read_out, daemon=True),
            threading.Thread(target=self.read_err, daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def read_out(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def read_err(self):
        for line in self.process.stderr:
            self.errors.append(line.decode())

    def figures(self):
        found = [event for event in self.events if event["event"] in ("progress", "end")]
        return found[-1] if found else {}

    def all(self, name):
        return [event for event in self.events if event["event"] == name]

    def until(self, condition, what):
        def holds():
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}: {''.join(self.errors)}")
            return condition(self.figures())

        try:
            until(holds, what)
        except AssertionError as failure:
            raise AssertionError(f"{failure}; {self.figures()} {''.join(self.errors)}") from failure

    def until_acknowledged(self, count):
        self.until(lambda f: f.get("acknowledged", 0) >= count, f"{count} are acknowledged")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def read_rest(self):
        """What it said until it was killed. Commands that it started have its outputs, too: not while they run."""
        for reader in self.readers:
            reader.join()

    def stop(self, code=0):
        self.process.send_signal(signal.SIGTERM)
        return self.wait(code)

    def wait(self, code=0):
        self.process.wait(timeout=TIMEOUT_SECONDS)
        for reader in self.readers:
            reader.join()
        expect(self.process.returncode, code, f"exit status ({''.join(self.errors)})")
        return self.figures()


class Service:
    """An HTTP handler that checks tokens: an effect counts if its token is the largest of its event."""

    def __init__(self, answer=None):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = service.take(dict(self.headers.items()), body)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        self.answer = answer or (lambda headers, body: 200)
        self.lock = threading.Lock()
        self.requests = []
        self.effects = {}
        self.tokens = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A consumer that is killed breaks its connections; that is not worth a line.
        self.server.handle_error = lambda *_: None
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}/orders"

    def take(self, headers, body):
        lower = {name.lower(): value for name, value in headers.items()}
        status = self.answer(lower, body)
        with self.lock:
            self.requests.append((lower, body))
            if status == 200:
                name = (lower.get("ce-source"), lower.get("ce-id"))
                token = int(lower.get("hapax-token", 0))
                # A late one that lost its claim is known by its token.
                if token >= self.tokens.get(name, 0):
                    self.tokens[name] = token
                    self.effects[name] = self.effects.get(name, 0) + 1
        return status

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def event(number, **more):
    """Headers of a CloudEvent in Kafka's binding."""
    return {
        "ce_specversion": "1.0",
        "ce_type": "order.paid",
        "ce_source": "/shop",
        "ce_id": f"A-{number}",
        "content-type": "application/json",
        **more,
    }
