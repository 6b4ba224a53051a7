"""Files that hapax creates are its owner's alone, whatever the umask says and wherever a link points."""

import hashlib
import os
import stat

from daemon import Serve, post, request, upstream
from harness import PROGRAM, expect, until

# Without a umask a mode that leaves something open shows.
OPEN = ("sh", "-c", 'umask 0; exec "$0" "$@"', str(PROGRAM))

TOKEN = "token-of-admin-0123456789abcdef"


def open_to_others(folder):
    """Files and sockets that others may use at all, folders that they may write to."""
    found = []
    for path, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            mode = os.lstat(os.path.join(path, name)).st_mode
            forbidden = 0o022 if stat.S_ISDIR(mode) else 0o077
            if not stat.S_ISLNK(mode) and mode & forbidden:
                found.append((os.path.join(path, name), oct(stat.S_IMODE(mode))))
    return found


def test_files_of_the_daemon(cli):
    folder = cli.folder / "daemon"
    folder.mkdir(0o700)
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    config = f"auth:\n  tokens:\n    - {{name: admin, hash: 'sha256:{digest}', role: admin}}\n"
    config += f"log: {{audit: '{folder}/audit.log'}}\n"
    with upstream() as service:
        daemon = Serve(
            cli, service.url, "--resp", f"unix:{folder}/resp.sock", store=f"file:{folder}/store", config=config, command=OPEN
        )
        try:
            expect(post(daemon.gateway, "1").status, 200)
            fields = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            expect(request(daemon.admin, "PATCH", "/api/v1/config", fields, b'{"defaults":{"ttl":"2h"}}').status, 200)
            # The audit is written by a thread of its own.
            until((folder / "audit.log").exists, "the audit has its file")
            names = {path.name for path in folder.rglob("*")}
            expect({"resp.sock", "store"} - names, set(), "what was made")
            expect((cli.folder / "conf.d/99-runtime.yaml").stat().st_mode & 0o777, 0o600)
            expect(open_to_others(folder), [])
            daemon.end()
            expect(open_to_others(folder), [])
        finally:
            daemon.kill()


def test_files_of_commands(cli):
    """A store at a link that points nowhere is made where it points, and is no more open than any other."""
    folder = cli.folder / "commands"
    folder.mkdir(0o700)
    environment = {"XDG_STATE_HOME": str(folder / "state"), "XDG_RUNTIME_DIR": str(folder)}
    for name in ("store", "outbox"):
        (folder / f"{name}.link").symlink_to(folder / f"{name}.db")
    linked = f"sqlite:{folder}/store.link"
    cli.run("check", "a", "--store", linked, env=environment, umask=0)
    cli.run("run", "--key", "b", "--store", linked, "--", "true", env=environment, umask=0)
    cli.run("check", "a", env={**environment, "HAPAX_STORE": None}, umask=0)
    cli.run("check", "a", "--store", f"file:{folder}/log", env=environment, umask=0)
    cli.run("outbox", "init", "--db", f"sqlite:{folder}/outbox.link", env=environment, umask=0)
    cli.run("outbox", "init", "--db", f"sqlite:{folder}/plain.db", env=environment, umask=0)
    names = {path.name for path in folder.rglob("*")}
    expect({"store.db", "outbox.db", "plain.db", "hapax.db", "log"} - names, set(), "what was made")
    expect(open_to_others(folder), [])
