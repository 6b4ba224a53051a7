"""What must be refused: a clear message, the exit code of the table, nothing half-written."""

import os
import random
import re
import resource
import shutil
import subprocess

from harness import COMMANDS, DAEMONS, MAKERS, OPERANDS, PROGRAM, ROOT, STORE_COMMANDS, Skip, expect, expect_in, plain_user
from harness import expect_match, is_sanitized, proof, public_program, scaled

KEY_COMMANDS = list(OPERANDS)


def snapshot(cli):
    return {path.name: path.read_bytes() for path in cli.folder.glob("*.db*")}


def test_a_limit_of_address_space(cli):
    """The message of a process with a limit says how much is needed, and that much is enough."""
    if is_sanitized():
        raise Skip("a sanitizer needs more address space than any limit")

    def check(store, kib, code):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024))

        return cli.run("check", "k", "--store", store, code=code, preexec_fn=limit)

    for store in (f"file:{cli.folder}/log", "memory:"):
        refused = check(store, 300_000, 71).says("of address space", "(RLIMIT_AS) is 292 MiB")
        needed = int(re.search(r"'ulimit -v (\d+)'", refused.err)[1])
        # What fails is the address space, not the memory: nothing of it is used.
        check(store, needed, 0)


def test_keys(cli):
    wrong = [
        ("", "key is empty"),
        ("x" * 1025, "key is too long: 1025 bytes, limit 1024"),
        ("é" * 513, "key is too long: 1026 bytes"),
        ("a\x07b", "control character at offset 1 (U+0007)"),
        ("line\nbreak", "control character at offset 4 (U+000A)"),
        ("del\x7f", "control character at offset 3 (U+007F)"),
        ("c1\u0085", "control character at offset 2 (U+0085)"),
        ("\x1b[31m", "control character at offset 0 (U+001B)"),
        (b"ab\xff", "not UTF-8 at offset 2 (byte 0xff)"),
        (b"\xc0\x80", "not UTF-8 at offset 0 (byte 0xc0)"),
        (b"\xed\xa0\x80", "not UTF-8 at offset 0"),
        (b"\xf4\x90\x80\x80", "not UTF-8 at offset 0"),
        (b"ok\xe2\x82", "not UTF-8 at offset 2"),
    ]
    for command in KEY_COMMANDS:
        for key, message in wrong:
            result = cli.run(command, key, *OPERANDS[command][1:], code=64)
            result.says(f"hapax: {command}: the key ", message)
            expect(result.out, "")
    assert not cli.path.exists(), "a wrong key made a store"


def test_prefixes(cli):
    cli.run("keys", "--prefix", "a\x07", code=64).says("--prefix has a control character at offset 1")
    cli.run("keys", "--prefix", "x" * 1025, code=64).says("--prefix is too long: 1025 bytes")


def test_scopes(cli):
    wrong = [
        ("", "tenant is empty"),
        ("/", "tenant is empty"),
        ("/g", "tenant is empty"),
        ("t/", "group is empty"),
        ("a/b/c", "more than one slash"),
        ("t" * 129, "tenant is too long: 129 bytes, limit 128"),
        ("t/" + "g" * 129, "group is too long: 129 bytes, limit 128"),
        ("t\x01", "tenant has a control character at offset 1"),
        (b"t/\xff", "group is not UTF-8 at offset 0"),
    ]
    for scope, message in wrong:
        for command in STORE_COMMANDS:
            result = cli.run(command, *OPERANDS.get(command, []), "--scope", scope, code=64)
            result.says(f"hapax: {command}: --scope: ", message)
    assert not cli.path.exists()


def test_ttls(cli):
    wrong = [
        ("0", "must be greater than 0"),
        ("0s", "must be greater than 0"),
        ("0d0h", "must be greater than 0"),
        ("-5m", "must be greater than 0, not '-5m'"),
        ("-1", "must be greater than 0, not '-1'"),
        ("99999999999999999999d", "number is too large"),
        ("9223372036854775807d", "number is too large"),
        ("36526d", "the limit is 100 years"),
        ("5", "expected"),
        ("", "empty"),
        ("soon", "expected"),
        ("5 m", "expected"),
        ("1.5x", "expected"),
        ("Forever", "expected"),
        ("5m\x1b[31m", "expected"),
    ]
    for ttl, message in wrong:
        result = cli.run("check", "k", f"--ttl={ttl}", code=64)
        result.says("hapax: check: --ttl", message)
        expect(result.out, "")
        if ttl:
            cli.run("check", "k", env={"HAPAX_TTL": ttl}, code=64).says("HAPAX_TTL", message)
            cli.run("check", "k", env={"IDEMPOTENCY_TTL": ttl}, code=64).says("IDEMPOTENCY_TTL", message)
    assert not cli.path.exists()
    cli.run("check", "k", "--ttl", "36525d")


