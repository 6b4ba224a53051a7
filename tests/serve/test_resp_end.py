"""The Redis door while something ends or stands still: draining loses nothing, and a walk through the keys of a slow store
holds up no other client."""

import select
import signal
import socket
import struct
import threading

from daemon import Serve, get, metrics, serve
from harness import TIMEOUT_SECONDS, Skip, expect, is_proof, proof, scaled, until
from redis_wire import OFF, Wire, door, pack
from test_outage import redis


def keys_of(cli, store, keys):
    """How many of them are there after a restart."""
    with serve(cli, None, *OFF, store=store) as daemon, Wire(door(daemon)) as wire:
        found = 0
        for begin in range(0, len(keys), 1000):
            found += int(wire.ask("EXISTS", *keys[begin : begin + 1000])[1:])
        return found


def test_an_idle_client_is_told(cli):
    daemon = Serve(cli, None, *OFF)
    with Wire(door(daemon)) as wire, Wire(door(daemon)) as half:
        expect(wire.ask("SET", "k", "v"), b"+OK\r\n")
        half.send(b"*2\r\n$3\r\nGET\r\n$1")
        daemon.end()
        expect(wire.rest(), b"")
        expect(half.rest(), b"")


def test_what_was_sent_is_answered(cli):
    """Pipelines that are longer than what a loop reads at once, and the signal in their middle."""
    store, count = f"file:{cli.folder}/store", 6000
    daemon = Serve(cli, None, *OFF, "--loops", "1", store=store)
    wires = [Wire(door(daemon)) for _ in range(4)]
    for number, wire in enumerate(wires):
        wire.send(b"".join(pack("SET", f"{number}:{index}", index, "NX", "EX", 86400) for index in range(count)))
    expect(wires[0].reply(), b"+OK\r\n")
    daemon.process.send_signal(signal.SIGTERM)
    for number, wire in enumerate(wires):
        expect(wire.rest(), b"+OK\r\n" * (count - (number == 0)), f"replies to {number}")
        wire.socket.close()
    daemon.end(how=None)
    keys = [f"{number}:{index}" for number in range(len(wires)) for index in range(count)]
    expect(keys_of(cli, store, keys), len(keys))


def keep_setting(to, name, told):
    """Batches of 16 until the other side ends: whole, or not at all."""
    with Wire(to) as wire:
        for batch in range(10**9):
            keys = [f"{name}:{batch}:{index}" for index in range(16)]
            answers = b""
            try:
                wire.send(b"".join(pack("SET", key, "v", "NX") for key in keys))
                answers = b"".join(wire.reply() for _ in keys)
            except (EOFError, OSError):
                told.append((name, len(wire.buffer)))
                return
            if answers != b"+OK\r\n" * 16:
                told.append((name, answers))
                return
            told.extend(keys)


def test_under_load(cli):
    """Clients that wait for their replies: what they were told is there, and no reply comes in part."""
    store = f"file:{cli.folder}/store"
    daemon = Serve(cli, None, *OFF, store=store)
    told = [[] for _ in range(6)]
    threads = [threading.Thread(target=keep_setting, args=(door(daemon), name, told[name])) for name in range(len(told))]
    for thread in threads:
        thread.start()
    enough = scaled(proof=20000, usual=500)
    until(lambda: sum(map(len, told)) > enough and all(told), "all have been told something")
    daemon.end()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    for name, keys in enumerate(told):
        expect(keys.pop(), (name, 0), "the end of what was told")
    keys = sum(told, [])
    expect(keys_of(cli, store, keys), len(keys))


def test_who_is_in_the_queue_is_answered(cli):
    """Connected, and not accepted yet when the signal comes."""
    for where in ("127.0.0.1:0", f"unix:{cli.folder}/door.sock"):
        # More than are accepted in one turn.
        daemon = Serve(cli, None, "--gateway", "off", "--loops", "1", "--resp", where)
        to = door(daemon) if where[0] == "1" else where[5:]
        with Wire(to) as wire:
            expect(wire.ask("PING"), b"+PONG\r\n")
        daemon.process.send_signal(signal.SIGSTOP)
        wires = [Wire(to) for _ in range(400)]
        for number, wire in enumerate(wires):
            # PERSIST takes a round by itself, and the rest waits for it.
            wire.send(pack("SET", number, "v") + pack("PERSIST", number) + pack("GET", number))
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGCONT)
        for wire in wires:
            expect(wire.rest(), b"+OK\r\n:0\r\n$1\r\nv\r\n")
            wire.socket.close()
        daemon.end(how=None)


