"""`hapax consume` from RabbitMQ, killed at random.

Issue 11 asks for 10,000 messages with 10 % duplicates; that is with HAPAX_PROOF=1, here it is some hundred, and the way to
the broker is cut instead of the broker killed, which takes long to start.
"""

import os
import pathlib
import signal
import subprocess

import harness
from crash import kill_at_random
from harness import TIMEOUT_SECONDS, expect
from rabbit import Proxy, Queue, event


def kill_broker():
    """The Erlang machine is the process that was started, or a child of it."""
    start = os.environ["HAPAX_TEST_RABBITMQ_START"]
    pid = int((pathlib.Path(start).parent / "server").read_text())
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    for one in [pid, *[int(text) for text in children.stdout.split()]]:
        os.kill(one, signal.SIGKILL)
    subprocess.run([start], check=True, timeout=2 * TIMEOUT_SECONDS)


def test_a_consumer_killed_at_random_loses_nothing(cli):
    with Queue() as queue, Proxy() as proxy:

        def fill(numbers):
            for at in range(0, len(numbers), 500):
                queue.fill([(f'{{"n":{n}}}', event(n)) for n in numbers[at : at + 500]])

        kill = kill_broker if harness.is_proof() else proxy.cut
        figures = kill_at_random(
            cli, "RabbitMQ", fill, lambda: queue.url(proxy.address), kill, lambda f: f.get("lag") == 0
        )
        expect(figures["causes"]["reread"], 0)
        queue.reconnect()
        expect(queue.ready(queue.name), 0)
