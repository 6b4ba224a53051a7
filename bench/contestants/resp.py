# SPDX-License-Identifier: Apache-2.0
"""SET key value NX EX 86400 by the Redis protocol, to hapax or to redis-server; redis-benchmark sends.

50 connections over a unix socket, --pipeline commands ahead on each, keys that hardly ever repeat. The CPU time is
that of the server alone. How many keys the server has afterwards is checked: redis-benchmark sends one and the same
key if its range is too large.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import contest  # noqa: E402

KEYS = 2_000_000_000


class Server:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-bench-", dir=arguments.folder))
        self.path = self.folder / "door.sock"
        self.process = subprocess.Popen(self.command(), cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while self.ask("PING") != "PONG":
            if time.monotonic() > deadline or self.process.poll() is not None:
                contest.fail(f"{arguments.server} did not start")
            time.sleep(0.01)

    def command(self):
        is_durable = self.arguments.durable
        if self.arguments.server == "redis":
            command = ["redis-server", "--port", "0", "--unixsocket", str(self.path), "--save", ""]
            return command + (["--appendonly", "yes", "--appendfsync", "always"] if is_durable else [])
        store = f"file:{self.folder}/store" if is_durable else "memory:"
        return [self.arguments.hapax, "serve", "--store", store, "--gateway", "off", "--admin", "off", "--loops", "1",
                "--resp", f"unix:{self.path}"]

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-s", str(self.path), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def load(self):
        count = self.arguments.commands
        before, cpu, wall = int(self.ask("DBSIZE")), contest.cpu_ns(self.process.pid), time.monotonic_ns()
        subprocess.run(
            ["redis-benchmark", "-s", str(self.path), "-n", str(count), "-c", "50", "-P", str(self.arguments.pipeline),
             "-r", str(KEYS), "-q", "SET", "k:__rand_int__", "v", "NX", "EX", "86400"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        wall = time.monotonic_ns() - wall
        cpu = contest.cpu_ns(self.process.pid) - cpu
        if int(self.ask("DBSIZE")) - before < count * 0.95:
            contest.fail(f"{self.arguments.server}: keys are missing")
        return {"request": {"ops": count, "wall_ns": wall, "cpu_ns": cpu},
                "rate": count * 1e9 / wall}

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def version(arguments):
    program = [arguments.hapax, "version"] if arguments.server == "hapax" else ["redis-server", "--version"]
    words = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    return " ".join(words[:3])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hapax", required=True)
    parser.add_argument("--server", choices=("hapax", "redis"), required=True)
    parser.add_argument("--durable", action="store_true")
    parser.add_argument("--pipeline", type=int, required=True)
    parser.add_argument("--commands", type=int, required=True)
    parser.add_argument("--folder", help="where durable stores are; a temporary one by default")
    arguments = parser.parse_args()
    server = Server(arguments)
    try:
        contest.run(arguments.server, version(arguments), lambda seed: server.load())
    finally:
        server.close()


if __name__ == "__main__":
    main()