def test_a_walk_holds_up_nobody(cli):
    """The store stands still: a client that asks for its keys waits, alone."""
    with redis(cli) as server:
        patient = "store: {timeout: 50s}\nresp: {allow_flush: true}\n"
        with serve(cli, None, *OFF, "--loops", "1", store=f"redis+unix:{server.socket}", config=patient) as daemon:
            wires = {words: Wire(door(daemon)) for words in (("SCAN", "0"), ("DBSIZE",), ("FLUSHALL",))}
            with Wire(door(daemon)) as other:
                expect(other.ask("SET", "k", "v"), b"+OK\r\n")
                server.freeze()
                try:
                    for words, wire in wires.items():
                        wire.send(pack(*words))
                        expect(other.ask("PING"), b"+PONG\r\n")
                        expect(wire.has_reply(), False, f"an answer to {words}")
                    # One that does not wait for its answer is none that others wait for.
                    gone = wires.pop(("DBSIZE",))
                    gone.socket.close()
                    expect(other.ask("PING"), b"+PONG\r\n")
                finally:
                    server.thaw()
                expect(wires[("SCAN", "0")].reply(), b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n")
                expect(wires[("FLUSHALL",)].reply(), b"+OK\r\n")
                expect(other.ask("DBSIZE"), b":0\r\n")
            for wire in wires.values():
                wire.socket.close()


def vanish(wire):
    """The connection is reset: nothing that is written to it arrives."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.socket.close()


def record(daemon, key):
    return get(daemon.admin, f"/api/v1/keys/default/default/{key}").json


def test_a_transaction_is_done_as_a_whole(cli):
    """Its client goes away while the store has the first half; and so does one whose command takes two steps."""
    with redis(cli) as server:
        patient = "store: {timeout: 50s}\n"
        with serve(cli, None, *OFF, "--loops", "1", store=f"redis+unix:{server.socket}", config=patient) as daemon:
            with Wire(door(daemon)) as other:
                expect(other.ask("SET", "step", "v"), b"+OK\r\n")
                wires = Wire(door(daemon)), Wire(door(daemon))
                queue = [["MULTI"], ["SET", "a", "v"], ["PERSIST", "a"], ["DBSIZE"], ["ECHO", "x"], ["SET", "b", "v"]]
                expect(wires[0].pipeline(queue), [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 5)
                server.freeze()
                try:
                    wires[0].send(pack("EXEC"))
                    wires[1].send(pack("EXPIRE", "step", 1000, "NX"))
                    expect(other.ask("PING"), b"+PONG\r\n")
                    for wire in wires:
                        vanish(wire)
                    expect(other.ask("PING"), b"+PONG\r\n")
                finally:
                    server.thaw()
                # Without a client at this listener that would take it along.
                until(lambda: record(daemon, "b").get("state") == "done", "the last command is done, too")
                until(lambda: record(daemon, "step")["ttl_ms"] == 1000000, "the second step is done")
                expect(other.ask("MGET", "a", "b"), b"*2\r\n$1\r\nv\r\n$1\r\nv\r\n")


def keep_flooding(to, flood, stop):
    with Wire(to) as wire:
        while not stop.is_set():
            wire.send(flood)
            left = 1024 * len(b"+OK\r\n")
            while left > 0 and (piece := wire.socket.recv(left)):
                left -= len(piece)


def test_who_waits_for_room_has_its_turn(cli):
    """Pipelines of others fill every round; a transaction that takes several rounds goes on all the same."""
    store, count, rounds = f"file:{cli.folder}/store", 40, scaled(proof=200, usual=10)
    flood = b"".join(pack("SET", index, "v") for index in range(1024))
    with serve(cli, None, *OFF, "--loops", "1", store=store) as daemon, Wire(door(daemon)) as wire:
        stop = threading.Event()
        threads = [threading.Thread(target=keep_flooding, args=(door(daemon), flood, stop)) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(rounds):
                queue = [["MULTI"], ["SET", "a", "v"], ["PERSIST", "a"], ["SET", "b", "v"], ["EXEC"]]
                expect(wire.pipeline(queue)[-1], b"*3\r\n+OK\r\n:0\r\n+OK\r\n")
        finally:
            stop.set()
            for thread in threads:
                thread.join(TIMEOUT_SECONDS)


def is_sent_away(daemon):
    return metrics(daemon).get('hapax_refused_total{reason="send_timeout"}', 0) == 1


def test_who_reads_a_little_now_and_then(cli):
    """What waits for it is not held forever, and no other client waits."""
    if not is_proof():
        raise Skip("only for make proof: the door is patient for 30 s")
    with proof("slow reader of the Redis door is sent away", 1), serve(cli, None, *OFF) as daemon:
        with socket.socket() as slow, Wire(door(daemon)) as other:
            # So that the kernel holds little for it, and takes more as soon as it reads.
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(door(daemon))
            expect(other.ask("SET", "k", "x" * 200000), b"+OK\r\n")
            slow.sendall(pack("GET", "k") * 200)
            for _ in range(240):
                select.select([], [], [], 0.5)
                if is_sent_away(daemon) or not slow.recv(1024):
                    break
            expect(is_sent_away(daemon), True)
            expect(other.ask("STRLEN", "k"), b":200000\r\n")
