"""Locks of others at the Redis door: taken, extended and released whole, or refused before they are taken."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from daemon import serve
from harness import Skip, expect, is_proof, proof
from redis_wire import OFF, Wire, door, real_redis
from test_resp import compare, replies_of

# What the scripts of each library do, in words of our own for a real Redis; hapax knows them by their SHA-1.
COMPARE = "if redis.call('get', KEYS[1]) ~= ARGV[1] then "
EACH = "for _, key in ipairs(KEYS) do "
ALL_EQUAL = EACH + "if redis.call('get', key) ~= ARGV[1] then return false end end "
OBTAIN = (
    "local n = tonumber(ARGV[2]) local free, ours = true, true "
    + EACH
    + "local old = redis.call('get', key) if old then free = false end "
    "if not old or string.sub(old, 1, n) ~= string.sub(ARGV[1], 1, n) then ours = false end end "
    "if not free and not ours then return false end "
    + EACH
    + "redis.call('set', key, ARGV[1], 'px', ARGV[3]) end return redis.status_reply('OK')"
)
SCRIPTS = {
    "redsync delete": (
        "e950836ed1e694540c503ef9972b8de518044d3b",
        "local v = redis.call('get', KEYS[1]) if not v then return -1 end if v ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])",
    ),
    "redsync extend or set": (
        "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79",
        "local v = redis.call('get', KEYS[1]) if v and v ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1",
    ),
    "redislock 0.9 obtain": ("80a1b5f2cfccec3b7119ba7721d2127682b691a7", OBTAIN),
    "redislock 0.9 ttl": ("6484da7d58920897fdc22b7f9afd1a3d47524ea8", COMPARE + "return -3 end return redis.call('pttl', KEYS[1])"),
    "redislock obtain": ("eb0c00d98f6f33b4262419a509002884540f30be", OBTAIN),
    "redislock ttl": (
        "66e1084c2d842a7e8c271925aae90219fac4e129",
        ALL_EQUAL + "local least = 0 " + EACH + "local t = redis.call('pttl', key) "
        "if t > 0 and (least == 0 or t < least) then least = t end end return least",
    ),
    "redislock refresh": (
        "5a22d7e8431313862816d4416b5e46dd70fc340d",
        ALL_EQUAL + EACH + "redis.call('pexpire', key, ARGV[2]) end return redis.status_reply('OK')",
    ),
    "redislock release": (
        "9470c810040e272ee6c579d8d4331aaf6332a7b1",
        ALL_EQUAL + EACH + "redis.call('del', key) end return redis.status_reply('OK')",
    ),
    "pottery ttl": (
        "f5f7bd3a3aa4a63c507c1155c5ea1219b350d992",
        COMPARE + "return 0 end local t = redis.call('pttl', KEYS[1]) if t > 0 then return t end return 0",
    ),
    "python-redis-lock release": ("90da91872223f85eb1376a17e3c4df21ace8c54b", COMPARE + "return 1 end redis.call('del', KEYS[1]) return 0"),
    "python-redis-lock extend": (
        "fed16109024d968d9496e4140fe1355bac05ebff",
        COMPARE + "return 1 end if redis.call('ttl', KEYS[1]) < 0 then return 2 end redis.call('expire', KEYS[1], ARGV[2]) return 0",
    ),
    "python-redis-lock reset": ("afbc8014508f92e446b56567e8ba600e811c1bd5", "return redis.call('del', KEYS[1])"),
    "sesamecare lock": (
        "1b77b94aa78451d55dfa97e18819bfbfc596cb5b",
        EACH + "if redis.call('exists', key) == 1 then return 0 end end " + EACH + "redis.call('set', key, ARGV[2], 'px', ARGV[3]) end return #KEYS",
    ),
    "sesamecare extend": (
        "820e9778d2b6733e9ed771e4be90ae73a95a6f3b",
        EACH + "if redis.call('get', key) ~= ARGV[2] then return 0 end end " + EACH + "redis.call('set', key, ARGV[2], 'px', ARGV[3]) end return #KEYS",
    ),
    "sesamecare release": (
        "df51f6837dcfe303d334e6abea9aeae192bab216",
        "local n = 0 " + EACH + "if redis.call('get', key) == ARGV[2] then n = n + redis.call('del', key) end end return n",
    ),
}

LONG, LONGER = 1000000, 9000000

# Commands, or a script with its arguments.
STEPS = [
    ("redsync delete", 1, "r", "me"),
    ["SET", "r", "me", "NX", "PX", LONG],
    ("redsync delete", 1, "r", "you"),
    ("redsync extend or set", 1, "r", "you", LONGER),
    ("redsync extend or set", 1, "r", "me", LONGER),
    ["TTL", "r"],
    ("redsync delete", 1, "r", "me"),
    ("redsync extend or set", 1, "r", "me", LONG),
    ["GET", "r"],
    ["TTL", "r"],
    ("redislock 0.9 obtain", 1, "o", "token-meta", 5, LONG),
    ("redislock 0.9 obtain", 1, "o", "other-meta", 5, LONG),
    ("redislock 0.9 obtain", 1, "o", "tokex-meta", 5, LONG),
    ("redislock 0.9 obtain", 1, "o", "token-more", 5, LONGER),
    ["GET", "o"],
    ["TTL", "o"],
    ("redislock 0.9 ttl", 1, "o", "other"),
    ("redislock obtain", 2, "m1", "m2", "token", 5, LONG),
    ("redislock obtain", 2, "m2", "m3", "other", 5, LONG),
    ["EXISTS", "m1", "m2", "m3"],
    ("redislock obtain", 2, "m2", "m3", "token+", 5, LONG),
    ["MGET", "m1", "m2", "m3"],
    ("redislock obtain", 2, "m1", "m2", "token+", 5, LONGER),
    ["MGET", "m1", "m2", "m3"],
    ["TTL", "m1"],
    ("redislock ttl", 2, "m1", "m2", "other"),
    ("redislock refresh", 2, "m1", "m2", "other", LONG),
    ("redislock refresh", 2, "m1", "m3", "token+", LONG),
    ["TTL", "m1"],
    ("redislock refresh", 2, "m1", "m2", "token+", LONG),
    ["TTL", "m2"],
    ("redislock release", 2, "m1", "m3", "token+"),
    ["EXISTS", "m1", "m2"],
    ("redislock release", 2, "m1", "m2", "token+"),
    ("redislock ttl", 1, "m1", "token+"),
    ["EXISTS", "m1", "m2"],
    ["SET", "p", "me"],
    ("pottery ttl", 1, "p", "me"),
    ("pottery ttl", 1, "p", "you"),
    ("pottery ttl", 1, "gone", "you"),
    ("redislock 0.9 ttl", 1, "p", "me"),
    ("python-redis-lock extend", 2, "p", "signal", "me", 1000),
    ("python-redis-lock extend", 2, "p", "signal", "you", 1000),
    ["EXPIRE", "p", 100],
    ("python-redis-lock extend", 2, "p", "signal", "me", 100000),
    ["TTL", "p"],
    ("python-redis-lock release", 2, "p", "signal", "you", 1000),
    ("python-redis-lock release", 2, "p", "signal", "me", 1000),
    ("python-redis-lock release", 2, "p", "signal", "me", 1000),
    ["SET", "p", "you"],
    ("python-redis-lock reset", 2, "p", "signal", "me", 1000),
    ("python-redis-lock reset", 2, "p", "signal", "me", 1000),
    ("sesamecare lock", 2, "s1", "s2", 0, "me", LONG),
    ("sesamecare lock", 2, "s2", "s3", 0, "you", LONG),
    ("sesamecare extend", 2, "s1", "s2", 0, "me", LONGER),
    ["TTL", "s1"],
    ("sesamecare extend", 2, "s1", "s3", 0, "me", LONGER),
    ("sesamecare release", 3, "s1", "s2", "s3", 0, "you"),
    ("sesamecare release", 3, "s1", "s2", "s3", 0, "me"),
    ["EXISTS", "s1", "s2", "s3"],
]


def test_scripts_by_sha1(cli):
    """E18: the scripts of redsync, redislock, pottery, python-redis-lock and sesamecare do what they do in a real Redis."""
    mine = [step if isinstance(step, list) else ["EVALSHA", SCRIPTS[step[0]][0], *step[1:]] for step in STEPS]
    theirs = [step if isinstance(step, list) else ["EVAL", SCRIPTS[step[0]][1], *step[1:]] for step in STEPS]
    expect({step[0] for step in STEPS if isinstance(step, tuple)}, set(SCRIPTS), "scripts that are tried")
    with real_redis(cli) as reference:
        for store in ("memory:", f"file:{cli.folder}/store"):
            with serve(cli, None, *OFF, store=store) as daemon, Wire(door(daemon)) as one, Wire(reference) as other:
                other.ask("FLUSHALL")
                compare(replies_of(one, mine), replies_of(other, theirs), store)
                # A pipeline of scripts with steps, and one in a transaction.
                expect(one.ask("SCRIPT", "EXISTS", *[sha1 for sha1, _ in SCRIPTS.values()]), b"*%d\r\n" % len(SCRIPTS) + b":1\r\n" * len(SCRIPTS))
                sha1 = SCRIPTS["redislock obtain"][0]
                expect(
                    one.pipeline([["MULTI"], ["EVALSHA", sha1, 1, "t", "token", 5, LONG], ["EVALSHA", sha1, 1, "t", "token+", 5, LONG], ["EXEC"]])[3:],
                    [b"*2\r\n+OK\r\n+OK\r\n"],
                )


def test_locks_refused(cli):
    """E18: a lock that cannot be released is refused when it is taken, with the reason; a script can be tried before."""
    redisson = "if ((redis.call('exists', KEYS[1]) == 0)) then redis.call('hincrby', KEYS[1], ARGV[2], 1); return nil; end;"
    with serve(cli, None, *OFF) as daemon, Wire(door(daemon)) as wire:
        for words in (["EVAL", redisson, 1, "lock", 30000, "me"], ["SCRIPT", "LOAD", redisson], ["SCRIPT", "LOAD", "return 1"]):
            assert wire.ask(*words).startswith(b"-ERR unknown script; hapax runs no Lua"), words
        expect(wire.ask("EVALSHA", "0" * 40, 1, "lock", 30000, "me"), b"-NOSCRIPT No matching script. Please use EVAL.\r\n")
        expect(wire.ask("EXISTS", "lock"), b":0\r\n")
        # Another database would share its keys with this one.
        expect(wire.ask("EVALSHA", SCRIPTS["sesamecare lock"][0], 1, "lock", 1, "me", LONG), b"-ERR DB index is out of range\r\n")
        expect(wire.ask("EVALSHA", SCRIPTS["python-redis-lock release"][0], 1, "lock", "me", 1000), b"-ERR this script has two keys\r\n")
        for name, reason in {
            "INCR": b"no counters",
            "decrby": b"no counters",
            "MSET": b"use SET for each key",
            "MSETNX": b"use SET for each key",
            "WATCH": b"IFEQ",
            "UNWATCH": b"IFEQ",
            "BLPOP": b"no lists",
            "HSET": b"no hashes",
            "ZADD": b"no sets",
            "XADD": b"no streams",
            "SUBSCRIBE": b"no channels",
            "FCALL": b"no Lua",
            "Append": b"whole values",
        }.items():
            reply = wire.ask(name, "k", "v")
            assert reply.startswith(b"-ERR '%s' is not supported: " % name.encode()) and reason in reply, reply
        expect(wire.pipeline([["MULTI"], ["INCR", "k"], ["EXEC"]])[2][:10], b"-EXECABORT")
        expect(wire.ask("NOSUCH", "k"), b"-ERR unknown command 'NOSUCH', with args beginning with: 'k' \r\n")


def test_lists(cli):
    """KEYS ends with an error where Redis would stall; CLIENT LIST shows a user the connections of that user."""
    with serve(cli, None, *OFF) as daemon, Wire(door(daemon)) as one, Wire(door(daemon)) as two:
        one.pipeline([["SET", f"k:{number}", "v"] for number in range(10000)])
        expect(one.ask("KEYS", "k:9999"), b"*1\r\n$6\r\nk:9999\r\n")
        expect(one.ask("KEYS", "none*"), b"*0\r\n")
        expect(one.ask("KEYS", "*").count(b"$"), 10000)
        one.ask("SET", "one-more", "v")
        expect(one.ask("KEYS", "*"), b"-ERR too many keys match the pattern; use SCAN\r\n")
        expect(one.ask("KEYS", "k:*").count(b"$"), 10000)
        one.ask("CLIENT", "SETNAME", "one")
        two.ask("CLIENT", "SETNAME", "two")
        listed = one.ask("CLIENT", "LIST").split(b"\n")[1:-1]
        expect([b" name=" + name in b"".join(listed) for name in (b"one", b"two", b"three")], [True, True, False])
        expect([len([line for line in listed if line.startswith(b"id=")])], [2])
        number = int(two.ask("CLIENT", "ID")[1:])
        assert b"name=two" in one.ask("CLIENT", "LIST", "ID", number) and b"name=one" not in one.ask("CLIENT", "LIST", "ID", number)
        expect(one.ask("CLIENT", "LIST", "TYPE", "pubsub"), b"$0\r\n\r\n")
        expect(one.ask("CLIENT", "LIST", "TYPE", "nosuch"), b"-ERR Unknown client type 'nosuch'\r\n")
        expect(one.ask("CLIENT", "LIST", "ID", "x"), b"-ERR Invalid client ID\r\n")
        expect(one.ask("CLIENT", "LIST", "nosuch"), b"-ERR syntax error\r\n")
    digest = hashlib.sha256(b"s").hexdigest()
    users = "".join(f"    - {{name: {name}, password_sha256: {digest}, tenant: {name}}}\n" for name in ("acme", "bond"))
    with serve(cli, None, *OFF, config="resp:\n  users:\n" + users) as daemon, Wire(door(daemon)) as one, Wire(door(daemon)) as two:
        for wire, name in ((one, "acme"), (two, "bond")):
            expect(wire.pipeline([["AUTH", name, "s"], ["CLIENT", "SETNAME", f"of-{name}"]]), [b"+OK\r\n"] * 2)
        expect([name in one.ask("CLIENT", "LIST") for name in (b"of-acme", b"of-bond")], [True, False])


PYTHON = r"""
import json, sys
import redis, redis_lock, redlock
from pottery import Redlock

