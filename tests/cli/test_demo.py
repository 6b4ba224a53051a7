"""tools/demo, which `make demo` shows, and the example of the README."""

import os
import re
import shutil
import subprocess

from harness import PROGRAM, ROOT, expect, expect_in, example_program


def demo(cli, program=PROGRAM, **env):
    return subprocess.run(
        [str(ROOT / "tools/demo")],
        env=cli.env(HAPAX_PROGRAM=str(program), **env),
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_the_demo_shows_what_it_claims(cli):
    done = demo(cli)
    text = done.stdout.decode()
    expect((done.returncode, done.stderr), (0, b""))
    parts = ["$ hapax check order-17\nfirst\n", "\nduplicate ", "\nmismatch ", "\nforgotten ", "export HAPAX_STORE="]
    for part in parts:
        expect_in(part, text)
    sent = re.findall(r"^report sent by process \d+$", text, re.MULTILINE)
    expect((len(sent), len(set(sent))), (2, 1), "runs and their outputs")
    assert "\x1b" not in text
    expect(sorted(path.name for path in cli.folder.iterdir()), ["home"], "what it left behind")
    expect(list(cli.home.iterdir()), [])


def test_the_demo_is_not_led_astray_by_the_environment(cli):
    done = demo(cli, HAPAX_STORE="redis://nowhere", HAPAX_TTL="soon", IDEMPOTENCY_TTL="later", HOME=None)
    expect((done.returncode, done.stderr), (0, b""))


def test_the_demo_notices_a_wrong_answer(cli):
    liar = cli.folder / "bin/hapax"
    liar.parent.mkdir()
    liar.write_text("#!/bin/sh\necho first\n", encoding="ascii")
    os.chmod(liar, 0o755)
    done = demo(cli, liar)
    expect(done.returncode, 1)
    expect_in(b"this should have exited with status 1, not 0", done.stderr)
    shutil.rmtree(liar.parent)
    expect(demo(cli, liar).returncode, 1)


def example(cli, *arguments):
    return subprocess.run(
        [example_program(), *arguments], cwd=cli.folder, env=cli.env(), capture_output=True, timeout=60, check=False
    )


def test_the_example(cli):
    for url in ([], [cli.store]):
        expect(example(cli, *url).stdout, b"order-17: shipped\n")
        expect(example(cli, *url).stdout, b"order-17: replay, nothing to do\n")
    done = example(cli, "nowhere:")
    expect((done.returncode, done.stdout), (1, b""))
    expect_in(b"check: unsupported: ", done.stderr)
    # The library and the program share one ledger.
    cli.run("check", "order-17", code=1)
    cli.run("check", "order-17", "--store", f"sqlite:{cli.folder}/orders.db", code=1)
