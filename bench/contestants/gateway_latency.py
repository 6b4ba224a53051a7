# SPDX-License-Identifier: Apache-2.0
"""What a proxy adds to the time of a reply, at half of the rate that it can do.

A round finds the highest rate of the proxy with wrk, then sends at half of it at fixed times (pace.c) through the proxy,
and between those some straight to the upstream; what is added is the difference of the two. New events, `memory:`.

--cores one keeps all of it on one core, load, proxy and upstream, for both rates. The others are left to the kernel, whose
own threads would hold the proxy's core for milliseconds.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import gateway  # noqa: E402
from harness import contest  # noqa: E402


def paced(arguments, proxy, rate):
    command = [arguments.pace, "--port", str(proxy.port), "--upstream", str(proxy.upstream_port)]
    command += ["--rate", str(rate), "--seconds", str(arguments.seconds)]
    command += ["--connections", str(arguments.connections), "--prefix", str(uuid.uuid4())]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        contest.fail(f"{arguments.server}: {done.stderr}")
    return json.loads(done.stdout)


def measure(arguments, proxy):
    rate = max(1, int(proxy.load()["rate"] / 2))
    proxy.stop_upstream()
    ways = paced(arguments, proxy, rate)
    proxy.start_upstream()
    through, straight = ways["through"], ways["straight"]
    added = {f"added_{name}": through[name] - straight[name] for name in ("p50_us", "p99_us")}
    return {**added, "half_rate": rate, "p99_us": through["p99_us"], "upstream_p99_us": straight["p99_us"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", required=True)
    parser.add_argument("--pace", required=True)
    parser.add_argument("--server", choices=["hapax", "nginx"], required=True)
    parser.add_argument("--cores", choices=["one", "all"], default="all")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--folder", default=os.environ.get("TMPDIR", "/tmp"))
    arguments = parser.parse_args()
    arguments.mode, arguments.store = "new", "memory"
    if arguments.cores == "one":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    proxy = gateway.Proxy(arguments)
    try:
        contest.run(arguments.server, gateway.version(arguments), lambda _: measure(arguments, proxy))
    finally:
        proxy.close()


if __name__ == "__main__":
    main()