def test_store_urls(cli):
    for command in STORE_COMMANDS:
        arguments = [command, *OPERANDS.get(command, [])]
        cli.run(*arguments, "--store", "etcd://host", code=69).says("etcd", "memory:, file:DIR, sqlite:FILE")
        cli.run(*arguments, "--store", "orders.db", code=69).says("hint: did you mean 'sqlite:orders.db'?")
        cli.run(*arguments, "--store", "", code=69).says("invalid store URL")
        cli.run(*arguments, "--store", "sqlite:" + "x" * 9000, code=64).says("the limit is 4111 bytes")
    expect(sorted(path.name for path in cli.folder.iterdir()), ["home"])


def test_help_names_every_kind_of_store(cli):
    known = cli.run("check", "k", "--store", "etcd:", code=69).err.split("; use ")[1].split("\n")[0]
    schemes = [url.partition(":")[0] + ":" for url in known.replace(" or ", ", ").split(", ")]
    expect(len(schemes), 12)
    texts = [cli.run("--help").out, cli.run("help", "serve").out]
    texts += [cli.run("completion", shell).out for shell in ("zsh", "fish")]
    texts.append((ROOT / "man/hapax.1").read_text(encoding="utf-8"))
    for scheme in schemes:
        for text in texts:
            expect_match(rf"(?<![a-z+]){re.escape(scheme)}", text, scheme)


def test_files_that_are_no_store(cli):
    cli.run("check", "k", "--store", f"sqlite:{cli.folder}", code=None)
    for store in ("sqlite:", f"sqlite:{cli.folder}", f"sqlite:{cli.folder}/missing/x.db", "sqlite:/dev/null/x"):
        result = cli.run("check", "k", "--store", store, code=None)
        assert result.code in (64, 69), (store, result.code, result.err)
        result.says("hapax: check: ")
    text = cli.folder / "text.db"
    text.write_text("This is not a database, however long it may be. " * 100, encoding="ascii")
    before = text.read_bytes()
    for command in STORE_COMMANDS:
        result = cli.run(command, *OPERANDS.get(command, []), "--store", f"sqlite:{text}", code=74)
        result.says("not a SQLite database")
    expect(text.read_bytes(), before, "the file")


def test_the_database_of_another_program(cli):
    cli.sql("CREATE TABLE business (id INTEGER)")
    before = snapshot(cli)
    for command in STORE_COMMANDS:
        result = cli.run(command, *OPERANDS.get(command, []), code=None)
        assert result.code in (64, 69), (command, result.code, result.err)
        # Only these would make a ledger; the others find that there is none.
        result.says("another program" if command in MAKERS else "has no store")
    expect(snapshot(cli), before, "the files")


def test_a_newer_schema(cli):
    cli.run("check", "k")
    cli.sql("UPDATE hapax_meta SET version = 99")
    cli.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    before = cli.path.read_bytes()
    for command in STORE_COMMANDS:
        result = cli.run(command, *OPERANDS.get(command, []), code=69)
        result.says("99", "newer hapax")
        expect(result.out, "")
    expect(cli.path.read_bytes(), before, "the file")


