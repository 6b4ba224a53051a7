"""crash.py - a consumer and its broker, killed at random: effects once, nothing lost, causes right. For every broker."""

import collections
import os
import random
import threading
import time

from harness import TIMEOUT_SECONDS, expect, proof, scaled
from kafka import Consume, Service

# Done, and the broker does not know: so many at least, in a life of its own.
UNHEARD = 5


def numbers_of(count, rng):
    """Events in any order, a tenth of them sent twice."""
    numbers = list(range(count)) + rng.sample(range(count), count // 10)
    rng.shuffle(numbers)
    return numbers


def causes_are_right(reports, numbers, has_places):
    """By the place of a message, where it has one: what is read again has that of the original. Else by the broker's word."""
    sent = collections.Counter(f"/shop:A-{number}" for number in numbers)
    found = collections.Counter()
    repeated = collections.Counter()
    for report in reports:
        key, cause = report["key"], report["cause"]
        found[cause] += 1
        if has_places:
            expect(cause, "reread" if report["place"] == report["original"] else "producer", f"cause of {report}")
        if cause == "producer":
            repeated[key] += 1
            expect(sent[key], 2, f"how often {key} was sent")
        else:
            expect(cause, "reread" if has_places else "redelivered", f"cause of {report}")
    # A message that is delivered a second time is said to be: of two, one can be new and a duplicate, once.
    if not has_places:
        assert max(repeated.values(), default=0) <= 1, repeated
    return found


def missed_are_none(reports, numbers):
    """What the producer sent twice was found, in one life or another: it is reported before it is acknowledged."""
    reported = {report["key"] for report in reports}
    expect([n for n, times in collections.Counter(numbers).items() if times == 2 and f"/shop:A-{n}" not in reported], [])


class Lives:
    """One consumer after the other, and what all of them reported."""

    def __init__(self, cli, service, count, arguments):
        self.cli, self.service, self.count, self.arguments = cli, service, count, arguments
        self.reports = []

    def begin(self):
        return Consume(self.cli, *self.arguments)

    def until_handled(self, consume, goal):
        consume.until(
            lambda f: len(self.service.requests) >= goal or len(self.service.effects) == self.count, "some were handled"
        )

    def kill(self, consume):
        consume.kill()
        consume.read_rest()
        self.reports += consume.all("duplicate")

    def end(self, consume):
        figures = consume.stop()
        self.reports += consume.all("duplicate")
        return figures


def leave_unheard(lives, deafen, hear):
    """A life whose acknowledgments do not arrive: its messages are delivered again, for that reason."""
    answer, first, is_deaf = lives.service.answer, threading.Semaphore(1), threading.Event()

    def one_at_first(headers, body):
        # The others wait: all might be done before the broker is deaf.
        if not first.acquire(blocking=False):
            is_deaf.wait(TIMEOUT_SECONDS)
        return answer(headers, body)

    lives.service.answer = one_at_first
    consume = lives.begin()
    consume.until(lambda f: f.get("ok", 0) > 0, "it works")
    deafen()
    is_deaf.set()
    consume.until(lambda f: f["ok"] > UNHEARD, "some more are done")
    lives.service.answer = answer
    lives.kill(consume)
    hear()


def kill_at_random(cli, name, fill, url, kill_broker, is_drained, deafen, hear, has_places):
    """fill(numbers) sends; url(); is_drained(figures): the broker has no more for us.

    deafen(), hear(): from then on, and no more, the broker does not get acknowledgements.
    """
    seed = int(os.environ.get("HAPAX_TEST_SEED") or 11)
    print(f"# killed: HAPAX_TEST_SEED={seed}", flush=True)
    rng = random.Random(seed)
    count = scaled(10000, 150)
    kills = scaled(12, 2)
    with proof(f"{name} messages, consumer and broker killed at random", count), Service() as service:
        numbers = numbers_of(count, rng)
        fill(numbers)
        service.answer = lambda headers, body: time.sleep(0.002) or 200
        arguments = ["--from", url(), "--to", service.url, "--lease", "1s", "--backoff", "20ms"]
        arguments += ["--store", f"file:{cli.folder / 'ledger'}", "--parallel", "8"]
        lives = Lives(cli, service, count, arguments)
        leave_unheard(lives, deafen, hear)
        for turn in range(kills):
            consume = lives.begin()
            lives.until_handled(consume, len(service.requests) + rng.randrange(1, max(2, count // (kills + 1))))
            # The broker dies under a consumer that lives on, by turns with the consumer.
            if turn % 2 == 0:
                kill_broker()
                lives.until_handled(consume, len(service.requests) + 1)
            lives.kill(consume)
        consume = lives.begin()
        consume.until(lambda f: len(service.effects) == count and f.get("in_hand") == 0 and is_drained(f), "all is done")
        figures = lives.end(consume)
        expect(len(service.effects), count, "events with an effect")
        # Killed between the service's answer and the completion: it runs again, with a larger token. No more than ran then.
        late = {name: n for name, n in service.effects.items() if n != 1}
        assert len(late) <= (kills + 1) * 8, (len(late), kills)
        expect(figures["dead_letters"], 0)
        expect(sum(figures["causes"].values()), figures["duplicates"])
        found = causes_are_right(lives.reports, numbers, has_places)
        print(f"# causes: {dict(found)}", flush=True)
        assert found["reread" if has_places else "redelivered"] >= UNHEARD, found
        missed_are_none(lives.reports, numbers)
