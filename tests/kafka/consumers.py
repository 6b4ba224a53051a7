"""consumers.py - consumers: of `hapax serve` for tests: their configuration, and what the daemon says of them."""

import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "serve"))

from daemon import get, log_line, metrics  # noqa: E402
from harness import until  # noqa: E402


def row(**settings):
    """A consumer as YAML has it; JSON is YAML."""
    return json.dumps({"name": "orders", **settings})


def config(*rows, more=""):
    return f"consumers: [{', '.join(rows)}]\n{more}\n"


def figure(daemon, name, consumer="orders", **labels):
    text = "".join(f',{label}="{value}"' for label, value in labels.items())
    return metrics(daemon).get(f'hapax_consumer_{name}{{consumer="{consumer}"{text}}}')


def until_figure(daemon, value, name, consumer="orders", **labels):
    """A scrape costs more than a look at a file: not as often as until() would."""

    def holds():
        if figure(daemon, name, consumer, **labels) == value:
            return True
        time.sleep(0.05)
        return False

    until(holds, f"{name} of {consumer} is {value}")


def health(daemon):
    """What /healthz says of consumers, and its status."""
    reply = get(daemon.admin, "/healthz", Accept="application/json")
    found = {part["name"]: part for part in reply.json["components"]}
    return reply.status, found.get("consumers")


def duplicates(daemon):
    time.sleep(0.05)
    return [note for note in get(daemon.admin, "/api/v1/duplicates").json["duplicates"] if note["decision"] == "replay"]


def said(daemon, msg):
    return [found for found in map(log_line, list(daemon.lines)) if found.get("msg") == msg]


def reload(daemon, text):
    before = metrics(daemon)["hapax_config_reloads_total"]
    daemon.config.write_text(text, encoding="utf-8")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: metrics(daemon)["hapax_config_reloads_total"] == before + 1, "it is read again")
