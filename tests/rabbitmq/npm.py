"""npm.py - run a script with a package of npm, which is fetched from the registry: for `make proof` alone."""

import os
import shutil
import subprocess

from harness import Skip, expect, is_proof


def run(cli, package, script, *arguments):
    if not is_proof():
        raise Skip("only for make proof: it needs the registry of npm")
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cli.folder), package],
        capture_output=True, timeout=240, check=False,
    )
    if done.returncode != 0:
        raise Skip(f"the registry of npm was not reached: {done.stderr[-300:]!r}")
    path = cli.folder / "script.cjs"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["node", str(path), *arguments], capture_output=True, timeout=120, check=False,
        env={**os.environ, "NODE_PATH": str(cli.folder / "node_modules")},
    )
    expect((done.returncode, done.stderr), (0, b""), "the producer")
