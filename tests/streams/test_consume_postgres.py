"""From Redis Streams into PostgreSQL in one transaction: killed at random, every event is booked exactly once."""

from booking import every_event_is_booked_exactly_once, make_ledger
from server import Server
from streams import Stream, event


def test_every_event_is_booked_exactly_once_whoever_is_killed(cli):
    make_ledger(cli)
    with Server(cli.folder) as server:
        stream = Stream(str(server.path))

        def fill(numbers):
            for at in range(0, len(numbers), 500):
                stream.fill([event(n) for n in numbers[at : at + 500]])

        def is_drained():
            return Stream(str(server.path), stream.name).unread() == 0

        url = stream.url(min_idle="500ms")
        every_event_is_booked_exactly_once("Redis Streams", fill, lambda: url, server.restart, is_drained)
