"""Many processes at once: of any number of concurrent callers exactly one is told "first"."""

import subprocess
import time

from harness import PROGRAM, expect, scaled

PROCESSES = 50


def test_50_processes_check_one_key(cli):
    rounds = scaled(proof=200, usual=10)
    begin = time.monotonic()
    for number in range(rounds):
        command = [str(PROGRAM), "check", f"key-{number}", "-o", "json"]
        crowd = [
            subprocess.Popen(command, env=cli.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(PROCESSES)
        ]
        answers = [(process.communicate(timeout=120), process.returncode) for process in crowd]
        codes = sorted(code for _, code in answers)
        if codes != [0] + [1] * (PROCESSES - 1):
            raise AssertionError(f"round {number}: {codes}, {[err for (_, err), _ in answers if err]}")
    seconds = time.monotonic() - begin
    expect(len(cli.run("keys", "-o", "json").lines), rounds)
    decisions = cli.run("stats", "-o", "json").json["decisions"]
    expect(decisions["acquired"], rounds)
    # Nobody waits for long to have a replay counted: on a busy machine a few are not, but none is counted twice.
    replays = rounds * (PROCESSES - 1)
    if not replays * 0.9 <= decisions["replay"] <= replays:
        raise AssertionError(f"{decisions['replay']} replays were counted of {replays}")
    cli.is_intact()
    print(f"# proof: 50 processes of hapax check, rounds {rounds} {seconds:.1f}s ok", flush=True)


def test_50_processes_make_one_store(cli):
    for number in range(scaled(proof=20, usual=3)):
        store = f"sqlite:{cli.folder}/new-{number}.db"
        crowd = [
            cli.start("check", f"key-{index}", "--store", store) for index in range(PROCESSES)
        ]
        for process in crowd:
            out, err = process.communicate(timeout=120)
            expect((process.returncode, out, err), (0, b"first\n", b""))
