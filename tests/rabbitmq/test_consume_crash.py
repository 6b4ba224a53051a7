"""`hapax consume` from RabbitMQ, killed at random.

Issue 11 asks for 10,000 messages with 10 % duplicates; that is with HAPAX_PROOF=1, here it is some hundred, and the way to
the broker is cut instead of the broker killed, which takes long to start.
"""

import harness
from crash import kill_at_random
from harness import expect
from rabbit import Proxy, Queue, event, kill_broker


def test_a_consumer_killed_at_random_loses_nothing(cli):
    with Queue() as queue, Proxy() as proxy:

        def fill(numbers):
            for at in range(0, len(numbers), 500):
                queue.fill([(f'{{"n":{n}}}', event(n)) for n in numbers[at : at + 500]])

        kill = proxy.cut
        if harness.is_proof():
            queue.settle()
            kill = kill_broker
        kill_at_random(
            cli,
            "RabbitMQ",
            fill,
            lambda: queue.url(proxy.address),
            kill,
            lambda f: f.get("lag") == 0,
            deafen=lambda: proxy.hear(False),
            hear=lambda: proxy.hear(True),
            has_places=False,
        )
        queue.reconnect()
        expect(queue.ready(queue.name), 0)
