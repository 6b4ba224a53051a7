"""activation.py - a daemon that is handed its sockets."""

import socket
import sys

from daemon import PROGRAM, Process, log_line

LAUNCH = """
import os, sys
count = int(sys.argv[1])
held = [os.dup(int(fd)) for fd in sys.argv[2:2 + count]]
high = [__import__("fcntl").fcntl(fd, __import__("fcntl").F_DUPFD, 100) for fd in held]
for index, fd in enumerate(high):
    os.dup2(fd, 3 + index)
os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), str(count)
os.execv(sys.argv[2 + count], sys.argv[2 + count:])
"""


class Activated(Process):
    """A daemon that is handed sockets, as systemd does it."""

    def __init__(self, cli, sockets, upstream_url, *options):
        fds = [each.fileno() for _, each in sockets]
        command = (sys.executable, "-c", LAUNCH, str(len(fds)), *map(str, fds), str(PROGRAM))
        arguments = ["serve", "--store", "memory:", "--upstream", upstream_url, "--gateway", "off", "--admin", "off", *options]
        super().__init__(
            arguments,
            cli.env(HAPAX_STORE=None, LISTEN_FDNAMES=":".join(name for name, _ in sockets)),
            lambda line: log_line(line) if log_line(line).get("msg") == "ready" else None,
            command=command,
            pass_fds=fds,
        )


def listening(family=socket.AF_INET, where=("127.0.0.1", 0)):
    door = socket.socket(family)
    door.bind(where)
    door.listen(64)
    return door
