"""transcript.py - type the examples of a document and compare their output with what the document shows.

A transcript is a fenced block without a language in which lines begin with "$ ". The lines up to the next "$ " are the
output: "..." stands for the rest of a line or, on a line of its own, for any lines. Header fields of an HTTP response
may be missing without it. Times and durations match any time or duration. A token that is shown twice must be the same
token both times. Standard error is part of the output, as on a terminal.
"""

import os
import re
import signal
import subprocess
import threading

from harness import ROOT, TIMEOUT_SECONDS

MASKS = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    (r"\(<?[0-9]+[0-9a-z]* ago\)", r"\(<?[0-9]+[0-9a-z]* ago\)"),
    (r"\(in [0-9]+[0-9a-z]*\)", r"\(in [0-9]+[0-9a-z]*\)"),
    (r" ?\.\.\. ?", r".*"),
]
TOKEN = r"\b[1-9][0-9]{15}\b"
LINES_LEFT_OUT = r"(?:.*\n)*?"
FIELDS_LEFT_OUT = r"(?:[A-Za-z-]+: .*\n)*?"


class Step:
    def __init__(self, command):
        self.command, self.answer = command, []

    def __repr__(self):
        return self.command


def blocks(path):
    """The fenced blocks without a language, each a list of lines."""
    inside = None
    for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
        if not line.startswith("```"):
            if inside is not None:
                inside.append(line)
        elif inside is None:
            inside, is_plain = [], line == "```"
        else:
            if is_plain:
                yield inside
            inside = None


def read(path):
    """The transcripts of a document, each a list of steps."""
    found = []
    for block in blocks(path):
        steps = []
        for line in block:
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif steps and steps[-1].command.endswith("\\") and not steps[-1].answer:
                steps[-1].command += "\n" + line
            elif steps:
                steps[-1].answer.append(line)
        if steps:
            found.append(steps)
    return found


def pattern(lines, tokens):
    """A regular expression for what these lines stand for; tokens: those that are known by now."""
    parts = []
    is_head = bool(lines) and lines[0].startswith("HTTP/")
    for line in lines:
        is_head = is_head and line != ""
        if line.strip() == "...":
            parts.append(LINES_LEFT_OUT)
            continue
        pieces, at = "", 0
        either = "|".join([f"(?P<token>{TOKEN})", *(f"({shown})" for shown, _ in MASKS)])
        for match in re.finditer(either, line):
            pieces += re.escape(line[at : match.start()])
            at = match.end()
            if match.group("token"):
                pieces += tokens.get(match.group(), rf"(?P<t{match.group()}>[0-9]+)")
            else:
                pieces += next(meant for shown, meant in MASKS if re.fullmatch(shown, match.group()))
        parts.append(pieces + re.escape(line[at:]) + r" *\n" + (FIELDS_LEFT_OUT if is_head else ""))
    return "".join(parts)


class Shell:
    """One that keeps what was typed: functions, variables. Commands do not read what is typed behind them."""

    END = "-- this was the end of it:"

    def __init__(self, folder, env):
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder, env=env, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def type(self, command):
        """What it answers."""
        watch = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{self.END} %d\\n' $?\n")
            self.process.stdin.flush()
            answer = ""
            while self.END not in answer:
                line = self.process.stdout.readline()
                if not line:
                    raise AssertionError(f"the shell ended, or took too long: {command}: {answer}")
                answer += line
        finally:
            watch.cancel()
        return answer[: answer.index(self.END)].rstrip("\n").replace("\r", "")

    def close(self):
        """End it and what it has started: all are in its process group."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def play(steps, shell, places=None, special=None, tokens=None):
    """Type each command and compare. places: addresses of the document and those of this test; special(command): True
    if it has run the command itself; tokens: those of earlier transcripts in the same shell."""
    tokens = {} if tokens is None else tokens
    for step in steps:
        if special and special(step.command):
            continue
        command = step.command
        for shown, here in [*(places or {}).items(), *tokens.items()]:
            command = command.replace(shown, here)
        answer = shell.type(command)
        expected = pattern(step.answer, tokens)
        match = re.fullmatch(expected, answer + "\n" if answer else "")
        if not match:
            shown = "\n".join(step.answer)
            raise AssertionError(f"$ {command}\n--- the document has\n{shown}\n--- it answered\n{answer}")
        tokens.update({name[1:]: value for name, value in match.groupdict().items()})
