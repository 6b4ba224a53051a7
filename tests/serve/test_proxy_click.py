"""E18, scenario 1: the double payment click, without hapax and through it."""

import shutil
import subprocess
import threading

from api import post, proxy
from daemon import demo
from harness import ROOT, TIMEOUT_SECONDS, Skip, expect, proof, scaled


def click_twice(to, customers):
    """Every customer presses the button twice at once. The answers, by customer."""
    answers = {customer: [] for customer in range(customers)}
    barrier = threading.Barrier(2 * customers)

    def click(customer):
        barrier.wait()
        reply = post(to, "/v1/charges", f"order-{customer}", Authorization=f"Bearer {customer}", Host="shop.example")
        answers[customer].append((reply.status, reply.body, reply.headers.get("idempotent-replayed")))

    threads = [threading.Thread(target=click, args=(customer,)) for customer in answers for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_the_damage_without_hapax(cli):
    """The service charges whatever comes: every customer pays twice."""
    customers = 20
    with demo(cli, "--delay", "20ms") as service:
        answers = click_twice(service.address, customers)
        expect(service.count(), {"received": 2 * customers, "executed": 2 * customers, "keys": customers})
        for customer, pair in answers.items():
            assert pair[0][1] != pair[1][1], f"{customer} has one receipt: {pair}"


def test_a_double_click_is_charged_once(cli):
    """Each pays once, and both clicks have the same receipt; what is in the store survives."""
    customers, rounds = 20, scaled(proof=50, usual=2)
    with demo(cli, "--delay", "20ms") as service, proof("proxy, double clicks, customers", customers * rounds):
        for number in range(rounds):
            with proxy(cli, service.url, store=f"file:{cli.folder}/store-{number}") as daemon:
                for pair in click_twice(daemon.proxy, customers).values():
                    expect({(status, body) for status, body, _ in pair}, {(200, pair[0][1])}, "receipts")
                    expect(sorted(str(replayed) for _, _, replayed in pair), ["None", "true"])
            expect(service.count()["executed"], customers * (number + 1))
            with proxy(cli, service.url, store=f"file:{cli.folder}/store-{number}") as daemon:
                for pair in click_twice(daemon.proxy, customers).values():
                    expect([replayed for _, _, replayed in pair], ["true", "true"], "after a restart")
            expect(service.count()["executed"], customers * (number + 1))


def test_the_example_of_a_double_payment(cli):
    """examples/double_payment.sh shows it; here is what it must say."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed")
    done = subprocess.run(
        [str(ROOT / "examples/double_payment.sh")], env=cli.env(HAPAX_STORE=None), capture_output=True,
        timeout=TIMEOUT_SECONDS, check=False,
    )
    expect((done.returncode, done.stderr), (0, b""))
    lines = [line for line in done.stdout.decode().splitlines() if not line.startswith("==")]
    charged = "charged {} time(s)".format
    receipt = '{{"executed":{}}}'.format
    expected = [f"200 {receipt(1)}", f"200 {receipt(2)}", charged(2)]
    expected += [f"200 replayed {receipt(3)}", f"200 {receipt(3)}", charged(3)]
    expected += [f"200 replayed {receipt(3)}", charged(3), "422 Idempotency-Key is already used", charged(3)]
    expected += [f"200 {receipt(4)}", charged(4)]
    expect([*sorted(lines[:2]), lines[2], *sorted(lines[3:5]), *lines[5:]], expected)
