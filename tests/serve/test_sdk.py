"""The CloudEvents SDK for JavaScript (npm cloudevents) in its three modes. For `make proof`: it is fetched from the registry."""

import json
import os
import shutil
import subprocess

from daemon import demo, serve
from harness import Skip, expect

VERSION = "10.0.0"

SCRIPT = """
const { CloudEvent, HTTP } = require("cloudevents");
const http = require("http");

function send(message) {
  return new Promise((resolve, reject) => {
    const request = http.request(process.argv[2], { method: "POST", headers: message.headers }, (response) => {
      response.resume();
      response.on("end", () => resolve([response.statusCode, response.headers["hapax-decision"] || null]));
    });
    request.on("error", reject);
    request.end(message.body);
  });
}

const make = (id) => new CloudEvent({ id, source: "/shop", type: "order.paid", data: { total: 42 }, partitionkey: "c-1" });

(async () => {
  const answers = [];
  for (const id of ["1", "order-17", "1"]) {
    answers.push(await send(HTTP.binary(make(id))));
    answers.push(await send(HTTP.structured(make(id))));
  }
  const batch = JSON.stringify(["2", "1", "2"].map(make));
  const headers = { "content-type": "application/cloudevents-batch+json" };
  answers.push(await send({ headers, body: batch }));
  console.log(JSON.stringify(answers));
})();
"""


def sdk(cli):
    if os.environ.get("HAPAX_PROOF", "0") in ("", "0"):
        raise Skip("only for make proof: it needs the registry of npm")
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cli.folder), f"cloudevents@{VERSION}"],
        capture_output=True, timeout=120, check=False,
    )
    if done.returncode != 0:
        raise Skip("the registry of npm was not reached")


def test_three_modes_of_the_sdk(cli):
    sdk(cli)
    script = cli.folder / "send.js"
    script.write_text(SCRIPT, encoding="utf-8")
    with demo(cli) as service, serve(cli, service.url) as daemon:
        done = subprocess.run(
            ["node", str(script), "http://%s:%d/" % daemon.gateway], capture_output=True, timeout=60, check=False
        )
        expect((done.returncode, done.stderr), (0, b""))
        answers = json.loads(done.stdout)
        first, again = [200, "acquired"], [200, "replay"]
        expect(answers[:4], [first, again, first, again])
        expect(answers[4:6], [again, again])
        expect(answers[6], [200, None])
        expect({answer[0] for answer in answers}, {200})
        expect(service.count()["executed"], len([answer for answer in answers if answer == first]) + 1)
