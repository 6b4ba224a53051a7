"""Stripe's libraries for JavaScript, Python and Go pointed at the proxy. For `make proof`: they are fetched from registries."""

import json
import os
import shutil
import subprocess
import sys

from api import api, proxy
from daemon import dead_address, metrics
from harness import TIMEOUT_SECONDS, Skip, expect, expect_match, is_proof, until

FETCH_SECONDS = 240

# Each script is told HOST PORT RETRIES and steps AMOUNT:KEY, and writes for each: id, status, whether it is a replay, the class
# of the error and the type that the answer gave it.
NODE = """
const Stripe = require("stripe");
const [host, port, retries, ...steps] = process.argv.slice(2);
const stripe = new Stripe("sk_test_1", { host, port, protocol: "http", maxNetworkRetries: Number(retries), telemetry: false });

(async () => {
  const answers = [];
  for (const step of steps) {
    const [amount, key] = step.split(":");
    try {
      const charge = await stripe.charges.create({ amount, currency: "eur" }, key ? { idempotencyKey: key } : {});
      const { statusCode, headers } = charge.lastResponse;
      answers.push([charge.id || null, statusCode, headers["idempotent-replayed"] || null, null, null]);
    } catch (error) {
      answers.push([null, error.statusCode, null, error.type, error.rawType]);
    }
  }
  // It does not read the bodies of what it retries, and their connections would keep it alive.
  process.stdout.write(JSON.stringify(answers), () => process.exit(0));
})();
"""

PYTHON = """
import json, sys
import stripe

host, port, retries, *steps = sys.argv[1:]
stripe.api_key, stripe.api_base = "sk_test_1", f"http://{host}:{port}"
stripe.max_network_retries, stripe.enable_telemetry = int(retries), False
answers = []
for step in steps:
    amount, _, key = step.partition(":")
    try:
        charge = stripe.Charge.create(amount=amount, currency="eur", **({"idempotency_key": key} if key else {}))
        headers = {name.lower(): value for name, value in charge.last_response.headers.items()}
        answers.append([charge.id, charge.last_response.code, headers.get("idempotent-replayed"), None, None])
    except stripe.StripeError as error:
        kind = error.json_body["error"]["type"] if isinstance(error.json_body, dict) and "error" in error.json_body else None
        answers.append([None, error.http_status, None, type(error).__name__, kind])
print(json.dumps(answers))
"""

GO = """
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/charge"
)

func main() {
	retries, _ := strconv.ParseInt(os.Args[3], 10, 64)
	stripe.Key = "sk_test_1"
	stripe.SetBackend(stripe.APIBackend, stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               stripe.String("http://" + os.Args[1] + ":" + os.Args[2]),
		MaxNetworkRetries: stripe.Int64(retries),
		EnableTelemetry:   stripe.Bool(false),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
	}))
	answers := [][]interface{}{}
	for _, step := range os.Args[4:] {
		parts := strings.SplitN(step, ":", 2)
		amount, _ := strconv.ParseInt(parts[0], 10, 64)
		params := &stripe.ChargeParams{Amount: &amount, Currency: stripe.String("eur")}
		if parts[1] != "" {
			params.IdempotencyKey = &parts[1]
		}
		made, err := charge.New(params)
		var known *stripe.Error
		if err == nil {
			var replayed interface{}
			if value := made.LastResponse.Header.Get("Idempotent-Replayed"); value != "" {
				replayed = value
			}
			answers = append(answers, []interface{}{made.ID, made.LastResponse.StatusCode, replayed, nil, nil})
		} else if errors.As(err, &known) {
			class := strings.TrimPrefix(fmt.Sprintf("%T", known.Unwrap()), "*stripe.")
			answers = append(answers, []interface{}{nil, known.HTTPStatusCode, nil, class, string(known.Type)})
		} else {
			answers = append(answers, []interface{}{nil, nil, nil, fmt.Sprintf("%T", err), err.Error()})
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
}
"""


def fetch(command, what, **more):
    done = subprocess.run(command, capture_output=True, timeout=FETCH_SECONDS, check=False, **more)
    if done.returncode != 0:
        raise Skip(f"{what} was not fetched: {done.stderr[-300:]!r}")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def node(cli):
    if shutil.which("npm") is None:
        raise Skip("npm is not installed")
    fetch(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cli.folder), "stripe@23.1.0"], "npm's stripe")
    return ["node", write(cli.folder / "pay.js", NODE)]


def python(cli):
    target = cli.folder / "packages"
    fetch([sys.executable, "-m", "pip", "install", "-q", "--target", str(target), "stripe==16.1.0"], "PyPI's stripe")
    return [sys.executable, write(cli.folder / "pay.py", f"import sys\nsys.path.insert(0, {str(target)!r})\n{PYTHON}")]


def go(cli):
    """A version that Debian's Go 1.19 builds; errors are told apart in the same way since."""
    if shutil.which("go") is None:
        raise Skip("go is not installed (tools/setup proof)")
    folder = cli.folder / "go"
    folder.mkdir()
    write(folder / "go.mod", "module pay\n\ngo 1.19\n\nrequire github.com/stripe/stripe-go/v76 v76.25.0\n")
    write(folder / "pay.go", GO)
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    fetch(["go", "build", "-o", str(folder / "pay"), "."], "stripe-go", cwd=folder, env=env)
    return [str(folder / "pay")]


