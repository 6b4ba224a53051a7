"""crash.py - a consumer and its broker, killed at random: effects once, nothing lost, causes right. For every broker."""

import os
import random
import time

from harness import expect, proof, scaled
from kafka import Consume, Service


def numbers_of(count, rng):
    """Events in any order, a tenth of them sent twice."""
    numbers = list(range(count)) + rng.sample(range(count), count // 10)
    rng.shuffle(numbers)
    return numbers


def kill_at_random(cli, name, fill, url, kill_broker, is_drained):
    """fill(numbers) sends; url(); kill_broker() or None; is_drained(figures): the broker has no more for us."""
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
        arguments += ["--store", f"file:{cli.folder / 'ledger'}"]
        duplicates = 0
        for turn in range(kills):
            before = len(service.requests)
            consume = Consume(cli, *arguments)
            goal = before + rng.randrange(1, max(2, count // (kills + 1)))
            consume.until(lambda f, goal=goal: len(service.requests) >= goal or len(service.effects) == count, "some were handled")
            # The broker dies under a consumer that lives on, by turns with the consumer.
            if turn % 2 == 0 and kill_broker is not None:
                kill_broker()
                before = len(service.requests)
                consume.until(lambda f, before=before: len(service.requests) > before or len(service.effects) == count, "it goes on")
            consume.kill()
            duplicates += len(consume.all("duplicate"))
        consume = Consume(cli, *arguments)
        consume.until(lambda f: len(service.effects) == count and f.get("in_hand") == 0 and is_drained(f), "all is done")
        figures = consume.stop()
        expect(len(service.effects), count, "events with an effect")
        # Killed between the service's answer and the completion: it runs again, with a larger token. No more than ran then.
        late = {name: n for name, n in service.effects.items() if n != 1}
        assert len(late) <= kills * 16, (len(late), kills)
        expect(figures["dead_letters"], 0)
        causes = figures["causes"]
        expect(sum(causes.values()), figures["duplicates"])
        expect((causes["other_door"], causes["dead_letter"]), (0, 0))
        # What the producer sent twice was found, in one life or another.
        assert duplicates + figures["duplicates"] >= count // 10 - kills * 16, (duplicates, figures)
        return figures
