"""From Kafka into PostgreSQL by examples/kafka_postgres.c: killed at random, every event is booked exactly once.

Effects are counted inside of the database: the booking, its claim and the offset are one transaction. Runs by
tests/postgres/with_postgres; HAPAX_EXAMPLE_KAFKA_POSTGRES names the example as built.
"""

import os
import random
import subprocess
import time

from harness import PROGRAM, expect, proof, scaled, until
from kafka import Kafka, event

EXAMPLE = os.environ.get("HAPAX_EXAMPLE_KAFKA_POSTGRES", str(PROGRAM.parent / "examples/example_kafka_postgres"))

# Without a unique index: a second booking would be one.
TABLE = "CREATE TABLE booking (event text, data text)"


def psql(text):
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=text, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def begin_where_the_database_says(kafka, url):
    """Of ten messages the first seven are done, as the database has it; the broker knows of none."""
    psql("INSERT INTO hapax_offset VALUES ('told', 'told', 0, 7), ('told', 'done', 0, 3)")
    kafka.produce("told", [("k", f'{{"n":{n}}}', event(f"told-{n}")) for n in range(10)])
    kafka.produce("done", [("k", "{}", event(f"done-{n}")) for n in range(3)])
    process = subprocess.Popen([EXAMPLE, kafka.url("told,done", group="told"), url])
    try:
        until(lambda: psql("SELECT count(*) FROM booking") == "3", "what is behind it is booked")
        # Of the other topic nothing is left to do, and the broker hears of that, too.
        until(lambda: kafka.committed("told", "done") == 3, "the broker knows")
        process.terminate()
        expect(process.wait(timeout=60), 0, "its exit status")
    finally:
        process.kill()
        process.wait()
    expect(psql("SELECT min(event), max(event) FROM booking"), "/shop:A-told-7|/shop:A-told-9")
    expect(psql("SELECT next FROM hapax_offset WHERE grp = 'told' AND topic = 'told'"), "10")
    psql("TRUNCATE booking")


def test_every_event_is_booked_exactly_once_whoever_is_killed(cli):
    seed = int(os.environ.get("HAPAX_TEST_SEED") or 11)
    print(f"# HAPAX_TEST_SEED={seed}", flush=True)
    rng = random.Random(seed)
    count = scaled(10000, 120)
    kills = scaled(12, 1)
    url = "postgres:///postgres" + os.environ["HAPAX_TEST_POSTGRES"]
    cli.run("store", "migrate", "--store", url)
    psql(TABLE)
    numbers = list(range(count)) + rng.sample(range(count), count // 10)
    rng.shuffle(numbers)
    with proof("Kafka messages into PostgreSQL, killed at random", count), Kafka({"orders": 3, "told": 1, "done": 1}) as kafka:
        begin_where_the_database_says(kafka, url)
        kafka.produce("orders", [(f"k{n % 97}", f'{{"n":{n}}}', event(n)) for n in numbers])

        def booked():
            # Each question is a process: a few of them are enough.
            time.sleep(0.1)
            return int(psql("SELECT count(*) FROM booking"))

        def crash_database():
            subprocess.run([os.environ["HAPAX_TEST_POSTGRES_RESTART"]], check=True, stdout=subprocess.DEVNULL)

        def book_until(condition, what):
            """Start one, and kill it when what was waited for is there."""
            process = subprocess.Popen([EXAMPLE, kafka.url("orders")])
            try:
                until(lambda: condition() or process.poll() is not None, what)
                expect(process.poll(), None, "its exit status")
            finally:
                process.kill()
                process.wait()

        for step in range(kills):
            goal = rng.randrange(1, count * (step + 1) // (kills + 1) + 2)
            book_until(lambda: booked() >= goal, "some are booked")
            if rng.random() < 0.5:
                crash_database()
        # The database crashes while it works, too.
        before = booked()
        crashes = iter([crash_database])

        def goes_on():
            if booked() > before:
                next(crashes, lambda: None)()
            return booked() == count and kafka.committed("g", "orders") == len(numbers)

        try:
            book_until(goes_on, "all is booked and committed")
        except AssertionError as failure:
            offsets = psql("SELECT part, next FROM hapax_offset WHERE grp = 'g' ORDER BY part").split()
            committed = kafka.committed("g", "orders")
            raise AssertionError(
                f"{failure}: {booked()} of {count} booked, {committed} of {len(numbers)} committed, offsets {offsets}"
            ) from failure
        expect(psql("SELECT count(*), count(DISTINCT event) FROM booking"), f"{count}|{count}")
        # An offset that is committed with an effect is never ahead of the broker's.
        assert int(psql("SELECT sum(next) FROM hapax_offset WHERE grp = 'g'")) <= len(numbers)
        expect(psql("SELECT count(*) FROM hapax_offset WHERE grp = 'g'"), "3")
