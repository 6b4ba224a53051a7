"""rabbit.py - queues for tests, a way to the broker that can be cut, and `hapax consume` as a process."""

import os
import socket
import threading

from amqp import Broker
from harness import Skip
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
    """A way to the broker that can be cut."""

    def __init__(self, to=ADDRESS):
        host, port = to.rsplit(":", 1)
        self.to = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.pairs = []
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
                threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

    @staticmethod
    def pump(source, target):
        try:
            while part := source.recv(65536):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

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
