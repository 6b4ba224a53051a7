"""From Kafka into PostgreSQL, booking and offset in one transaction: killed at random, every event is booked exactly once."""

from booking import booking, every_event_is_booked_exactly_once, make_ledger, psql
from harness import expect, until
from kafka import Kafka, event


def begin_where_the_database_says(kafka):
    """Of ten messages the first seven are done, as the database has it; the broker knows of none."""
    psql("INSERT INTO hapax_offset VALUES ('told', 'told', 0, 7), ('told', 'done', 0, 3)")
    kafka.produce("told", [("k", f'{{"n":{n}}}', event(f"told-{n}")) for n in range(10)])
    kafka.produce("done", [("k", "{}", event(f"done-{n}")) for n in range(3)])
    with booking(kafka.url("told,done", group="told")) as process:
        until(lambda: psql("SELECT count(*) FROM booking") == "3", "what is behind it is booked")
        # Of the other topic nothing is left to do, and the broker hears of that, too.
        until(lambda: kafka.committed("told", "done") == 3, "the broker knows")
        process.terminate()
        expect(process.wait(timeout=60), 0, "its exit status")
    expect(psql("SELECT min(event), max(event) FROM booking"), "/shop:A-told-7|/shop:A-told-9")
    expect(psql("SELECT next FROM hapax_offset WHERE grp = 'told' AND topic = 'told'"), "10")
    psql("TRUNCATE booking")


def test_every_event_is_booked_exactly_once_whoever_is_killed(cli):
    make_ledger(cli)
    with Kafka({"orders": 3, "told": 1, "done": 1}) as kafka:
        sent = []

        def fill(numbers):
            sent.extend(numbers)
            kafka.produce("orders", [(f"k{n % 97}", f'{{"n":{n}}}', event(n)) for n in numbers])

        begin_where_the_database_says(kafka)
        try:
            every_event_is_booked_exactly_once(
                "Apache Kafka" if kafka.is_real else "Kafka (mock)",
                fill,
                lambda: kafka.url("orders"),
                kafka.interrupt,
                lambda: kafka.committed("g", "orders") == len(sent),
            )
        except AssertionError:
            offsets = psql("SELECT topic, part, next FROM hapax_offset").replace("\n", ", ")
            print(f"# committed {kafka.committed('g', 'orders')} of {len(sent)}; in the database: {offsets}", flush=True)
            raise
        # An offset that is committed with an effect is never ahead of the broker's.
        assert int(psql("SELECT sum(next) FROM hapax_offset WHERE grp = 'g'")) <= len(sent)
        expect(psql("SELECT count(*) FROM hapax_offset WHERE grp = 'g'"), "3")
