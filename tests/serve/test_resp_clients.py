"""Programs and libraries of others at the Redis door, as they are: each connects in its own way and runs the idiom."""

import json
import os
import pathlib
import shutil
import subprocess

from daemon import serve
from harness import Skip, expect, is_proof, proof
from redis_wire import OFF, Wire, door, pack

FLUSH = "resp:\n  allow_flush: true\n"

# What npm had newest when this was written; the clients are fetched for `make proof` alone.
PACKAGES = {"ioredis": "6.0.0", "redis": "6.3.1", "redlock": "5.0.0-beta.2", "redlock-4": "npm:redlock@4.2.0", "@sesamecare-oss/redlock": "1.4.0"}


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False, **more)
    expect(done.returncode, 0, f"exit status of {words}: {done.stdout} {done.stderr}")
    return done.stdout.strip(), done.stderr.strip()


def test_redis_cli_and_benchmark(cli):
    if shutil.which("redis-cli") is None or shutil.which("redis-benchmark") is None:
        raise Skip("there is no redis-cli")
    path = f"{cli.folder}/door.sock"
    with serve(cli, None, "--gateway", "off", "--resp", f"unix:{path}", config=FLUSH):
        for protocol in ((), ("-3",)):
            tool = ("redis-cli", "-s", path, *protocol)
            run(*tool, "flushall")
            expect(run(*tool, "set", "k", "v", "nx", "ex", "86400"), ("OK", ""))
            expect(run(*tool, "set", "k", "v", "nx", "ex", "86400"), ("", ""))
            expect(run(*tool, "get", "k"), ("v", ""))
            expect(run(*tool, "--scan"), ("k", ""))
            expect(run(*tool, input="multi\nset a 1\nget k\nexec\n"), ("OK\nQUEUED\nQUEUED\nOK\nv", ""))
            assert "redis_version:7.0.15" in run(*tool, "info")[0]
        for protocol in ((), ("-3",)):
            load = ("redis-benchmark", "-s", path, *protocol, "-n", "2000", "-c", "10", "-q")
            for words in (["-P", "16", "-r", "100000", "SET", "k:__rand_int__", "v", "NX", "EX", "86400"], ["-t", "set,get,ping"]):
                out, err = run(*load, *words)
                assert "requests per second" in out and "WARN" not in out + err, (out, err)


REDIS_PY = """
import json, sys, warnings
import redis

warnings.simplefilter("error")
client = redis.Redis(sys.argv[1], int(sys.argv[2]))
said = [client.set("order-1", "paid", nx=True, ex=86400), client.set("order-1", "paid", nx=True, ex=86400)]
pipe = client.pipeline()
pipe.set("a", "1").expire("a", 60).get("a").set("b", "2", nx=True)
said.append([part.decode() if isinstance(part, bytes) else part for part in pipe.execute()])
plain = client.pipeline(transaction=False)
for number in range(500):
    plain.set(f"p:{number}", number, nx=True)
said.append(sum(map(bool, plain.execute())))
client.delete(*[f"p:{number}" for number in range(500)])
with client.lock("lock", timeout=60) as lock:
    said += [lock.owned(), lock.extend(60), lock.reacquire(), client.lock("lock", blocking_timeout=0).acquire()]
said += [client.exists("lock"), sorted(key.decode() for key in client.scan_iter()), client.info()["redis_version"]]
print(json.dumps(said))
"""


def test_redis_py(cli):
    """As Debian has it: the idiom, pipelines with and without MULTI, locks."""
    python = "/usr/bin/python3"
    if not pathlib.Path(python).exists() or subprocess.run([python, "-c", "import redis"], capture_output=True, check=False).returncode != 0:
        raise Skip("there is no python3-redis")
    with serve(cli, None, *OFF, store=f"file:{cli.folder}/store") as daemon:
        out, err = run(python, "-c", REDIS_PY, *door(daemon))
        expect(err, "")
        expect(
            json.loads(out),
            [True, None, [True, True, "1", True], 500, True, True, True, False, 0, ["a", "b", "order-1"], "7.0.15"],
        )


