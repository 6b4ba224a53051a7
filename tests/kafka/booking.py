"""booking.py - from any broker into PostgreSQL by examples/source_postgres.c: killed at random, every event is booked once.

Effects are counted inside of the database: the booking and its claim are one transaction. Runs by
tests/postgres/with_postgres; HAPAX_EXAMPLE_SOURCE_POSTGRES names the example as built.
"""

import contextlib
import os
import random
import subprocess
import time

from harness import PROGRAM, TIMEOUT_SECONDS, expect, proof, scaled, until

EXAMPLE = os.environ.get("HAPAX_EXAMPLE_SOURCE_POSTGRES", str(PROGRAM.parent / "examples/example_source_postgres"))

# Without a unique index: a second booking would be one.
TABLE = "CREATE TABLE booking (event text, data text)"

# Tests of several brokers share a server, and not what is in it.
DATABASE = f"booking{os.getpid()}"


def ledger():
    return f"postgres:///{DATABASE}" + os.environ["HAPAX_TEST_POSTGRES"]


def psql(text, database=DATABASE):
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def booked():
    # Each question is a process: a few of them are enough.
    time.sleep(0.1)
    return int(psql("SELECT count(*) FROM booking"))


def crash_database():
    subprocess.run([os.environ["HAPAX_TEST_POSTGRES_RESTART"]], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def booking(url):
    """One that books, as long as it is needed; then it is killed."""
    process = subprocess.Popen([EXAMPLE, url, ledger()])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until_booked(process, condition, what):
    def holds():
        expect(process.poll(), None, "its exit status")
        return condition()

    until(holds, what)


def make_ledger(cli):
    psql(f"CREATE DATABASE {DATABASE}", "postgres")
    cli.run("store", "migrate", "--store", ledger())
    psql(TABLE)


def every_event_is_booked_exactly_once(name, fill, url, kill_broker, is_drained):
    """fill(numbers) sends; url(); kill_broker(); is_drained(): the broker has no more."""
    seed = int(os.environ.get("HAPAX_TEST_SEED") or 11)
    print(f"# {name} into PostgreSQL: HAPAX_TEST_SEED={seed}", flush=True)
    rng = random.Random(seed)
    count = scaled(10000, 120)
    kills = scaled(12, 1)
    numbers = list(range(count)) + rng.sample(range(count), count // 10)
    rng.shuffle(numbers)
    with proof(f"{name} messages into PostgreSQL, killed at random", count):
        fill(numbers)
        for step in range(kills):
            goal = rng.randrange(1, count * (step + 1) // (kills + 1) + 2)
            with booking(url()) as process:
                until_booked(process, lambda goal=goal: booked() >= goal, "some are booked")
                if step % 2 == 0:
                    kill_broker()
                    before = booked()
                    until_booked(process, lambda before=before: booked() > min(before, count - 1), "it goes on")
            if rng.random() < 0.5:
                crash_database()
        # The database crashes while it works, too.
        before = booked()
        crashes = iter([crash_database])

        def is_done():
            if booked() > before:
                next(crashes, lambda: None)()
            return booked() == count and is_drained()

        def is_done_at_the_end():
            with booking(url()) as process:
                until_booked(process, is_done, "all is booked")
                process.terminate()
                expect(process.wait(timeout=TIMEOUT_SECONDS), 0, "exit status")
            return is_drained()

        # What it had in hand, and gave back: another one takes it.
        until(is_done_at_the_end, "all is acknowledged")
        expect(psql("SELECT count(*), count(DISTINCT event) FROM booking"), f"{count}|{count}")
