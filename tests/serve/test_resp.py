"""The Redis door: the same commands to hapax and to a real redis-server, the same bytes back."""

import contextlib
import hashlib
import os
import random
import signal

from daemon import Serve, get, log_line, metrics, serve
from harness import ROOT, expect, proof, scaled
from redis_wire import OFF, Wire, door, pack, real_redis

ERRORS = "resp:\n  allow_flush: true\n  test_commands: true\n"


def seed_of(name):
    seed = int(os.environ.get("HAPAX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# {name}: HAPAX_TEST_SEED={seed}", flush=True)
    return random.Random(seed)


def replies_of(wire, commands):
    return list(zip(commands, wire.pipeline(commands)))


def compare(mine, theirs, what):
    """TTL and related commands may differ by the time that passed between the two."""
    for (command, got), (_, expected) in zip(mine, theirs):
        if got == expected:
            continue
        name = str(command[0]).upper()
        if name in ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME") and got[:1] == expected[:1] == b":":
            slack = 120 * (1000 if name[0] == "P" else 1)
            if int(got[1:]) >= 0 and abs(int(got[1:]) - int(expected[1:])) <= slack:
                continue
        # Redis counts what has expired until it happens to notice.
        if name == "DBSIZE" and int(got[1:]) < int(expected[1:]):
            continue
        raise AssertionError(f"{what}: {command}: {got!r} instead of {expected!r}")


class Stream:
    """Random commands on a few keys. Times to live are far apart, so that it does not matter how fast the servers are."""

    def __init__(self, rng):
        self.rng = rng
        self.spans = 0

    def key(self):
        return self.rng.choice(["a", "b", "c", "order:1", b"\x00\xff\r\n", "k" * 200])

    def value(self):
        return self.rng.choice(["", "1", "value", b"\x00bin\r\n", "x" * 1000, "-5", "99999999999999999999"])

    def span(self):
        self.spans += 1
        return 100000 * (1 + self.spans % 30000)

    def far(self):
        return 3000000000 + 1000000 * self.rng.randrange(1000)

    def number(self, is_ms=False):
        """None, or not above zero, or too much: Redis takes points in time beyond a hundred years, if in milliseconds."""
        huge = [] if is_ms else ["9223372036854775807"]
        return self.rng.choice(["0", "-1", "abc", "", "1.5", " 1", "+1", "01", "-9223372036854775808", *huge])

    def time(self):
        """An option with its value, mostly a good one."""
        word = self.rng.choice(["EX", "PX", "EXAT", "PXAT", "ex", "Px"])
        if self.rng.random() < 0.25:
            return [word, self.number("P" in word.upper())] if self.rng.random() < 0.8 else [word]
        good = {"EX": self.span(), "PX": self.span() * 1000, "EXAT": self.far(), "PXAT": self.far() * 1000}
        if word.upper().endswith("AT") and self.rng.random() < 0.3:
            return [word, 1]
        return [word, good[word.upper()]]

    def set(self):
        words = ["SET", self.key(), self.value()]
        for _ in range(self.rng.randrange(4)):
            words += self.rng.choice([["NX"], ["XX"], ["GET"], ["KEEPTTL"], self.time(), self.time(), ["nx"], ["junk"]])
        return words

    def expire(self):
        name = self.rng.choice(["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"])
        base = self.far() if name.endswith("AT") else self.span()
        amount = self.rng.choice([base * (1000 if name[0] == "P" else 1)] * 4 + [self.number(name[0] == "P"), -1, 1 if "AT" in name else 0])
        options = self.rng.choice([[], [], ["NX"], ["XX"], ["GT"], ["LT"], ["NX", "GT"], ["GT", "LT"], ["XX", "GT"], ["FOO"]])
        return [name, self.key(), amount, *options]

    def getex(self):
        return ["GETEX", self.key(), *self.rng.choice([[], ["PERSIST"], self.time(), self.time(), ["PERSIST", "EX", 1], ["x"]])]

    def plain(self):
        key, rng = self.key, self.rng
        return rng.choice(
            [
                lambda: ["GET", key()],
                lambda: ["get", key()],
                lambda: ["SETNX", key(), self.value()],
                lambda: ["SETEX", key(), rng.choice([self.span(), self.number()]), self.value()],
                lambda: ["PSETEX", key(), rng.choice([self.span(), self.number()]), self.value()],
                lambda: ["GETDEL", key()],
                lambda: ["GETSET", key(), self.value()],
                lambda: ["TOUCH", key(), key()],
                lambda: ["KEYS", rng.choice(["nosuch*", "[", ""])],
                lambda: ["MGET", key(), key(), key()],
                lambda: ["STRLEN", key()],
                lambda: ["DEL", key(), key()],
                lambda: ["UNLINK", key()],
                lambda: ["EXISTS", key(), key(), key()],
                lambda: ["TYPE", key()],
                lambda: ["TTL", key()],
                lambda: ["PTTL", key()],
                lambda: ["EXPIRETIME", key()],
                lambda: ["PEXPIRETIME", key()],
                lambda: ["PERSIST", key()],
                lambda: ["DBSIZE"],
                lambda: ["PING"],
                lambda: ["PING", self.value()],
                lambda: ["ECHO", self.value()],
                lambda: ["SELECT", rng.choice([0, 1, -1, "x", 1 << 31, 1 << 64])],
            ]
        )()

    def odd(self):
        """Wrong in some way."""
        return self.rng.choice(
            [
                ["NOSUCH", self.key(), self.value()],
                ["GET"],
                ["SET", self.key()],
                ["ping", "a", "b"],
                ["CLIENT"],
                ["CLIENT", "NOSUCH"],
                ["CONFIG"],
                ["CONFIG", "NOSUCH"],
                ["COMMAND", "NOSUCH"],
                ["EXPIRE", self.key()],
                ["", "x"],
                ["AUTH", "x"],
                ["AUTH", "default", "x"],
                ["AUTH", "nobody", "x"],
                ["AUTH", "a", "b", "c"],
                ["HELLO", "x"],
                ["HELLO", "4"],
                ["HELLO", "2", "FOO"],
                ["CLIENT", "SETNAME", "a b"],
                ["CLIENT", "SETNAME", "worker"],
                ["CLIENT", "GETNAME"],
                ["CLIENT", "REPLY", "x"],
                ["CLIENT", "NO-EVICT", "on"],
                ["CLIENT", "ID", "x"],
                ["SCAN", "x"],
                ["SCAN", "0", "COUNT", "0"],
                ["SCAN", "0", "COUNT", "x"],
                ["SCAN", "0", "FOO", "1"],
                ["SCAN", "0", "MATCH"],
                ["EXEC"],
                ["DISCARD"],
                ["FLUSHALL", "x"],
            ]
        )

    def command(self):
        return self.rng.choices([self.set, self.expire, self.getex, self.plain, self.odd], [4, 2, 1, 8, 1])[0]()

    def commands(self, count):
        commands = []
        while len(commands) < count:
            if self.rng.random() < 0.05:
                inner = [self.command() for _ in range(self.rng.randrange(6))]
                # Their numbers would have to be found in the reply of EXEC.
                inner = [words for words in inner if not any(part in words[0] for part in ("TTL", "TIME", "DBSIZE"))]
                commands += [["MULTI"], *inner, self.rng.choice([["EXEC"], ["EXEC"], ["EXEC"], ["DISCARD"]])]
            else:
                commands.append(self.command())
        return commands


def run_streams(cli, store, rounds):
    rng = seed_of(f"commands on {store.split(':')[0]}")
    with real_redis(cli) as reference, serve(cli, None, *OFF, store=store, config=ERRORS) as daemon:
        with Wire(door(daemon)) as mine, Wire(reference) as theirs:
            stream = Stream(rng)
            protocol = 2
            for number in range(rounds):
                if rng.random() < 0.1:
                    protocol = rng.choice([2, 3])
                    mine.ask("HELLO", protocol)
                    theirs.ask("HELLO", protocol)
                commands = stream.commands(rng.choice([1, 5, 50]))
                compare(replies_of(mine, commands), replies_of(theirs, commands), f"RESP{protocol}, batch {number}")


def test_random_commands_in_memory(cli):
    run_streams(cli, "memory:", scaled(proof=20000, usual=300))


def test_random_commands_on_file(cli):
    run_streams(cli, f"file:{cli.folder}/store", scaled(proof=2000, usual=60))


def test_points_in_time(cli):
    """What EXPIRETIME gives back is the number that was given, to the millisecond, on every store of its own clock."""
    at = 4102444800000
    commands = []
    for number in range(20):
        ms, seconds = at + 7919 * number, at // 1000 + number
        commands += [["SET", "k", "v", "PXAT", ms], ["PEXPIRETIME", "k"], ["EXPIRETIME", "k"]]
        commands += [["SET", "k", "v", "EXAT", seconds], ["PEXPIRETIME", "k"]]
        commands += [["PEXPIREAT", "k", ms + 1], ["PEXPIRETIME", "k"], ["PEXPIREAT", "k", ms + 1, "GT"]]
        commands += [["PEXPIREAT", "k", ms + 2, "GT"], ["PEXPIREAT", "k", ms + 1, "LT"], ["PEXPIRETIME", "k"]]
        commands += [["EXPIREAT", "k", seconds], ["PEXPIRETIME", "k"], ["GETEX", "k", "PXAT", ms + 3], ["PEXPIRETIME", "k"]]
        commands += [["GETEX", "k", "EXAT", seconds + 1], ["PEXPIRETIME", "k"], ["SET", "k", "w", "KEEPTTL"], ["PEXPIRETIME", "k"]]
    commands = [[str(word) for word in words] for words in commands]
    with real_redis(cli) as reference:
        stores = ["memory:", f"file:{cli.folder}/points", f"sqlite:{cli.folder}/points.db"]
        with Wire(reference) as theirs:
            expected = replies_of(theirs, commands)
        for store in [*stores, f"redis+unix:{reference}"]:
            with serve(cli, None, *OFF, store=store) as daemon, Wire(door(daemon)) as mine:
                expect(replies_of(mine, commands), expected, store)


BAD_BYTES = [
    b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfoo\r\n",
    b"*-10\r\n*0\r\n\r\nPING\r\nQUIT\r\n",
    b"*20000000000\r\n",
    b"*abc\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz$\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
    b'SET x "unbalanced\r\nPING\r\n',
    b"SET 'a b' \"c\\x41\\n\"\r\nGET 'a b'\r\nQUIT\r\n",
    b"x" * 70000,
    b"*" + b"1" * 70000,
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"   PING   \r\nquit\r\n",
    b"\x16\x03\x01\x02\x01\r\nQUIT\r\n",
    b"Host: localhost\r\nPING\r\n",
    b"PING\nPING\r\n",
    b"$4\r\nPING\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$ 4\r\nPING\r\n",
    b"*+1\r\n$4\r\nPING\r\n",
    b"*01\r\n$4\r\nPING\r\n",
    b"*1\r\n$04\r\nPING\r\n",
    b"*1\r\n$0\r\n\r\nPING\r\n",
    b"*1\r\n$536870913\r\n",
    b"*2147483648\r\n",
    b"*-9223372036854775808\r\nPING\r\n",
    b"*99999999999999999999999\r\n",
    b"ECHO 'a\\'b'\r\nECHO \"\\x41\\n\"\r\n",
    b"ECHO 'a'b\r\n",
    b"nosuch" + b"y" * 300 + b" " + b"z" * 300 + b"\r\n",
    b"GET a\x00b c\r\n",
]


def test_bytes_that_are_no_command(cli):
    with real_redis(cli) as reference, serve(cli, None, *OFF) as daemon:
        for data in BAD_BYTES:
            answers = []
            for to in (door(daemon), reference):
                with Wire(to) as wire:
                    wire.send(data)
                    wire.end()
                    answers.append(wire.rest())
            expect(answers[0], answers[1], f"answer to {data[:60]!r}")


def test_arity_of_every_command(cli):
    """One argument too few, and one too many, of all that both have."""
    with real_redis(cli) as reference, serve(cli, None, *OFF) as daemon, Wire(door(daemon)) as mine, Wire(reference) as theirs:
        names = mine.ask("COMMAND", "LIST").split(b"\r\n")[2::2]
        commands = [["COMMAND", "INFO", "nosuch", "config|nosuch"]]
        for name in names:
            info = theirs.ask("COMMAND", "INFO", name)
            if info == b"*1\r\n$-1\r\n":
                expect(name.startswith(b"hapax.") or name == b"delex", True, f"is {name!r} ours")
                continue
            arity = int(info.split(b"\r\n")[4][1:])
            commands += [[name] + ["x"] * count for count in range(abs(arity) - 1)]
            if arity > 0:
                commands.append([name] + ["x"] * arity)
        assert len(commands) > 60, commands
        compare(replies_of(mine, commands), replies_of(theirs, commands), "arity")


def test_split_at_every_byte(cli):
    data = pack("SET", "k", "v", "NX", "EX", 86400) + b"GET 'k'\r\n" + pack("MULTI") + pack("GET", "k") + pack("EXEC") + pack("QUIT")
    answer = None
    with serve(cli, None, *OFF, config=ERRORS) as daemon:
        for cut in range(1, len(data)):
            with Wire(door(daemon)) as wire:
                wire.ask("FLUSHALL")
                wire.send(data[:cut])
                wire.send(data[cut:])
                got = wire.rest()
                answer = answer or got
                expect(got, answer, f"cut at {cut}")
    expect(answer, b"+OK\r\n$1\r\nv\r\n+OK\r\n+QUEUED\r\n*1\r\n$1\r\nv\r\n+OK\r\n")


def test_users(cli):
    digest = hashlib.sha256(b"secret").hexdigest()
    config = f"resp:\n  users:\n    - {{name: default, password_sha256: {digest}}}\n    - {{name: acme, password_sha256: {digest}, tenant: acme}}\n"
    with serve(cli, None, *OFF, config=config) as daemon, real_redis(cli, "--requirepass", "secret") as reference:
        commands = [["PING"], ["NOSUCH"], ["GET"], ["HELLO", 3], ["AUTH", "wrong"], ["AUTH", "acme", "wrong"], ["AUTH", "secret"], ["SET", "k", "default"]]
        with Wire(door(daemon)) as mine, Wire(reference) as theirs:
            compare(replies_of(mine, commands), replies_of(theirs, commands), "before AUTH")
        # Wrong passwords are noticed.
        line = daemon.wait_for(lambda text: log_line(text) if "authentication failed" in text else None)
        expect((line["door"], line["client"]), ("resp", "127.0.0.1"))
        expect(metrics(daemon)['hapax_refused_total{reason="credential"}'], 2)
        for data in (b"*11\r\n", b"*1\r\n$20000\r\n"):
            answers = []
            for to in (door(daemon), reference):
                with Wire(to) as wire:
                    wire.send(data)
                    answers.append(wire.rest())
            expect(answers[0], answers[1], f"answer to {data!r}")
        with Wire(door(daemon)) as wire:
            expect(wire.ask("AUTH", "acme", "secret"), b"+OK\r\n")
            expect(wire.ask("SET", "k", "acme", "NX"), b"+OK\r\n")
            expect(wire.ask("RESET"), b"+RESET\r\n")
            expect(wire.ask("GET", "k"), b"-NOAUTH Authentication required.\r\n")
            assert wire.ask("HELLO", 3, "AUTH", "default", "secret").startswith(b"%7\r\n")
            expect(wire.ask("GET", "k"), b"$7\r\ndefault\r\n")
            wire.ask("SET", "other", "1")
            expect(wire.ask("DBSIZE"), b":2\r\n")
            wire.ask("AUTH", "acme", "secret")
            expect(wire.ask("DBSIZE"), b":1\r\n")


def test_scan_and_flush(cli):
    with serve(cli, None, *OFF, config=ERRORS) as daemon, Wire(door(daemon)) as wire:
        names = {f"key:{number}" for number in range(2000)}
        wire.pipeline([["SET", name, "v"] for name in sorted(names)])
        wire.pipeline([["SET", f"other:{number}", "v"] for number in range(100)])
        seen, cursor = set(), b"0"
        while True:
            wire.send(pack("SCAN", cursor, "MATCH", "key:*", "COUNT", 100))
            lines = wire.reply().split(b"\r\n")
            cursor = lines[2]
            seen |= {line.decode() for line in lines[5::2]}
            if cursor == b"0":
                break
        expect(seen, names)
        expect(wire.ask("DBSIZE"), b":2100\r\n")
        expect(wire.ask("SCAN", "12345678"), b"-ERR invalid cursor\r\n")
        expect(wire.ask("FLUSHALL"), b"+OK\r\n")
        expect(wire.ask("DBSIZE"), b":0\r\n")
    with serve(cli, None, *OFF) as daemon, Wire(door(daemon)) as wire:
        assert wire.ask("FLUSHDB").startswith(b"-NOPERM ")
        expect(wire.ask("FUNCTION", "FLUSH")[:20], b"-ERR unknown command")


def test_a_long_pipeline(cli):
    with serve(cli, None, *OFF, "--loops", "1") as daemon:
        wires = [Wire(door(daemon)) for _ in range(8)]
        for number, wire in enumerate(wires):
            wire.send(b"".join(pack("SET", f"{number}:{index}", index, "NX", "EX", 1000) for index in range(6000)))
        for wire in wires:
            for _ in range(6000):
                expect(wire.reply(), b"+OK\r\n")
        for number, wire in enumerate(wires):
            wire.send(pack("MGET", *[f"{number}:{index}" for index in range(6000)]))
            assert wire.reply().split(b"\r\n")[2::2] == [b"%d" % index for index in range(6000)]
            wire.socket.close()


def test_killed_under_load(cli):
    """Every key that was acknowledged is there after kill -9."""
    store = f"file:{cli.folder}/store"
    kills = scaled(proof=100, usual=3)
    with proof("kill -9 of the Redis door under load", kills):
        check_killed(cli, store, kills)


def check_killed(cli, store, kills):
    told = {}
    for number in range(kills):
        daemon = Serve(cli, None, *OFF, store=store)
        wires = [Wire(door(daemon)) for _ in range(4)]
        for index, wire in enumerate(wires):
            wire.send(b"".join(pack("SET", f"{number}:{index}:{key}", key, "NX", "EX", 86400) for key in range(2000)))
        count = [0] * len(wires)
        enough = random.Random(number).randrange(1, 4000)
        try:
            while sum(count) < enough:
                for index, wire in enumerate(wires):
                    for _ in range(16):
                        expect(wire.reply(), b"+OK\r\n")
                        count[index] += 1
        finally:
            daemon.kill()
        told.update({f"{number}:{index}:{key}": key for index in range(len(wires)) for key in range(count[index])})
        for wire in wires:
            wire.socket.close()
    with serve(cli, None, *OFF, store=store) as daemon, Wire(door(daemon)) as wire:
        for key, reply in zip(told, wire.pipeline([["GET", key] for key in told])):
            value = b"%d" % told[key]
            expect(reply, b"$%d\r\n%s\r\n" % (len(value), value), key)


def test_other_doors(cli):
    """Records of other doors can be read, and are not written."""
    store = f"sqlite:{cli.folder}/hapax.db"
    claimed = cli.run("claim", "claimed", "--store", store, "-o", "json").json
    cli.run("check", "checked", "--store", store)
    done = cli.run("claim", "done", "--store", store, "-o", "json").json
    (cli.folder / "result").write_text("the result", encoding="utf-8")
    cli.run("complete", "done", "--store", store, "--token", str(done["token"]), "--result", str(cli.folder / "result"))
    failed = cli.run("claim", "failed", "--store", store, "-o", "json").json
    cli.run("release", "failed", "--store", store, "--token", str(failed["token"]))
    busy, nil = b"-BUSYKEY key is claimed\r\n", b"$-1\r\n"
    with serve(cli, None, *OFF, store=store) as daemon, Wire(door(daemon)) as wire:
        for key, value in (("claimed", nil), ("checked", b"$0\r\n\r\n"), ("done", b"$10\r\nthe result\r\n")):
            expect(wire.ask("GET", key), value)
            expect(wire.ask("EXISTS", key), b":1\r\n")
            expect(wire.ask("SET", key, "x", "NX"), nil)
            # Null would say that it was set.
            expect(wire.ask("SET", key, "x", "NX", "GET"), busy if key == "claimed" else value)
            for command in (["SET", key, "x"], ["DEL", key], ["GETDEL", key], ["EXPIRE", key, 10], ["SET", key, "x", "XX"]):
                expect(wire.ask(*command), busy, f"{command}")
        expect(wire.ask("TTL", "claimed"), b":-1\r\n")
        expect(wire.ask("GET", "failed"), nil)
        expect(wire.ask("EXISTS", "failed"), b":0\r\n")
        expect(wire.ask("SET", "failed", "x", "NX", "EX", 60), b"+OK\r\n")
    cli.run("renew", "claimed", "--store", store, "--token", str(claimed["token"]))
    assert ROOT


def fields(reply):
    """A map or flat array of words and their values."""
    parts, lines = [], reply.split(b"\r\n")[1:]
    while lines and lines[0]:
        if lines[0][:1] == b"$":
            parts.append(lines[1].decode())
            lines = lines[2:]
        else:
            parts.append(int(lines[0][1:]))
            lines = lines[1:]
    return dict(zip(parts[::2], parts[1::2]))


def test_claims(cli):
    """HAPAX.*: the record's table, through any client of Redis."""
    fenced, busy = b"-FENCED the token does not hold the key\r\n", b"-BUSYKEY key is claimed\r\n"
    mine, other = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    with serve(cli, None, *OFF, store=f"file:{cli.folder}/store") as daemon, Wire(door(daemon)) as wire:
        first = fields(wire.ask("HAPAX.CLAIM", "k", "FINGERPRINT", mine, "LEASE", 60000, "TTL", 3600000, "OWNER", "me"))
        expect((first["outcome"], first["attempt"]), ("acquired", 1))
        # The token is told to who acquired, and with the record.
        for words, outcome in ((("claim", "k", "FINGERPRINT", mine), "in_progress"), (("check", "k"), "in_progress"),
                               (("claim", "k", "FINGERPRINT", other), "mismatch")):
            told = fields(wire.ask("hapax." + words[0], *words[1:]))
            expect((told["outcome"], "token" in told), (outcome, False))
        expect(fields(wire.ask("HAPAX.LOOKUP", "k"))["token"], first["token"])
        expect(wire.ask("SET", "k", "v"), busy)
        expect(wire.ask("HAPAX.COMPLETE", "k", first["token"] + 1), fenced)
        expect(wire.ask("HAPAX.RENEW", "k", first["token"], "LEASE", 1000), b"+OK\r\n")
        expect(wire.ask("HAPAX.FORGET", "k"), busy)
        expect(wire.ask("HAPAX.RELEASE", "k", first["token"], "ERROR", "no luck"), b"+OK\r\n")
        expect(fields(wire.ask("HAPAX.LOOKUP", "k"))["error"], "no luck")
        second = fields(wire.ask("HAPAX.CLAIM", "k", "FINGERPRINT", mine))
        expect((second["outcome"], second["attempt"], second["token"] > first["token"]), ("acquired", 2, True))
        expect(wire.ask("HAPAX.PARK", "k", second["token"], "ERROR", "who knows"), b"+OK\r\n")
        told = fields(wire.ask("HAPAX.CLAIM", "k"))
        expect((told["outcome"], "token" in told), ("parked", False))
        expect(wire.ask("HAPAX.RESOLVE", "k", "DONE", "the result"), b"+OK\r\n")
        expect(fields(wire.ask("HAPAX.CLAIM", "k", "FINGERPRINT", mine))["result"], "the result")
        expect(wire.ask("GET", "k"), b"$10\r\nthe result\r\n")
        wire.ask("HELLO", 3)
        told = [fields(wire.ask("HAPAX.CHECK", "m", "TTL", 1000000)) for _ in range(2)]
        expect([(answer["outcome"], "token" in answer) for answer in told], [("acquired", True), ("replay", False)])
        expect(wire.ask("HAPAX.FORGET", "m"), b":1\r\n")
        expect(wire.ask("HAPAX.FORGET", "m"), b":0\r\n")
        expect(wire.ask("HAPAX.LOOKUP", "m"), b"_\r\n")
        third = fields(wire.ask("HAPAX.CLAIM", "n"))
        expect(wire.ask("HAPAX.COMPLETE", "n", third["token"], "RESULT", "no", "CLASS", "DEFINITIVE"), b"+OK\r\n")
        expect(fields(wire.ask("HAPAX.LOOKUP", "n"))["state"], "done")
        for words in (["HAPAX.CLAIM", "x", "LEASE"], ["HAPAX.CLAIM", "x", "ERROR", "e"], ["HAPAX.RESOLVE", "x", "NO"], ["HAPAX.FORGET", "x", "y"]):
            expect(wire.ask(*words), b"-ERR syntax error\r\n", f"{words}")
        assert wire.ask("HAPAX.CLAIM", "x", "FINGERPRINT", "abc").startswith(b"-ERR a fingerprint")
        assert wire.ask("HAPAX.COMPLETE", "x", "0").startswith(b"-ERR a token")
        expect(wire.ask("HAPAX.RESOLVE", "absent", "RETRY"), b"-ERR no such record\r\n")


def test_settings_of_a_scope(cli):
    """What stands there once counts for claims at this door, too, also after a reload; SET is as Redis has it."""
    hashed = hashlib.sha256(b"s").hexdigest()
    resp = f"resp:\n  users:\n    - {{name: pay, password_sha256: {hashed}, tenant: pay}}\n"
    with serve(cli, None, *OFF, config=resp + "scopes:\n  - {scope: pay/default, ttl: 30d, on_lapse: park}\n") as daemon:

        def record(key):
            found = get(daemon.admin, f"/api/v1/keys/pay/default/{key}").json
            return found["ttl_ms"], found.get("on_lapse")

        with Wire(door(daemon)) as wire:
            expect(wire.ask("AUTH", "pay", "s"), b"+OK\r\n")
            wire.pipeline([["HAPAX.CLAIM", "a"], ["HAPAX.CHECK", "b"], ["HAPAX.CLAIM", "c", "TTL", 5000, "ON-LAPSE", "RETRY"]])
            expect([record(key) for key in "abc"], [(30 * 86400000, "park"), (30 * 86400000, None), (5000, "retry")])
            daemon.config.write_text(resp + "scopes:\n  - {scope: pay/default, ttl: 7d}\n", encoding="utf-8")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(lambda line: "configuration reloaded" in line)
            wire.ask("HAPAX.CLAIM", "d")
            expect(record("d"), (7 * 86400000, "retry"))
            wire.ask("SET", "e", "v")
            expect(wire.ask("TTL", "e"), b":-1\r\n")


UNLOCK = 'if redis.call("get",KEYS[1]) == ARGV[1] then\n    return redis.call("del",KEYS[1])\nelse\n    return 0\nend'
TOUCH = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end"


# Of npm redlock 4.2.0 and 5.0.0-beta.2.
REDLOCK_SET = """
	for i, key in ipairs(KEYS) do
		redis.call("set", key, ARGV[1], "PX", ARGV[2])
	end

	-- Return the number of entries.
	return #KEYS
"""
REDLOCK_LOCK = """
	-- Return 0 if an entry already exists.
	for i, key in ipairs(KEYS) do
		if redis.call("exists", key) == 1 then
			return 0
		end
	end
""" + REDLOCK_SET
REDLOCK_EXTEND = """
	-- Return 0 if an entry exists with a *different* lock value.
	for i, key in ipairs(KEYS) do
		if redis.call("get", key) ~= ARGV[1] then
			return 0
		end
	end
""" + REDLOCK_SET
REDLOCK_UNLOCK = """
	local count = 0
	for i, key in ipairs(KEYS) do
		-- Only remove entries for *this* lock value.
		if redis.call("get", key) == ARGV[1] then
			redis.pcall("del", key)
			count = count + 1
		end
	end
	return count
"""
CHECK_AND_SET = """
local key = KEYS[1]; local value = ARGV[1]; local ttl = ARGV[2]
if redis.call("exists", key) == 1
then return redis.call("get", key) -- the first one
else redis.call("setex", key, ttl, value); return nil end -- ours
"""
CHECK_AND_RESERVE = """
local key = KEYS[1]; local ttl = ARGV[1]; local timestamp = ARGV[2]
if redis.call("exists", key) == 1 -- seen before
then redis.call("hincrby", "dedup_stats", "duplicates", 1); return 1
else redis.call("setex", key, ttl, timestamp) -- new
redis.call("hincrby", "dedup_stats", "processed", 1); return 0 end
"""


def test_script_is_one_step(cli):
    """E3: of many clients that check and set a key at once, one sets it, and all others get its value."""
    with serve(cli, None, *OFF, config="loops: 3\n") as daemon, contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(door(daemon))) for _ in range(24)]
        for job in range(scaled(500, 20)):
            for number, wire in enumerate(wires):
                wire.send(pack("EVAL", CHECK_AND_SET, 1, f"job-{job}", f"id-{number}", 1000))
            replies = [wire.reply() for wire in wires]
            winners = [number for number, reply in enumerate(replies) if reply == b"$-1\r\n"]
            expect(len(winners), 1)
            value = f"id-{winners[0]}".encode()
            expect({reply for reply in replies} - {b"$-1\r\n"}, {b"$%d\r\n%s\r\n" % (len(value), value)})


