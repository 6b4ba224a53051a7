"""Stripe's library for JavaScript (npm stripe) pointed at the proxy. For `make proof`: it is fetched from the registry."""

import json
import os
import shutil
import subprocess

from api import api, proxy
from daemon import metrics
from harness import TIMEOUT_SECONDS, Skip, expect, expect_match, until

VERSION = "23.1.0"

SCRIPT = """
const Stripe = require("stripe");
const [host, port, ...steps] = process.argv.slice(2);
const stripe = new Stripe("sk_test_1", { host, port, protocol: "http", maxNetworkRetries: 3, telemetry: false });

(async () => {
  const answers = [];
  for (const step of steps) {
    const [amount, key] = step.split(":");
    try {
      const charge = await stripe.charges.create({ amount, currency: "eur" }, key ? { idempotencyKey: key } : {});
      answers.push([charge.id, charge.lastResponse.statusCode, charge.lastResponse.headers["idempotent-replayed"] || null]);
    } catch (error) {
      answers.push([null, error.statusCode, null]);
    }
  }
  // It does not read the bodies of what it retries, and their connections would keep it alive.
  process.stdout.write(JSON.stringify(answers), () => process.exit(0));
})();
"""


def library(cli):
    if os.environ.get("HAPAX_PROOF", "0") in ("", "0"):
        raise Skip("only for make proof: it needs the registry of npm")
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cli.folder), f"stripe@{VERSION}"],
        capture_output=True, timeout=120, check=False,
    )
    if done.returncode != 0:
        raise Skip("the registry of npm was not reached")
    path = cli.folder / "pay.js"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def start(script, daemon, *steps):
    host, port = daemon.proxy
    return subprocess.Popen(["node", str(script), host, str(port), *steps], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answers_of(payment):
    out, err = payment.communicate(timeout=TIMEOUT_SECONDS)
    expect((payment.returncode, err), (0, b""))
    return json.loads(out)


def as_stripe(service):
    service.fields = [("Content-Type", "application/json")]
    service.text = b'{"object":"charge","id":"ch_%d"}'


def test_stripe_pays_once(cli):
    """A key of the caller's, one of the library's own, another amount for the same key."""
    script = library(cli)
    with api() as service, proxy(cli, service.url) as daemon:
        as_stripe(service)
        answers = answers_of(start(script, daemon, "42:order-17", "42:order-17", "99:order-17", "7:", "7:"))
        expect(answers[:2], [["ch_1", 200, None], ["ch_1", 200, "true"]])
        expect(answers[2], [None, 422, None])
        expect(answers[3:], [["ch_2", 200, None], ["ch_3", 200, None]])
        expect(service.paths, ["/v1/charges"] * 3)
        for request in service.requests[1:]:
            expect_match("^stripe-node-retry-", request.headers["idempotency-key"])


def test_stripe_comes_again_after_409(cli):
    """While the first runs it is told 409 and Retry-After, comes again by itself, and has the receipt."""
    script = library(cli)
    config = "proxy:\n  routes:\n    - {path: /, wait: 0s}\n"
    with api() as service, proxy(cli, service.url + "/hold", config=config) as daemon:
        as_stripe(service)
        payments = [start(script, daemon, "42:order-17") for _ in range(2)]
        name = 'hapax_decisions_total{tenant="default",group="default",door="proxy",decision="in_progress"}'
        until(lambda: metrics(daemon).get(name, 0) > 0, "one was told to come again")
        service.release.set()
        answers = [answers_of(payment)[0] for payment in payments]
        expect(sorted(answers, key=str), [["ch_1", 200, "true"], ["ch_1", 200, None]])
        expect(len(service.requests), 1)