HIREDIS = r"""
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

static void say(redisReply *reply)
{
	if (reply == NULL)
		exit(1);
	printf("%d %lld %s\n", reply->type, reply->type == REDIS_REPLY_ARRAY ? (long long)reply->elements : reply->integer,
	       reply->str == NULL ? "" : reply->str);
	freeReplyObject(reply);
}

int main(int argc, char **argv)
{
	redisContext *context = redisConnectUnix(argv[argc - 1]);
	redisReply *reply;

	if (context == NULL || context->err != 0)
		return 1;
	for (int i = 0; i < 2; i++)
		say(redisCommand(context, "SET %s %b NX EX 86400", "order-1", "pa\r\nid", (size_t)6));
	for (int i = 0; i < 1000; i++)
		redisAppendCommand(context, "SET key:%d %d NX", i, i);
	for (int i = 0; i < 1000; i++) {
		if (redisGetReply(context, (void **)&reply) != REDIS_OK || reply->type != REDIS_REPLY_STATUS)
			return 1;
		freeReplyObject(reply);
	}
	say(redisCommand(context, "MULTI"));
	say(redisCommand(context, "GET key:999"));
	say(redisCommand(context, "DBSIZE"));
	say(redisCommand(context, "EXEC"));
	say(redisCommand(context, "GET nosuch"));
	say(redisCommand(context, "NOSUCH"));
	redisFree(context);
	return 0;
}
"""


def test_hiredis(cli):
    """The library of C, which many others are made of."""
    compiler = shutil.which("cc")
    if compiler is None or not pathlib.Path("/usr/include/hiredis/hiredis.h").exists():
        raise Skip("there is no libhiredis-dev")
    source, program = cli.folder / "client.c", cli.folder / "client"
    source.write_text(HIREDIS, encoding="utf-8")
    run(compiler, "-o", program, source, "-lhiredis")
    path = f"{cli.folder}/door.sock"
    with serve(cli, None, "--gateway", "off", "--resp", f"unix:{path}"):
        lines = run(program, path)[0].split("\n")
        expect(
            lines,
            ["5 0 OK", "4 0 ", "5 0 OK", "5 0 QUEUED", "5 0 QUEUED", "2 2 ", "4 0 ", "6 0 ERR unknown command 'NOSUCH', with args beginning with: "[:-1]],
        )


