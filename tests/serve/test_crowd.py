"""A2: of any number of deliveries at once one runs; the others get its reply, or are told to retry."""

import threading

from daemon import demo, post, serve
from harness import expect, proof, scaled


def crowd(daemon, event_id, count):
    replies = []
    barrier = threading.Barrier(count)

    def send():
        barrier.wait()
        replies.append(post(daemon.gateway, event_id))

    threads = [threading.Thread(target=send) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def rounds(cli, store, count, options=(), config=None):
    kind = store.partition(":")[0] + (", all wait" if config else "")
    with (
        demo(cli, *options) as service,
        serve(cli, service.url, store=store, config=config) as daemon,
        proof(f"gateway, 100 at once ({kind}), rounds", count),
    ):
        for number in range(count):
            replies = crowd(daemon, f"event-{number}", 100)
            expect(len(replies), 100)
            acquired = [reply for reply in replies if reply.decision == "acquired"]
            expect([reply.status for reply in acquired], [200], "who ran it")
            for reply in replies:
                if reply.status == 200:
                    expect(reply.body, acquired[0].body)
                else:
                    expect((reply.status, reply.decision), (409, "in_progress"))
            expect(service.count(), {"received": number + 1, "executed": number + 1, "keys": number + 1})
        return replies


def test_a_hundred_at_once_in_memory(cli):
    rounds(cli, "memory:", scaled(proof=1000, usual=20))


def test_a_hundred_at_once_on_disk(cli):
    rounds(cli, f"file:{cli.folder}/store", scaled(proof=1000, usual=10))


def test_a_hundred_that_wait(cli):
    """With a wait no client is refused: all get the one reply, on whichever loop they came."""
    replies = rounds(cli, "memory:", scaled(proof=100, usual=3), ["--delay", "50ms"], "defaults:\n  wait: 30s\n")
    expect({reply.status for reply in replies}, {200})