host, port = sys.argv[1], int(sys.argv[2])
client = redis.Redis(host, port)
said = []
one, two = redis_lock.Lock(client, "job", expire=60), redis_lock.Lock(client, "job", expire=60)
said += [one.acquire(), two.acquire(blocking=False), one.extend(expire=600), client.ttl("lock:job") > 60, one.release(), one.locked()]
try:
    one.release()
except redis_lock.NotAcquired:
    said.append("not acquired")
with redis_lock.Lock(client, "job", expire=60, auto_renewal=True):
    try:
        two.acquire()
    except redis.ResponseError as error:
        said.append(str(error))
two.reset()
said.append(two.locked())
manager = redlock.Redlock([{"host": host, "port": port}], retry_count=1)
lock = manager.lock("redlock", 60000)
said += [bool(lock), manager.lock("redlock", 60000), manager.unlock(lock), client.exists("redlock")]
pot = Redlock(key="pot", masters={client}, auto_release_time=60)
said += [pot.acquire(), pot.locked() > 0, pot.extend(), pot.release(), bool(pot.locked())]
print(json.dumps(said))
"""


def fetched(what, *words, **more):
    """Of others, for `make proof` alone: whether a package manager has brought what is needed."""
    if not is_proof():
        raise Skip(f"only for make proof: it needs {what}")
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **more)
    except FileNotFoundError as error:
        raise Skip(f"{words[0]} is not installed") from error
    if done.returncode != 0:
        raise Skip(f"{what} was not reached: {done.stderr[-300:]}")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **more)
    expect(done.returncode, 0, f"exit status of {words[0]}: {done.stdout} {done.stderr}")
    return done.stdout.strip()


def test_python(cli):
    """python-redis-lock, redlock-py and pottery as they are."""
    folder = pathlib.Path(cli.folder) / "python"
    fetched("PyPI", sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "redis", "python-redis-lock==4.0.1", "redlock-py==1.0.8", "pottery==3.0.1")
    with proof("python-redis-lock, redlock-py, pottery at the Redis door", 3):
        with serve(cli, None, *OFF, store=f"file:{cli.folder}/store") as daemon:
            said = json.loads(run(sys.executable, "-c", PYTHON, *door(daemon), env={**os.environ, "PYTHONPATH": str(folder)}))
    expect(said[:7], [True, False, None, True, None, False, "not acquired"], "python-redis-lock")
    assert "no lists" in said[7], said[7]
    expect(said[8:13], [False, True, False, None, 0], "reset, redlock-py")
    expect(said[13:], [True, True, None, None, False], "pottery")


GO = r"""
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func must(is bool, what string) {
	if !is {
		fmt.Println("failed:", what)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Args[1]})
	sync := redsync.New(goredis.NewPool(client))
	for _, option := range [][]redsync.Option{{}, {redsync.WithSetNXOnExtend()}} {
		mine := sync.NewMutex("redsync", append(option, redsync.WithExpiry(time.Minute), redsync.WithTries(1))...)
		yours := sync.NewMutex("redsync", redsync.WithTries(1))
		must(mine.Lock() == nil, "Lock")
		must(yours.Lock() != nil, "second Lock")
		ok, err := mine.Extend()
		must(ok && err == nil, "Extend")
		ok, err = mine.Unlock()
		must(ok && err == nil, "Unlock")
		_, err = mine.Unlock()
		must(errors.Is(err, redsync.ErrLockAlreadyExpired), "second Unlock")
	}
	locker := redislock.New(client)
	lock, err := locker.Obtain(ctx, "redislock", time.Minute, &redislock.Options{Metadata: "m"})
	must(err == nil, fmt.Sprint("Obtain: ", err))
	_, err = locker.Obtain(ctx, "redislock", time.Minute, nil)
	must(err == redislock.ErrNotObtained, "second Obtain")
	again, err := locker.Obtain(ctx, "redislock", time.Minute, &redislock.Options{Token: lock.Token(), Metadata: "n"})
	must(err == nil, "Obtain by token")
	left, err := again.TTL(ctx)
	must(err == nil && left > 50*time.Second, "TTL")
	must(again.Refresh(ctx, time.Hour, nil) == nil, "Refresh")
	must(lock.Release(ctx) == redislock.ErrLockNotHeld, "Release of the old value")
	must(again.Release(ctx) == nil, "Release")
	both, err := locker.ObtainMulti(ctx, []string{"b1", "b2"}, time.Minute, nil)
	must(err == nil, "ObtainMulti")
	_, err = locker.ObtainMulti(ctx, []string{"b2", "b3"}, time.Minute, nil)
	must(err == redislock.ErrNotObtained, "second ObtainMulti")
	must(both.Release(ctx) == nil, "Release of both")
	count, _ := client.Exists(ctx, "b1", "b2", "b3", "redislock", "redsync").Result()
	must(count == 0, "nothing is left")
	fmt.Println("done")
}
"""


def test_go(cli):
    """redsync and bsm/redislock as they are."""
    folder = pathlib.Path(cli.folder) / "go"
    folder.mkdir()
    (folder / "main.go").write_text(GO, encoding="utf-8")
    (folder / "go.mod").write_text("module locks\n", encoding="utf-8")
    wanted = ["github.com/go-redsync/redsync/v4@v4.18.1", "github.com/bsm/redislock@v0.10.0", "github.com/redis/go-redis/v9"]
    go = shutil.which("go") or "/usr/local/go/bin/go"
    environment = {**os.environ, "GOPATH": str(folder / "path"), "GOFLAGS": "-modcacherw"}
    fetched("the proxy of Go", go, "get", *wanted, cwd=folder, env=environment)
    with proof("redsync and redislock at the Redis door", 2):
        with serve(cli, None, *OFF, store=f"file:{cli.folder}/store") as daemon:
            expect(run(go, "run", ".", "%s:%d" % door(daemon), cwd=folder, env=environment), "done")
