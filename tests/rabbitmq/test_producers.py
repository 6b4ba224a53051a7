"""Producers of RabbitMQ that are not ours: npm amqplib. For `make proof`."""

import json

import npm
from harness import expect, proof
from rabbit import ADDRESS, Consume, Queue, Service

# Each event twice: the first half as CloudEvents, the others with a message id; all types that headers can have.
SCRIPT = """
const amqp = require("amqplib");
(async () => {
  const connection = await amqp.connect(`amqp://guest:guest@${process.argv[2]}`);
  const channel = await connection.createConfirmChannel();
  for (let round = 0; round < 2; round++)
    for (let n = 0; n < 100; n++) {
      const headers = { n, half: n / 2, yes: true, nothing: null, list: [1, "a", { b: 2 }], when: { "!": "timestamp", value: 1700000000 } };
      const event = { "cloudEvents:specversion": "1.0", "cloudEvents:id": `A-${n}`, "cloudEvents:source": "/node", "cloudEvents:type": "t" };
      const options = n % 2 ? { messageId: `m-${n}`, headers } : { headers: { ...headers, ...event } };
      channel.sendToQueue(process.argv[3], Buffer.from(JSON.stringify({ n })), { ...options, contentType: "application/json", persistent: true });
    }
  await channel.waitForConfirms();
  await connection.close();
})();
"""


def test_amqplib(cli):
    with Queue() as queue, Service() as service:
        npm.run(cli, "amqplib@2.3.1", SCRIPT, ADDRESS, queue.name)
        with proof("amqplib to hapax consume", 200):
            consume = Consume(cli, "--from", queue.url(), "--to", service.url)
            consume.until_acknowledged(200)
            figures = consume.stop()
            expect((figures["ok"], figures["causes"]["producer"], figures["dead_letters"]), (100, 100, 0))
            expect(sorted(json.loads(body)["n"] for _, body in service.requests), list(range(100)))
