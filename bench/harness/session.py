# SPDX-License-Identifier: Apache-2.0
"""A contestant as a process: start it, ask for rounds, read its lines."""

import json
import os
import signal
import subprocess
import threading

from harness import contest


class ContestError(Exception):
    """A contestant failed; the message says which and how."""


class Session:
    """One running contestant. It waits on its input while others have their turn."""

    def __init__(self, label, command, env, timeout_s):
        self.label = label
        self.timeout_s = timeout_s
        # A session of its own, so that servers which it starts can be ended with it.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
            start_new_session=True,
        )
        try:
            self.hello = self._read()
        except BaseException:
            self.kill()
            raise

    def round(self):
        """The measures of one round, and the CPU seconds that the process used for it."""
        before = contest.cpu_ns(self.process.pid)
        try:
            self.process.stdin.write("round\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise ContestError(f"{self.label}: ended between two rounds") from error
        measures = self._read()
        return measures, (contest.cpu_ns(self.process.pid) - before) / 1e9

    def close(self):
        """End of input ends a contestant; one that does not obey is killed."""
        try:
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()
        self.process.stdout.close()

    def kill(self):
        """With all that it has started: a few seconds to clean up, then by force."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(timeout=5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self.process.wait()

    def _read(self):
        timer = threading.Timer(self.timeout_s, self.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            status = self.process.wait()
            raise ContestError(f"{self.label}: ended with status {status}, no answer")
        try:
            return json.loads(line)
        except json.JSONDecodeError as error:
            raise ContestError(f"{self.label}: not a line of JSON: {line!r}") from error
