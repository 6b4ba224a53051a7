"""Many processes at once: of any number of concurrent callers exactly one is told "first"."""

import time

from harness import expect, scaled

PROCESSES = 50

# How long a process waits for a busy store; store.h, timeout_ms.
STORE_TIMEOUT_SECONDS = 5


def run_crowd(cli, commands):
    """Start the commands at once; return (exit status, output, errors) of each.

    A process that could not get the store's lock in time reports 69 and changed nothing: fifty
    processes with sanitizers on a busy machine can take that long. It runs again. A process that
    gives up earlier fails the test.
    """
    answers = []
    while commands:
        begin = time.monotonic()
        crowd = [(command, cli.start(*command)) for command in commands]
        commands = []
        for command, process in crowd:
            out, err = process.communicate(timeout=120)
            if process.returncode == 69 and time.monotonic() - begin >= STORE_TIMEOUT_SECONDS:
                commands.append(command)
            else:
                answers.append((process.returncode, out, err))
    return answers


def test_50_processes_check_one_key(cli):
    rounds = scaled(proof=200, usual=10)
    begin = time.monotonic()
    for number in range(rounds):
        answers = run_crowd(cli, [["check", f"key-{number}", "-o", "json"]] * PROCESSES)
        codes = sorted(code for code, _, _ in answers)
        if codes != [0] + [1] * (PROCESSES - 1):
            raise AssertionError(f"round {number}: {codes}, {[err for _, _, err in answers if err]}")
    seconds = time.monotonic() - begin
    expect(len(cli.run("keys", "-o", "json").lines), rounds)
    decisions = cli.run("stats", "-o", "json").json["decisions"]
    expect(decisions["acquired"], rounds)
    # No process waits long to count a replay: on a busy machine a few are not counted, but none is counted twice.
    replays = rounds * (PROCESSES - 1)
    if not replays * 0.9 <= decisions["replay"] <= replays:
        raise AssertionError(f"{decisions['replay']} replays were counted of {replays}")
    cli.is_intact()
    print(f"# proof: 50 processes of hapax check, rounds {rounds} {seconds:.1f}s ok", flush=True)


def test_50_processes_make_one_store(cli):
    for number in range(scaled(proof=20, usual=3)):
        store = f"sqlite:{cli.folder}/new-{number}.db"
        commands = [["check", f"key-{index}", "--store", store] for index in range(PROCESSES)]
        expect(run_crowd(cli, commands), [(0, b"first\n", b"")] * PROCESSES)
