"""`hapax consume` from Redis Streams, killed at random, as is the server.

Issue 11 asks for 10,000 messages with 10 % duplicates; that is with HAPAX_PROOF=1, here it is some hundred.
"""

from crash import kill_at_random
from harness import expect
from server import Server
from streams import Stream, event


def test_a_consumer_killed_at_random_loses_nothing(cli):
    with Server(cli.folder) as server:
        stream = Stream(str(server.path))

        def fill(numbers):
            for at in range(0, len(numbers), 500):
                stream.fill([event(n) for n in numbers[at : at + 500]])

        def is_drained(_figures):
            return Stream(str(server.path), stream.name).unread() == 0

        def may_acknowledge(sign):
            return lambda: Stream(str(server.path)).do("ACL", "SETUSER", "default", f"{sign}xack")

        kill_at_random(
            cli,
            "Redis Streams",
            fill,
            lambda: stream.url(min_idle="500ms"),
            server.restart,
            is_drained,
            deafen=may_acknowledge("-"),
            hear=may_acknowledge("+"),
            has_places=True,
        )
        stream = Stream(str(server.path), stream.name)
        expect((stream.pending(), stream.unread()), (0, 0))
