# SPDX-License-Identifier: Apache-2.0
"""Make contestants runnable: find what they need, build them, say why one is left out."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from harness import plan


class Workshop:
    """Builds contestants into one build folder, each once."""

    def __init__(self, build_folder, contestants):
        self.contestants = contestants
        self.build_folder = build_folder.resolve()
        self.places = {
            "build": str(self.build_folder),
            "out": str(self.build_folder / "bench" / "peers"),
            "bench": str(plan.BENCH),
            "python": sys.executable,
        }
        self._built = set()

    def reason_to_leave_out(self, contestant):
        """A sentence, or None when it can take part."""
        for need in contestant.needs:
            if _find(need) is None:
                return f"'{need}' was not found"
        if contestant.unlike:
            program, other = contestant.unlike
            if _find(program) == _find(self.contestants[other].needs[0]):
                return f"the same as '{other}' on this machine"
        if contestant.get:
            command = [part.format(**self.places) for part in contestant.get]
            run = subprocess.run(command, check=False, capture_output=True, text=True)
            if run.returncode != 0:
                return run.stderr.strip() or f"{command} exited with {run.returncode}"
        return None

    def build(self, contestant):
        """Build it unless that was done; raises CalledProcessError."""
        if contestant.name in self._built:
            return
        os.makedirs(self.places["out"], exist_ok=True)
        if contestant.target:
            self._run(["ninja", "-C", str(self.build_folder), *contestant.target.split()])
        elif contestant.build:
            self._run(
                [part.format(**self.places) for part in contestant.build],
                cwd=plan.BENCH / contestant.folder,
                env=self.environment(contestant),
            )
        self._built.add(contestant.name)

    @staticmethod
    def _run(command, **options):
        """Quiet unless it fails."""
        run = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )
        if run.returncode != 0:
            sys.stderr.write(run.stdout)
            run.check_returncode()

    def command(self, contestant, args, values):
        """The command line of a contestant with a row's arguments."""
        return [part.format(**self.places) for part in contestant.command] + [
            arg.format(**values) for arg in args
        ]

    def environment(self, contestant):
        return {**os.environ, **contestant.env}

    def warnings(self):
        """What makes the figures of this build folder worth less."""
        run = subprocess.run(
            ["meson", "introspect", "--buildoptions", str(self.build_folder)],
            check=False,
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            return ["the build's options could not be read"]
        options = {option["name"]: option["value"] for option in json.loads(run.stdout)}
        found = []
        if options.get("optimization") not in ("2", "3"):
            found.append(f"built with optimization={options.get('optimization')}")
        if options.get("b_sanitize") not in ("none", [], None):
            found.append(f"built with b_sanitize={options.get('b_sanitize')}")
        return found


def _find(need):
    """Where a program or file really is, or None."""
    found = need if need.startswith("/") and os.path.exists(need) else shutil.which(need)
    return str(pathlib.Path(found).resolve()) if found else None
