"""Producers of Redis Streams that are not ours: npm ioredis. For `make proof`."""

import json

import npm
from harness import expect, proof
from streams import PATH, Consume, Service, Stream

# Each twice: every second one as a CloudEvent, the others as fields with a key of their own.
SCRIPT = """
const Redis = require("ioredis");
(async () => {
  const redis = new Redis(process.argv[2]);
  for (let round = 0; round < 2; round++)
    for (let n = 0; n < 100; n++)
      await redis.xadd(process.argv[3], "*", ...(n % 2
        ? ["order", n, "n", n]
        : ["specversion", "1.0", "id", `A-${n}`, "source", "/node", "type", "t", "datacontenttype", "application/json", "data", JSON.stringify({ order: n, n })]));
  redis.disconnect();
})();
"""


def test_ioredis(cli):
    with Stream() as stream, Service() as service:
        npm.run(cli, "ioredis@6.0.0", SCRIPT, PATH, stream.name)
        with proof("ioredis to hapax consume", 200):
            consume = Consume(cli, "--from", stream.url(), "--to", service.url, "--strategy", "field:data.order")
            consume.until_acknowledged(200)
            figures = consume.stop()
            expect((figures["ok"], figures["causes"]["producer"], figures["dead_letters"]), (100, 100, 0))
            expect(sorted(int(json.loads(body)["n"]) for _, body in service.requests), list(range(100)))
