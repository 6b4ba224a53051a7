"""From Kafka into PostgreSQL, booking and offset in one transaction: killed at random, every event is booked exactly once."""

from booking import every_event_is_booked_exactly_once, psql
from kafka import Kafka, event


def test_every_event_is_booked_exactly_once_whoever_is_killed(cli):
    with Kafka({"orders": 3}) as kafka:
        sent = []

        def fill(numbers):
            sent.extend(numbers)
            kafka.produce("orders", [(f"k{n % 97}", f'{{"n":{n}}}', event(n)) for n in numbers])

        every_event_is_booked_exactly_once(
            cli, "Kafka", fill, lambda: kafka.url("orders"), None, lambda: kafka.committed("g", "orders") == len(sent)
        )
        # An offset that is committed with an effect is never ahead of the broker's.
        assert int(psql("SELECT sum(next) FROM progress")) <= len(sent)
        assert psql("SELECT count(*) FROM progress") == "3"