def test_scripts_of_locks(cli):
    """Known scripts do what they do in a real Redis; others are refused."""
    sha1 = hashlib.sha1(UNLOCK.encode()).hexdigest()
    commands = [
        ["EVALSHA", sha1, 1, "lock", "t"],
        ["SCRIPT", "EXISTS", sha1],
        ["SCRIPT", "LOAD", UNLOCK],
        ["SCRIPT", "EXISTS", sha1, "0" * 40],
        ["EVALSHA", sha1, 1, "lock", "t"],
        ["SET", "lock", "t", "NX", "PX", 1000000],
        ["EVALSHA", sha1, 1, "lock", "other"],
        ["GET", "lock"],
        ["EVAL", TOUCH, 1, "lock", "other", 9000000],
        ["EVAL", TOUCH, 1, "lock", "t", 9000000],
        ["TTL", "lock"],
        ["EVALSHA", sha1.upper(), 1, "lock", "t"],
        ["GET", "lock"],
        ["EVAL", UNLOCK, "x", "lock", "t"],
        ["EVAL", UNLOCK, -1, "lock", "t"],
        ["EVAL", UNLOCK, 3, "lock", "t"],
        ["SCRIPT", "NOSUCH"],
        ["EVAL", REDLOCK_LOCK, 2, "r1", "r2", "t", 1000000],
        ["EVAL", REDLOCK_LOCK, 2, "r2", "r3", "u", 1000000],
        ["EXISTS", "r1", "r2", "r3"],
        ["EVAL", REDLOCK_LOCK, 3, "r4", "r4", "r5", "t", 1000000],
        ["EVAL", REDLOCK_EXTEND, 2, "r1", "r2", "t", 9000000],
        ["TTL", "r1"],
        ["EVAL", REDLOCK_EXTEND, 2, "r1", "r3", "t", 20000000],
        ["TTL", "r1"],
        ["EVAL", REDLOCK_UNLOCK, 3, "r1", "r2", "r3", "u"],
        ["EVAL", REDLOCK_UNLOCK, 3, "r1", "r2", "r3", "t"],
        ["EXISTS", "r1", "r2", "r3"],
        ["EVAL", CHECK_AND_SET, 1, "job", "id-1", 1000],
        ["EVAL", CHECK_AND_SET, 1, "job", "id-2", 1000],
        ["TTL", "job"],
        ["EVAL", CHECK_AND_RESERVE, 1, "event", 1000, 1700000000],
        ["EVAL", CHECK_AND_RESERVE, 1, "event", 1000, 1700000001],
        ["GET", "event"],
    ]
    with real_redis(cli) as reference, serve(cli, None, *OFF) as daemon:
        with Wire(door(daemon)) as mine, Wire(reference) as theirs:
            compare(replies_of(mine, commands), replies_of(theirs, commands), "scripts")
            assert mine.ask("EVAL", "return 1", 0).startswith(b"-ERR unknown script")
            mine.ask("SET", "k", "v")
            expect(mine.ask("DELEX", "k", "IFEQ", "w"), b":0\r\n")
            expect(mine.ask("DELEX", "k", "IFEQ", "v"), b":1\r\n")
            expect(mine.ask("DELEX", "k", "IFEQ", "v"), b":0\r\n")
            mine.ask("SET", "k", "v")
            expect(mine.ask("SET", "k", "w", "IFEQ", "x"), b"$-1\r\n")
            expect(mine.ask("SET", "k", "w", "IFEQ", "v"), b"+OK\r\n")
            expect(mine.ask("DELEX", "k"), b":1\r\n")
            expect(mine.ask("DELEX", "k", "FOO", "v"), b"-ERR syntax error\r\n")
