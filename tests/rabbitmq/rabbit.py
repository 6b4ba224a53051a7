"""rabbit.py - queues for tests, a way to the broker that can be cut, and `hapax consume` as a process."""

import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading

from amqp import Broker, frame
from harness import TIMEOUT_SECONDS, Skip, until
from kafka import Consume, Service  # noqa: F401

ADDRESS = os.environ.get("HAPAX_TEST_RABBITMQ")


class Queue(Broker):
    """A queue of its own, and a connection to fill and look at it."""

    made = 0

    def __init__(self, arguments=None):
        if ADDRESS is None:
            raise Skip("there is no RabbitMQ (tests/rabbitmq/with_rabbitmq)")
        super().__init__(ADDRESS)
        Queue.made += 1
        self.name = f"orders{os.getpid()}-{Queue.made}"
        self.declare(self.name, arguments)

    def reconnect(self):
        """After the broker was killed."""
        self.socket.close()
        super().__init__(ADDRESS)

    def settle(self):
        """So that the broker can be killed and keep the queue.

        It writes the name of a new quorum queue seconds late (RabbitMQ 3.10.8, names.dets of ra 2.2.0): killed before, it
        starts an empty one in its place that never has a leader. When it stops in order it writes all that it has.
        """
        subprocess.run([os.environ["HAPAX_TEST_RABBITMQ_RESTART"]], check=True, timeout=2 * TIMEOUT_SECONDS)
        self.reconnect()

    def __exit__(self, *_):
        for name in (self.name, f"{self.name}.dead", f"{self.name}.duplicate"):
            self.delete(name)
        super().__exit__()

    def fill(self, messages):
        self.publish(self.name, messages)

    def url(self, address=ADDRESS, **options):
        more = "&".join(f"{name}={value}" for name, value in options.items())
        return f"amqp://guest:guest@{address}/{self.name}" + (f"?{more}" if more else "")


class Proxy:
    """A way to the broker that can be cut, and where the broker's words can be put in and ours left out."""

    def __init__(self, to=ADDRESS):
        host, port = to.rsplit(":", 1)
        self.to = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.pairs = []
        self.said = b""
        self.is_deaf = False
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                inner, _ = self.listener.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(self.to)
            except OSError:
                # The broker is away.
                inner.close()
                continue
            with self.lock:
                self.pairs.append((inner, outer))
            for source, target in ((inner, outer), (outer, inner)):
                threading.Thread(target=self.pump, args=(source, target, source is inner), daemon=True).start()

    def pump(self, source, target, is_ours):
        try:
            while part := source.recv(65536):
                if is_ours and self.is_deaf:
                    continue
                if is_ours:
                    self.said += part
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def hear(self, is_heard):
        """Whether the broker gets what clients say."""
        self.is_deaf = not is_heard

    def tell(self, method_id, arguments=b""):
        """A method of class connection to all clients, as from the broker."""
        self.say(frame(1, 0, struct.pack(">HH", 10, method_id) + arguments))

    def say(self, frames):
        """To all clients, as from the broker. They must be at rest: frames do not mix."""
        with self.lock:
            for inner, _ in self.pairs:
                try:
                    inner.sendall(frames)
                except OSError:
                    # A connection that is gone.
                    continue

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.cut()


def event(number, prefix="cloudEvents:", **more):
    """Properties of a CloudEvent in the binding for AMQP."""
    attributes = {"specversion": "1.0", "type": "order.paid", "source": "/shop", "id": f"A-{number}"}
    headers = {prefix + name: value for name, value in attributes.items()}
    return {"content_type": "application/json", "headers": {**headers, **more}}


def numbers(count):
    return [(f'{{"n":{n}}}', event(n)) for n in range(count)]


def is_listening():
    host, port = ADDRESS.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port))).close()
    except OSError:
        return False
    return True


def kill_broker():
    """The Erlang machine is the process that was started, or a child of it."""
    start = os.environ["HAPAX_TEST_RABBITMQ_START"]
    pid = int((pathlib.Path(start).parent / "server").read_text())
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    for one in [pid, *[int(text) for text in children.stdout.split()]]:
        os.kill(one, signal.SIGKILL)
    # As long as it goes it takes connections, and would be taken for the one that comes.
    until(lambda: not is_listening(), "it is gone")
    subprocess.run([start], check=True, timeout=2 * TIMEOUT_SECONDS)
