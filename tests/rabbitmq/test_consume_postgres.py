"""From RabbitMQ into PostgreSQL in one transaction: killed at random, every event is booked exactly once."""

import harness
from amqp import Broker
from booking import every_event_is_booked_exactly_once, make_ledger
from rabbit import ADDRESS, Proxy, Queue, event, kill_broker


def test_every_event_is_booked_exactly_once_whoever_is_killed(cli):
    make_ledger(cli)
    with Queue() as queue, Proxy() as proxy:

        def fill(numbers):
            for at in range(0, len(numbers), 500):
                queue.fill([(f'{{"n":{n}}}', event(n)) for n in numbers[at : at + 500]])

        def is_drained():
            with Broker(ADDRESS) as broker:
                return broker.ready(queue.name) == 0

        kill = proxy.cut
        if harness.is_proof():
            queue.settle()
            kill = kill_broker
        every_event_is_booked_exactly_once("RabbitMQ", fill, lambda: queue.url(proxy.address), kill, is_drained)
        queue.reconnect()