# The class of an error: of all but Go by its status, and then by its type.
IDEMPOTENCY = {node: "StripeIdempotencyError", python: "IdempotencyError", go: "IdempotencyError"}
GENERAL = {node: "StripeAPIError", python: "APIError", go: "APIError"}
ABOUT_KEY_NOT_400 = {node: "StripeAPIError", python: "APIError", go: "IdempotencyError"}


def library(cli, language):
    if not is_proof():
        raise Skip("only for make proof: it needs a registry")
    return language(cli)


def start(command, to, *steps, retries=3):
    host, port = to
    return subprocess.Popen([*command, host, str(port), str(retries), *steps], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answers_of(payment):
    out, err = payment.communicate(timeout=TIMEOUT_SECONDS)
    expect((payment.returncode, err), (0, b""))
    return json.loads(out)


def as_stripe(service):
    service.fields = [("Content-Type", "application/json")]
    service.text = b'{"object":"charge","id":"ch_%d"}'


def pays_once(cli, language):
    """A key of the caller's, one of the library's own, another amount for the same key, a key that is none."""
    command = library(cli, language)
    with api() as service, proxy(cli, service.url) as daemon:
        as_stripe(service)
        steps = ("42:order-17", "42:order-17", "99:order-17", "7:", "7:", "7:no key")
        answers = answers_of(start(command, daemon.proxy, *steps))
        expect(answers[:2], [["ch_1", 200, None, None, None], ["ch_1", 200, "true", None, None]])
        expect(answers[2], [None, 422, None, ABOUT_KEY_NOT_400[language], "idempotency_error"])
        expect(answers[3:5], [["ch_2", 200, None, None, None], ["ch_3", 200, None, None, None]])
        expect(answers[5], [None, 400, None, IDEMPOTENCY[language], "idempotency_error"])
        expect(service.paths, ["/v1/charges"] * 3)
        for request in service.requests[1:]:
            expect_match("^[!-~]{16,}$", request.headers["idempotency-key"])


def sees_what_is_not_paid(cli, language):
    """A response that was lost is parked, and not asked for again; a service that is not there is an error of the API."""
    command = library(cli, language)
    with api() as service, proxy(cli, service.url + "/drop") as daemon:
        parked = [None, 409, None, ABOUT_KEY_NOT_400[language], "idempotency_error"]
        # Go does not retry a POST after 502; the others do, and are told of the parked key.
        lost = [None, 502, None, GENERAL[language], "api_error"] if language is go else parked
        expect(answers_of(start(command, daemon.proxy, "42:order-17", "42:order-17")), [lost, parked])
        expect(len(service.requests), 1)
        # Of the parked key each call is told once: it is not asked for three times.
        name = 'hapax_decisions_total{tenant="default",group="default",door="proxy",decision="parked"}'
        expect(metrics(daemon)[name], 1 if language is go else 2)
    with proxy(cli, dead_address(), store=f"file:{cli.folder}/other") as daemon:
        answers = answers_of(start(command, daemon.proxy, "42:order-17", retries=0))
        expect(answers, [[None, 502, None, GENERAL[language], "api_error"]])


def comes_again_after_409(cli, language):
    """While the first runs it gets 409 and Retry-After, retries by itself, and has the receipt."""
    command = library(cli, language)
    config = "proxy:\n  routes:\n    - {path: /, wait: 0s}\n"
    with api() as service, proxy(cli, service.url + "/hold", config=config) as daemon:
        as_stripe(service)
        payments = [start(command, daemon.proxy, "42:order-17") for _ in range(2)]
        name = 'hapax_decisions_total{tenant="default",group="default",door="proxy",decision="in_progress"}'
        until(lambda: metrics(daemon).get(name, 0) > 0, "one was told to retry")
        service.release.set()
        answers = [answers_of(payment)[0] for payment in payments]
        expect(sorted(answers, key=str), [["ch_1", 200, "true", None, None], ["ch_1", 200, None, None, None]])
        expect(len(service.requests), 1)


def test_stripe_node_pays_once(cli):
    pays_once(cli, node)


def test_stripe_node_sees_what_is_not_paid(cli):
    sees_what_is_not_paid(cli, node)


def test_stripe_node_comes_again_after_409(cli):
    comes_again_after_409(cli, node)


def test_stripe_python_pays_once(cli):
    pays_once(cli, python)


def test_stripe_python_sees_what_is_not_paid(cli):
    sees_what_is_not_paid(cli, python)


def test_stripe_python_comes_again_after_409(cli):
    comes_again_after_409(cli, python)


def test_stripe_go_pays_once(cli):
    pays_once(cli, go)


def test_stripe_go_sees_what_is_not_paid(cli):
    sees_what_is_not_paid(cli, go)


def test_stripe_go_comes_again_after_409(cli):
    comes_again_after_409(cli, go)
