"""transcript.py - what a document shows as typed and answered, typed again and compared.

A transcript is a fenced block without a language in which lines begin with "$ ". What follows such a line, up to the
next, is what it answers: "..." stands for what is left out of a line or, on a line of its own, for lines. Of the head of
an HTTP reply fields may be left out without it.
Times and durations are of that day; a token that is shown and used again is the same one again. What a command writes
to standard error comes with the rest, as on a terminal.
"""

import re
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
        self.process.kill()
        self.process.communicate()


def play(steps, shell, places=None, special=None):
    """Type each command and compare. places: what stands for what here, once it is known; special: commands that are
    not for the shell, each a function of the command that answers True."""
    tokens = {}
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