# What each sends when it connects, as its source says; a reply to each, and none but an error where ERROR stands.
ERROR = object()
HANDSHAKES = {
    "go-redis 9": [
        (["hello", "3", "setname", "worker"], b"%7\r\n"),
        (["client", "maint_notifications", "on", "moving-endpoint-type", "internal-ip"], ERROR),
        (["client", "setinfo", "LIB-NAME", "go-redis(,go1.24.3)"], b"+OK\r\n"),
        (["client", "setinfo", "LIB-VER", "9.17.0"], b"+OK\r\n"),
        (["select", "0"], b"+OK\r\n"),
    ],
    "Jedis 7": [
        (["HELLO", "3"], b"%7\r\n"),
        (["CLIENT", "SETNAME", "worker"], b"+OK\r\n"),
        (["CLIENT", "SETINFO", "LIB-NAME", "jedis"], b"+OK\r\n"),
        (["CLIENT", "SETINFO", "LIB-VER", "7.1.0"], b"+OK\r\n"),
        (["SELECT", "0"], b"+OK\r\n"),
    ],
    "Lettuce 7": [
        (["HELLO", "3", "SETNAME", "worker"], b"%7\r\n"),
        (["CLIENT", "SETINFO", "lib-name", "Lettuce"], b"+OK\r\n"),
        (["CLIENT", "SETINFO", "lib-ver", "7.2.0"], b"+OK\r\n"),
        (["PING"], b"+PONG\r\n"),
    ],
    "StackExchange.Redis 2": [
        (["HELLO", "3", "SETNAME", "worker"], b"%7\r\n"),
        (["CLIENT", "SETINFO", "LIB-NAME", "SE.Redis"], b"+OK\r\n"),
        (["CLIENT", "SETINFO", "LIB-VER", "2.9.32"], b"+OK\r\n"),
        (["CLIENT", "ID"], b":"),
        (["CONFIG", "GET", "timeout"], b"%1\r\n"),
        (["CONFIG", "GET", "replica-read-only"], b"%1\r\n"),
        (["CONFIG", "GET", "databases"], b"%1\r\n"),
        (["SENTINEL", "MASTERS"], ERROR),
        (["INFO", "replication"], b"="),
        (["INFO", "server"], b"="),
        (["CLUSTER", "NODES"], ERROR),
        (["GET", "__Booksleeve_TieBreak"], b"_\r\n"),
        (["ECHO", b"\x00\x01tracer\xff\x00 0123456"], b"$"),
    ],
    "redis-py 7": [
        (["HELLO", "3"], b"%7\r\n"),
        (["CLIENT", "SETINFO", "LIB-NAME", "redis-py"], b"+OK\r\n"),
        (["CLIENT", "SETINFO", "LIB-VER", "7.0.1"], b"+OK\r\n"),
        (["CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "internal-ip"], ERROR),
    ],
    "ioredis 6": [
        (["hello", "3"], b"%7\r\n"),
        (["client", "SETINFO", "LIB-VER", "6.0.0"], b"+OK\r\n"),
        (["client", "SETINFO", "LIB-NAME", "ioredis"], b"+OK\r\n"),
        (["info"], b"="),
    ],
    "node-redis 6": [
        (["HELLO", "3"], b"%7\r\n"),
        (["CLIENT", "SETINFO", "LIB-VER", "6.3.1"], b"+OK\r\n"),
        (["CLIENT", "SETINFO", "LIB-NAME", "node-redis"], b"+OK\r\n"),
        (["CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "external-ip"], ERROR),
    ],
    "redis-benchmark 7": [
        (["CONFIG", "GET", "save"], b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        (["CONFIG", "GET", "appendonly"], b"*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"),
    ],
    "RESP2 with HELLO": [(["HELLO", "2", "SETNAME", "worker"], b"*14\r\n")],
}


def test_handshakes(cli):
    """Of those that cannot be had here, as bytes: all at once, and one after the other."""
    with serve(cli, None, *OFF) as daemon:
        for name, exchange in HANDSHAKES.items():
            nil = b"$-1\r\n" if name in ("redis-benchmark 7", "RESP2 with HELLO") else b"_\r\n"
            for is_pipelined in (True, False):
                key = f"{name}:{is_pipelined}"
                idiom = [(["SET", key, "v", "EX", "86400", "NX"], b"+OK\r\n"), (["SET", key, "v", "NX", "EX", "86400"], nil)]
                with Wire(door(daemon)) as wire:
                    if is_pipelined:
                        wire.send(b"".join(pack(*words) for words, _ in exchange + idiom))
                    for words, expected in exchange + idiom:
                        reply = wire.reply() if is_pipelined else wire.ask(*words)
                        good = reply[:1] == b"-" if expected is ERROR else reply.startswith(expected)
                        assert good, f"{name}: {words}: {reply!r}"


NODE = r"""
const { Redis } = require("ioredis");
const redis = require("redis");
const { default: Redlock5, ResourceLockedError } = require("redlock");
const Redlock4 = require("redlock-4");
const { Redlock: Sesame } = require("@sesamecare-oss/redlock");
const assert = require("assert");
const [host, port] = [process.argv[2], Number(process.argv[3])];

process.on("warning", (warning) => { console.error(String(warning)); });

async function withIoredis(protocol) {
  const client = new Redis({ host, port, protocol, retryStrategy: null });
  client.on("error", (error) => { throw error; });
  const key = `ioredis:${protocol}`;
  assert.equal(await client.set(key, "paid", "EX", 86400, "NX"), "OK");
  assert.equal(await client.set(key, "paid", "EX", 86400, "NX"), null);
  const pipeline = client.pipeline();
  for (let i = 0; i < 500; i++) pipeline.set(`${key}:${i}`, i, "NX");
  assert.deepEqual((await pipeline.exec()).filter(([error, reply]) => error || reply !== "OK"), []);
  assert.deepEqual(await client.multi().set(`${key}:a`, "1").get(key).pttl("nosuch").exec(), [[null, "OK"], [null, "paid"], [null, -2]]);
  await assert.rejects(client.call("NOSUCH"), /unknown command/);
  assert.equal((await client.info("server")).includes("redis_version:7.0.15"), true);

  const resources = [`${key}:l1`, `${key}:l2`];
  const five = new Redlock5([client], { retryCount: 0 });
  let lock = await five.acquire(resources, 60000);
  await assert.rejects(five.acquire([resources[1], `${key}:l3`], 60000));
  assert.equal(await client.exists(`${key}:l3`), 0);
  lock = await lock.extend(120000);
  assert.ok(await client.pttl(resources[0]) > 60000);
  await lock.release();
  assert.equal(await client.exists(...resources), 0);
  let ran = 0;
  await five.using(resources, 60000, async () => { ran = await client.exists(...resources); });
  assert.equal(ran, 2);

  const sesame = new Sesame([client], { retryCount: 0 });
  lock = await sesame.acquire(resources, 60000);
  await assert.rejects(sesame.acquire([resources[1]], 60000));
  lock = await lock.extend(120000);
  await lock.release();
  assert.equal(await client.exists(...resources), 0);

  const four = new Redlock4([client], { retryCount: 0 });
  let old = await four.lock(resources, 60000);
  await assert.rejects(four.lock(resources[0], 60000));
  old = await old.extend(120000);
  await old.unlock();
  assert.equal(await client.exists(...resources), 0);
  await client.quit();
}

async function withNodeRedis(RESP) {
  const client = redis.createClient({ RESP, socket: { host, port, reconnectStrategy: false } });
  client.on("error", (error) => { throw error; });
  await client.connect();
  const key = `node-redis:${RESP}`;
  assert.equal(await client.set(key, "paid", { NX: true, EX: 86400 }), "OK");
  assert.equal(await client.set(key, "paid", { NX: true, EX: 86400 }), null);
  const replies = await Promise.all(Array.from({ length: 500 }, (_, i) => client.set(`${key}:${i}`, String(i), { NX: true })));
  assert.deepEqual(replies.filter((reply) => reply !== "OK"), []);
  assert.deepEqual(await client.multi().set(`${key}:a`, "1").get(key).pTTL("nosuch").exec(), ["OK", "paid", -2]);
  let seen = 0;
  for await (const keys of client.scanIterator({ MATCH: `${key}:*`, COUNT: 100 })) seen += keys.length;
  assert.equal(seen, 501);
  await assert.rejects(client.sendCommand(["NOSUCH"]), /unknown command/);
  await client.close();
}

(async () => {
  await withIoredis(3);
  await withIoredis(2);
  await withNodeRedis(3);
  await withNodeRedis(2);
  console.log("done");
})();
"""


def test_node(cli):
    """ioredis and node-redis, RESP3 and RESP2, and the locks of redlock 4 and 5 and of its successor."""
    if not is_proof():
        raise Skip("only for make proof: it needs the registry of npm")
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--legacy-peer-deps", "--prefix", str(cli.folder), *wanted],
        capture_output=True, timeout=240, check=False,
    )
    if done.returncode != 0:
        raise Skip(f"the registry of npm was not reached: {done.stderr[-300:]!r}")
    script = cli.folder / "client.js"
    script.write_text(NODE, encoding="utf-8")
    with proof("ioredis, node-redis, redlock at the Redis door", len(PACKAGES)):
        with serve(cli, None, *OFF, store=f"file:{cli.folder}/store") as daemon:
            expect(run("node", script, *door(daemon), env={**os.environ, "NODE_PATH": str(cli.folder / "node_modules")}), ("done", ""))