def test_a_damaged_database(cli):
    cli.seed("many", "key-", 500, 3600000)
    cli.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(cli.path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = os.urandom(64)
    cli.path.write_bytes(data)
    for command in STORE_COMMANDS:
        result = cli.run(command, *OPERANDS.get(command, []), code=None)
        # stats reads one row on the first page, which is whole; forget of a missing key is not damage.
        if command in ("check", "lookup", "keys", "claim", "explain"):
            expect(result.code, 74, f"{command}: {result.err}")
        else:
            assert result.code in (0, 1, 74, 77), f"{command}: {result.code} {result.err}"
        if result.code == 74:
            result.says(f"hapax: {command}: ")


def test_a_folder_that_is_not_writable(cli):
    program = public_program(cli)
    folder = cli.folder / "closed"
    folder.mkdir(mode=0o555)
    result = cli.run(
        "check", "k", "--store", f"sqlite:{folder}/x.db", code=69, program=program, cwd="/", **plain_user()
    )
    result.says("closed/x.db")
    expect(result.out, "")
    expect(list(folder.iterdir()), [])
    environment = {"HAPAX_STORE": None, "XDG_STATE_HOME": str(folder / "state")}
    result = cli.run("check", "k", env=environment, code=69, program=program, cwd="/", **plain_user())
    result.says("closed/state", "Permission denied", "hint: choose another store with --store or HAPAX_STORE")


def test_a_store_that_is_not_readable(cli):
    program = public_program(cli)
    cli.run("check", "k")
    for path in cli.folder.glob("test.db*"):
        os.chmod(path, 0o000 if os.geteuid() != 0 else 0o600)
    for command in STORE_COMMANDS:
        result = cli.run(
            command, *OPERANDS.get(command, []), code=69, program=program, cwd="/", **plain_user()
        )
        result.says(f"hapax: {command}: ")


def full_disk(cli, url, path, **options):
    """Fill a store until it refuses; what was answered must be there, and nothing else."""
    firsts = []
    for number in range(4000):
        key = f"{number:06}" + "x" * 900
        result = cli.run("check", key, "--store", url, code=None, **options)
        if result.code != 0:
            break
        expect(result.out, "first\n")
        firsts.append(key)
    else:
        raise AssertionError("the disk did not fill up")
    expect(result.out, "")
    assert result.code in (69, 74), (result.code, result.err)
    result.says("hapax: check: ")
    return firsts, key, result


def check_after_full_disk(cli, url, firsts, key, result):
    listed = {line["key"] for line in cli.run("keys", "-o", "json", "--store", url).lines}
    expect(set(firsts) - listed, set(), "keys that were answered and are gone")
    if result.code == 69:
        expect(listed - set(firsts), set(), "keys that were refused and are there")
        expect(cli.run("check", key, "--store", url).out, "first\n")
    else:
        cli.run("check", key, "--store", url, code=None)
    cli.run("check", firsts[-1], "--store", url, code=1)


def test_a_file_size_limit(cli):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    firsts, key, result = full_disk(cli, cli.store, cli.path, preexec_fn=limit)
    check_after_full_disk(cli, cli.store, firsts, key, result)
    cli.is_intact()


def test_a_full_file_system(cli):
    if os.geteuid() != 0:
        raise Skip("only root can mount a small file system")
    disk = cli.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1700k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        raise Skip("mounting is not allowed here")
    try:
        url = f"sqlite:{disk}/x.db"
        firsts, key, result = full_disk(cli, url, disk / "x.db")
        expect(result.code, 69)
        expect_in("full", result.err)
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        check_after_full_disk(cli, url, firsts, key, result)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_store_that_is_busy(cli):
    cli.run("check", "k")
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    command = [shutil.which("python3"), "-c", code, str(cli.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as blocker:
        expect(blocker.stdout.readline(), b"locked\n")
        result = cli.run("check", "other", code=69)
        blocker.stdin.close()
    result.says("nothing changed")
    expect(cli.run("check", "other").out, "first\n")


def test_an_environment_without_anything(cli):
    done = subprocess.run([str(PROGRAM), "help"], env={}, capture_output=True, timeout=60, check=True)
    expect(done.stderr, b"")
    done = subprocess.run([str(PROGRAM), "check", "k"], env={}, capture_output=True, timeout=60, check=False)
    expect(done.returncode, 64)


def test_random_arguments(cli):
    words = [*COMMANDS, "--ttl", "--ttl=1h", "7d", "forever", "-o", "json", "-ojson", "text", "--scope", "a/b", "a"]
    words += ["--store", "memory:", cli.store, "--payload", "-", "/etc/passwd", "--state", "done", "--prefix", "k"]
    words += ["--limit", "3", "-n", "-n5", "--force", "--", "-h", "--help", "-V", "", "k", "x" * 1100, "-", "---"]
    words += ["--key", "--wait", "--token", "1", "--done", "--retry", "--timeout", "--lease=1s", "true", "bash"]
    words += ["--limit=99999999999999999999", "--=", "--ttl=", "-oo", "=", "/", "%s%n%d", b"\xff\xfe", "\x07"]
    seed = int(os.environ.get("HAPAX_TEST_SEED") or 1)
    source = random.Random(seed)
    count = scaled(proof=5000, usual=200)
    with proof("random command lines", count):
        for _ in range(count):
            arguments = [source.choice(words) for _ in range(source.randint(0, 6))]
            if source.random() < 0.6:
                arguments.insert(0, source.choice(COMMANDS))
            if arguments and arguments[0] in DAEMONS:
                continue
            result = cli.run(*arguments, code=None)
            if result.code not in (0, 1, 64, 65, 66, 69, 75, 77, 125, 126, 127):
                raise AssertionError(f"seed {seed}: {arguments}: exit {result.code}, {result.err}")
            if result.code >= 64:
                assert result.err, f"seed {seed}: {arguments}: exit {result.code} without a message"
