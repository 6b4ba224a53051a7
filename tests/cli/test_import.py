"""hapax store import: what another system has processed does not run again on the day of the change (B3, B9, C1)."""

import contextlib
import csv
import datetime
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import struct
import subprocess

from harness import Skip, catches, expect, expect_in, expect_match, is_sanitized, on_screen, proof, scaled, until

POSTGRES = os.environ.get("HAPAX_TEST_POSTGRES")
NOW = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
RESULT = '{"tradeId": "t-1", "note": "a, \\"b\\"\\n"}'


def at(**distance):
    return (NOW + datetime.timedelta(**distance)).isoformat()


def table(cli, columns, *rows, name="rows.csv"):
    text = io.StringIO()
    csv.writer(text).writerows([columns.split(), *rows])
    path = cli.folder / name
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return str(path)


def imported(cli, *arguments, code=0, **options):
    return cli.run("store", "import", *arguments, "-o", "json", code=code, **options).json


def record(cli, key, scope="default/default", code=0):
    return cli.run("lookup", key, "--scope", scope, "-o", "json", code=code).json


def result(cli, key, *scope):
    return (cli.run("lookup", key, *scope, "-o", "json").json["result"] or {"body": ""})["body"]


def left_s(answer):
    return (datetime.datetime.fromisoformat(answer["expires_at"].replace("Z", "+00:00")) - NOW).total_seconds()


def near(answer, seconds):
    """Late by what the test took. The clock of a store may be milliseconds behind."""
    assert seconds - 1 <= left_s(answer) < seconds + 60, (answer, seconds)


def counts(answer):
    return {name: answer[name] for name in ("rows", "marks", "results", "existing", "repeated", "expired", "conflicts", "bad")}


def found(**numbers):
    names = ("rows", "marks", "results", "existing", "repeated", "expired", "conflicts", "bad")
    return {name: numbers.get(name, 0) for name in names}


# ---------------------------------------------------------------- files


def test_a_dry_run_shows_everything_and_writes_nothing(cli):
    cli.run("check", "there", "--ttl", "1h")
    path = table(
        cli, "key result expires_at id",
        ["mark", "", at(hours=1), 1], ["done", RESULT, at(days=2), 2], ["there", "", at(hours=1), 3],
        ["old", "", at(hours=-1), 4], ["bad", "", "soon", 5], ["mark", "", at(hours=1), 6], ["kept", "", "infinity", 7],
    )
    for option in ((), ("--dry-run",)):
        answer = imported(cli, "--from", path, *option, code=65)
        expect(counts(answer), found(rows=7, marks=2, results=1, existing=1, repeated=1, expired=1, bad=1))
        expect((answer["dry_run"], answer["complete"], answer["forever"]), (True, True, 1))
        expect([row["key"] for row in answer["first"]], ["mark", "done", "kept"])
        expect([row["kind"] for row in answer["first"]], ["mark", "result", "mark"])
        expect(answer["bad_rows"], [{"place": "line 6", "reason": "expires_at is not a time: 'soon'"}])
        expect(answer["ignored_columns"], "id")
    text = cli.run("store", "import", "--from", path, code=65)
    expect(text.fields()["new"], "3 (2 marks, 1 results)")
    for part in ("line 6: expires_at is not a time: 'soon'", "KEY", "default/default"):
        expect_in(part, text.out)
    expect_in("dry run", text.err)
    expect(cli.run("store", "info", "-o", "json").json["keys"], 1)


def test_a_dry_run_makes_no_store(cli):
    answer = imported(cli, "--from", table(cli, "key expires_at", ["k", "never"]))
    expect(counts(answer), found(rows=1, marks=1))
    assert not cli.path.exists()


def test_nothing_runs_again(cli):
    path = table(
        cli, "key tenant group result expires_at",
        ["mark", "acme", "orders", "", at(hours=1)], ["done", "acme", "orders", RESULT, at(days=2)], ["kept", "", "", "", "never"],
    )
    answer = imported(cli, "--from", path, "--write", "--scope", "t/g")
    expect(counts(answer), found(rows=3, marks=2, results=1))
    scope = ("--scope", "acme/orders")
    expect_in("duplicate", cli.run("check", "mark", *scope, code=1).out)
    expect(cli.run("claim", "done", *scope, "-o", "json", code=1).json["outcome"], "replay")
    expect(result(cli, "done", *scope), RESULT)
    near(record(cli, "mark", "acme/orders"), 3600)
    near(record(cli, "done", "acme/orders"), 2 * 86400)
    expect(record(cli, "kept", "t/g")["expires_at"], None)
    # Again: everything is there, and nothing changes.
    expect(counts(imported(cli, "--from", path, "--write", "--scope", "t/g")), found(rows=3, existing=3))


def test_what_the_store_has_is_never_changed(cli):
    cli.seed("claim", "running", 600000, "worker-1")
    cli.seed("park", "unclear", "no answer")
    cli.seed("http", "done", 201, "created")
    cli.seed("release", "failed", "it broke")
    before = [record(cli, key) for key in ("done", "unclear")]
    path = table(cli, "key result expires_at", *[[key, "other", at(hours=1)] for key in ("running", "unclear", "done", "failed", "new")])
    for option, new in ((), 2), (("--write",), 2), (("--write",), 0):
        answer = imported(cli, "--from", path, *option, code=1)
        expect(counts(answer), found(rows=5, results=new, conflicts=3, existing=2 - new))
        expect({row["key"]: row["reason"] for row in answer["conflict_rows"]}, {
            "running": "a run is in progress", "unclear": "it is parked", "done": "the store has a different result"})
    expect([record(cli, key) for key in ("done", "unclear")], before)
    expect(record(cli, "running")["state"], "claimed")
    # It did not succeed here, and has in the other system.
    expect(record(cli, "failed")["state"], "done")


def test_a_later_expiry_is_a_conflict(cli):
    """Of two rows the first one counts, and nothing prolongs a key; but it is not silent."""
    rows = [["two", at(hours=1)], ["two", at(hours=3)], ["same", at(hours=2)], ["same", at(hours=1)], ["same", at(hours=2, seconds=30)]]
    answer = imported(cli, "--from", table(cli, "key expires_at", *rows), "--write", code=1)
    expect(counts(answer), found(rows=5, marks=2, repeated=2, conflicts=1))
    expect(answer["conflict_rows"], [
        {"key": "two", "reason": "the source has two rows of it, and the first one expires earlier"}])
    near(record(cli, "two"), 3600)
    longer = table(cli, "key expires_at", ["two", at(hours=3)], ["same", at(hours=2)], name="longer.csv")
    shorter = table(cli, "key expires_at", ["two", at(minutes=30)], name="shorter.csv")
    forever = table(cli, "key expires_at", ["two", "never"], name="forever.csv")
    for option in ((), ("--write",)):
        answer = imported(cli, "--from", longer, *option, code=1)
        expect(counts(answer), found(rows=2, existing=1, conflicts=1))
        expect(answer["conflict_rows"], [{"key": "two", "reason": "it expires earlier in the store than in the source"}])
        expect(counts(imported(cli, "--from", forever, *option, code=1)), found(rows=1, conflicts=1))
        expect(counts(imported(cli, "--from", shorter, *option)), found(rows=1, existing=1))
        # Without an end of its own a row changes nothing: --ttl counts from now.
        expect(counts(imported(cli, "--from", table(cli, "key", ["two"]), "--ttl", "9h", *option)), found(rows=1, existing=1))
    near(record(cli, "two"), 3600)
    far = ("--from", table(cli, "key expires_at", ["far", "9000-01-01T00:00:00Z"]), "--write")
    expect([counts(imported(cli, *far)) for _ in range(2)], [found(rows=1, marks=1), found(rows=1, existing=1)])


def test_a_claim_of_a_killed_import_is_completed(cli):
    """The attempt id comes from the row: the next import holds the same claim, and no other claim is taken over."""
    for key in ("ours", "theirs"):
        cli.seed("claim", key, 600000, "hapax store import")
    parts = [struct.pack("=Q", len(part)) + part for part in (b"default", b"default", b"ours", struct.pack("=iii", 1, 0, 0), b"r", b"")]
    name = hashlib.sha256(b"".join(parts[:3])).digest()
    attempt = hashlib.sha256(name + b"".join(parts[3:])).digest()[:16]
    cli.sql("UPDATE hapax_record SET attempt_id = ? WHERE key = CAST('ours' AS BLOB)", attempt)
    path = table(cli, "key result expires_at", ["ours", "r", at(hours=1)], ["theirs", "r", at(hours=1)])
    for option in ((), ("--write",)):
        expect(counts(imported(cli, "--from", path, *option, code=1)), found(rows=2, results=1, conflicts=1))
    expect((record(cli, "ours")["state"], record(cli, "theirs")["state"]), ("done", "claimed"))


def test_bad_rows_stop_it_and_nothing_is_lost(cli):
    rows = [["a", at(hours=1), ""], ["", at(hours=1), ""], ["b", at(hours=1), "processing"], ["c", at(hours=1), "success"]]
    path = table(cli, "key expires_at status", *rows)
    stopped = cli.run("store", "import", "--from", path, "--write", code=65)
    expect_in("line 3: key is empty", stopped.err)
    expect_in("--skip-bad", stopped.err)
    expect(record(cli, "a")["state"], "done")
    record(cli, "c", code=1)
    answer = imported(cli, "--from", path, "--write", "--skip-bad")
    expect(counts(answer), found(rows=4, marks=1, existing=1, bad=2))
    expect([row["place"] for row in answer["bad_rows"]], ["line 3", "line 4"])
    expect_in("'processing' does not say that the work is done", answer["bad_rows"][1]["reason"])


def test_scopes_that_no_door_takes(cli):
    """The gateway would refuse the event that such a row stands for: the mark would never be found."""
    rows = [["k", "a/b", "g"], ["k", "t", "g/"], ["k", "*", "g"], ["k", "t", "g"]]
    answer = imported(cli, "--from", table(cli, "key tenant group", *rows), "--ttl", "1h", "--write", "--skip-bad")
    expect(counts(answer), found(rows=4, marks=1, bad=3))
    reasons = [row["reason"] for row in answer["bad_rows"]]
    for reason, part in zip(reasons, ("tenant 'a/b' has a slash", "group 'g/' has a slash", "tenant '*' is *"), strict=True):
        expect_in(part, reason)


def test_faults_of_a_file_have_a_place(cli):
    for text, place in (
        ('key,expires_at\na,never\nb"c,never\n', "line 3, column 2: a quote must begin the field"),
        ('key,expires_at\n"a"b,never\n', "line 2, column 4: a comma or a line end"),
        ('key,expires_at\n"a,never\n', "the closing quote is missing"),
        ("key,expires_at\ra,never\n", "line 1, column 16: a CR must be followed by LF"),
        ("", "is empty"),
    ):
        cli.run("store", "import", "--from", "-", "--write", code=65, input=text.encode()).says(place)
    answer = imported(cli, "--from", "-", "--write", code=65, input=b"key,expires_at\na,never,1\n")
    expect(answer["bad_rows"][0]["reason"], "it has 3 fields, and the source has 2 columns")
    cli.run("store", "import", "--from", str(cli.folder / "none.csv"), code=66)


def test_options_are_checked_first(cli):
    path = table(cli, "key", ["k"])
    for arguments, part in (
        ((), "missing option --from"),
        (("--from", path), "does not say when its keys expire"),
        (("--from", path, "--ttl", "1h", "--query", "SELECT 1"), "--query is for postgres://"),
        (("--from", path, "--name", "{key}"), "--name is for redis://"),
        (("--from", path, "--column", "x=y"), "is not FIELD=NAME"),
        (("--from", path, "--column", "key=y", "--ttl", "1h"), "no column 'y'"),
        (("--from", path, "--write", "--dry-run"), "together"),
        (("--from", "mysql://host/db"), "unknown kind of source"),
        (("--from", "postgres://host/db"), "missing option --query"),
        (("--from", "redis://host"), "missing option --name"),
        (("--from", "redis://host", "--name", "{tenant}{key}"), "text between them"),
        (("--from", "redis://host", "--name", "a:{tenant}"), "it has no {key}"),
    ):
        cli.run("store", "import", *arguments, code=64).says(part)
    assert not cli.path.exists()


def test_times_and_columns_of_other_systems(cli):
    second = int(NOW.timestamp())
    rows = [
        ["iso", at(hours=1)], ["sql", f"{NOW + datetime.timedelta(hours=1):%Y-%m-%d %H:%M:%S}.5+00"],
        ["plain", f"{NOW + datetime.timedelta(hours=1):%Y-%m-%d %H:%M:%S}"], ["seconds", second + 3600], ["ms", (second + 3600) * 1000],
    ]
    answer = imported(cli, "--from", table(cli, "idempotency_key until", *rows), "--write", "--column", "key=idempotency_key",
                      "--column", "expires_at=until")
    expect(answer["marks"], 5)
    for key, _ in rows:
        near(record(cli, key), 3600)
    imported(cli, "--from", table(cli, "key expires_at", ["date", "2099-01-31"], name="date.csv"), "--write")
    near(record(cli, "date"), (datetime.datetime(2099, 1, 31, tzinfo=datetime.timezone.utc) - NOW).total_seconds())
    imported(cli, "--from", table(cli, "key expires_at", ["date", "2099-02-31"], name="date.csv"), code=65)
    # processed_at and --ttl: a week of which two days are over; without a time, from now.
    rows = [["week", at(days=-2)], ["gone", at(days=-8)], ["now", ""]]
    answer = imported(cli, "--from", table(cli, "key processed_at", *rows), "--write", "--ttl", "7d")
    expect(counts(answer), found(rows=3, marks=2, expired=1))
    near(record(cli, "week"), 5 * 86400)
    near(record(cli, "now"), 7 * 86400)


def test_other_units_of_time_are_refused(cli):
    """Microseconds and nanoseconds are not milliseconds of a far year."""
    second = int(NOW.timestamp()) + 3600
    rows = [["us", second * 10**6], ["ns", second * 10**9], ["last", 253402300799999], ["beyond", 253402300800000]]
    answer = imported(cli, "--from", table(cli, "key expires_at", *rows), code=65)
    expect(counts(answer), found(rows=4, marks=1, bad=3))
    expect([row["place"] for row in answer["bad_rows"]], ["line 2", "line 3", "line 5"])
    expect_in(f"'{rows[0][1]}' is not seconds or milliseconds since 1970; divide", answer["bad_rows"][0]["reason"])
    answer = imported(cli, "--from", table(cli, "key processed_at", rows[0]), "--ttl", "1h", code=65)
    expect_in("processed_at is not a time", answer["bad_rows"][0]["reason"])


def test_results_keep_their_kind(cli):
    rows = [["http", "made", "201"], ["gone", "no such order", "404"], ["failed", "no stock", "failed"], ["bare", "", "failed"]]
    imported(cli, "--from", table(cli, "key result status expires_at", *[[*row, at(hours=1)] for row in rows]), "--write")
    found = {name: record(cli, name)["result"] for name in ("http", "gone", "failed", "bare")}
    kinds = {name: (result["kind"], result["class"], result["status"]) for name, result in found.items()}
    expect((kinds["http"], kinds["gone"]), (("http", "ok", 201), ("http", "definitive", 404)))
    # A failure is one, with or without a result.
    expect({kinds["failed"][:2], kinds["bare"][:2]}, {("bytes", "definitive")})


def test_progress_on_a_terminal(cli):
    path = table(cli, "key expires_at", *[[f"k-{i}", at(hours=1)] for i in range(200000)])
    out, shown = on_screen(cli, "store", "import", "--from", path, "-o", "json", "--write")
    expect(json.loads(out)["marks"], 200000)
    if b"%" in shown:
        expect_match(r"\[[#.]{30}\] +\d+ %  \d+ rows, \d+/s", shown.decode())


def test_a_signal_stops_it_between_two_rows(cli):
    rows = "".join(f"k-{i},never\n" for i in range(100000))
    process = cli.start("store", "import", "--from", "-", "--write", "-o", "json", stdin=subprocess.PIPE)
    until(lambda: catches(process, signal.SIGTERM), "it watches for signals")
    process.terminate()
    # While it waits for input, or before it does.
    _, err = process.communicate()
    expect((process.returncode, b"could not" in err), (143, False), err)
    process = cli.start("store", "import", "--from", "-", "--write", "-o", "json", stdin=subprocess.PIPE)
    process.stdin.write(b"key,expires_at\n" + rows.encode())
    process.stdin.flush()
    process.terminate()
    out, err = process.communicate(rows.encode())
    expect(process.returncode, 143, err)
    answer = json.loads(out)
    expect((answer["complete"], cli.run("store", "info", "-o", "json").json["done"]), (False, answer["marks"]))
    expect_in(b"repeat the command to continue", err)


def test_a_million_rows_and_a_kill(cli):
    """E22, B9: each key once, with its time left, although the import was killed with kill -9 in the middle."""
    # Half of it must be more than the first piece that is read, also where counts are smaller.
    count = max(scaled(1000000, 40000), 40000)
    store = {"HAPAX_STORE": f"file:{cli.folder / 'ledger'}"}
    path = cli.folder / "rows.csv"
    ends = [NOW + datetime.timedelta(hours=1, seconds=i % 86400) for i in range(count)]
    with proof("rows imported, with a kill -9", count):
        with path.open("w", encoding="ascii") as file:
            file.write("key,result,expires_at\n")
            file.writelines(f"key-{i},{'r%d' % i if i % 2 else ''},{int(ends[i].timestamp())}\n" for i in range(count))
        data = path.read_bytes()
        process = cli.start("store", "import", "--from", "-", "--write", env=store, stdin=subprocess.PIPE)
        # A pipe takes 64 KiB beyond what was read, in pieces of 256 KiB: at least one piece is written then.
        process.stdin.write(data[: len(data) // 2])
        process.stdin.flush()
        process.kill()
        process.communicate()
        process = cli.start("store", "import", "--from", str(path), "--write", "-o", "json", env=store)
        answer = json.loads(process.communicate(timeout=1800)[0])
        assert answer["complete"] and answer["conflicts"] + answer["repeated"] + answer["bad"] == 0, answer
        expect(answer["new"] + answer["existing"], count)
        assert answer["new"] > count // 3 and answer["existing"] > 0, answer
        print(f"# after the kill: {answer['existing']} were there, {answer['new']} new, {answer['duration_ms']} ms", flush=True)
        process = cli.start("keys", "-o", "json", env=store)
        seen = set()
        for line in process.stdout:
            row = json.loads(line)
            number = int(row["key"][4:])
            late = datetime.datetime.fromisoformat(row["expires_at"].replace("Z", "+00:00")) - ends[number]
            assert datetime.timedelta(seconds=-1) <= late < datetime.timedelta(seconds=60), row
            expect((row["state"], number in seen), ("done", False), row["key"])
            seen.add(number)
        process.communicate()
        expect(len(seen), count)


# ---------------------------------------------------------------- PostgreSQL

B_TABLE = """
CREATE TABLE processed_events (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(), idempotency_key varchar(255) NOT NULL, event_type varchar(100) NOT NULL,
    consumer_group varchar(100) NOT NULL, tenant_id uuid NOT NULL, event_id uuid NOT NULL, event_timestamp timestamptz NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT now(), result_status varchar(20) NOT NULL DEFAULT 'success', result_payload jsonb,
    UNIQUE (idempotency_key, consumer_group, tenant_id));
INSERT INTO processed_events (idempotency_key, event_type, consumer_group, tenant_id, event_id, event_timestamp, processed_at,
                              result_payload)
SELECT 'k-' || i, 'rfq.executed', 'billing', ('00000000-0000-0000-0000-00000000000' || i % 2)::uuid, gen_random_uuid(), now(),
       now() - i * interval '1 hour', CASE WHEN i % 3 > 0 THEN jsonb_build_object('tradeId', i) END
FROM generate_series(1, 200) AS i;
"""
B_QUERY = """SELECT idempotency_key AS key, consumer_group AS "group", tenant_id AS tenant, result_payload AS result,
result_status AS status, processed_at, event_id, event_type, event_timestamp AS event_time FROM processed_events -- all"""


@contextlib.contextmanager
def database(cli, sql):
    """A schema of its own: yields the URL, and what runs SQL there."""
    if not POSTGRES:
        raise Skip("no PostgreSQL: tests/postgres/with_postgres")
    name = f"import_{os.getpid()}_{abs(hash(cli.folder))}"
    environment = {**os.environ, "PGOPTIONS": f"-csearch_path={name}"}

    def run(text):
        done = subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1"], input=text, text=True, env=environment, capture_output=True,
                              check=False)
        expect(done.returncode, 0, done.stderr)
        return done.stdout

    run(f"CREATE SCHEMA {name};" + sql)
    try:
        yield f"postgres:///postgres{POSTGRES}&options=-csearch_path%3D{name}", run
    finally:
        run(f"DROP SCHEMA {name} CASCADE")


def test_the_table_of_processed_events(cli):
    """B3, B5: document B's table, with its results and what is left of seven days."""
    with database(cli, B_TABLE) as (url, run):
        source = ("--from", url, "--query", B_QUERY, "--ttl", "7d")
        expect(counts(imported(cli, *source)), found(rows=200, results=167, expired=33))
        answer = imported(cli, *source, "--write")
        expect(counts(answer), found(rows=200, results=167, expired=33))
        for number in (1, 2, 3, 100):
            scope = f"00000000-0000-0000-0000-00000000000{number % 2}/billing"
            claim = cli.run("claim", f"k-{number}", "--scope", scope, "-o", "json", code=1).json
            expect(claim["outcome"], "replay")
            expect(result(cli, f"k-{number}", "--scope", scope), f'{{"tradeId": {number}}}' if number % 3 else "")
            near(record(cli, f"k-{number}", scope), (7 * 24 - number) * 3600)
        # The rows are not changed, and a query cannot change them.
        expect(run("SELECT count(*) FROM processed_events"), "200\n")
        cli.run("store", "import", "--from", url, "--query", "DELETE FROM processed_events RETURNING 1 AS key", "--ttl", "1h", code=64)
        run("CREATE SEQUENCE numbers")
        cli.run("store", "import", "--from", url, "--query", "SELECT nextval('numbers') AS key", "--ttl", "1h", code=64).says("read-only")
        cli.run("store", "import", "--from", url, "--query", "SELECT nothing", code=64).says("--query failed", "nothing")
        expect(counts(imported(cli, *source, "--write")), found(rows=200, existing=167, expired=33))


def test_the_event_of_each_row_is_kept(cli):
    """B3, E4: what the view shows after the import is what document B's table has."""
    columns = "idempotency_key, event_type, consumer_group, tenant_id::text, event_id::text, result_status, result_payload,"
    columns += " date_trunc('milliseconds', event_timestamp)"
    old = f"SELECT {columns} FROM processed_events WHERE processed_at > now() - interval '7 days'"
    with database(cli, B_TABLE) as (url, run):
        schema = run("SELECT current_schema").strip()
        store = f"postgres:///postgres{POSTGRES}&schema={schema}"
        cli.run("store", "migrate", store)
        answer = imported(cli, "--from", url, "--query", B_QUERY, "--ttl", "7d", "--write", "--store", store)
        expect(answer["results"], 167)
        new = f"SELECT {columns} FROM hapax_processed_events"
        expect(run(f"({old}) EXCEPT ({new}); ({new}) EXCEPT ({old}); SELECT count(*) FROM hapax_processed_events"), "167\n")


def test_the_table_of_idempotency_keys(cli):
    """C1, C7: document C's table has the end of each key; bytes stay bytes."""
    sql = """CREATE TABLE idempotency_keys (key text PRIMARY KEY, result bytea, expires_at timestamptz);
             INSERT INTO idempotency_keys VALUES ('a', '\\x00ff41', now() + interval '1 day'), ('b', NULL, 'infinity'),
             ('c', 'x', NULL);"""
    with database(cli, sql) as (url, _):
        source = ("--from", url, "--query", "SELECT key, result, expires_at FROM idempotency_keys ORDER BY key;\n")
        answer = imported(cli, *source, code=65)
        expect(answer["bad_rows"], [{"place": "row 3", "reason": "it has no expires_at, and --ttl is not given"}])
        expect(counts(imported(cli, *source, "--write", "--ttl", "1h")), found(rows=3, marks=1, results=2))
        expect(record(cli, "a")["result"]["body_base64"], "AP9B")
        near(record(cli, "a"), 86400)
        expect(record(cli, "b")["expires_at"], None)
        near(record(cli, "c"), 3600)


def test_large_rows_are_not_held_together(cli):
    """512 MiB of results, of which the import holds a few rows."""
    with database(cli, "") as (url, _):
        query = "SELECT i AS key, repeat('x', 8 << 20) AS result FROM generate_series(1, 64) AS i"
        process = cli.start("store", "import", "--from", url, "--query", query, "--ttl", "1h", "-o", "json")
        answer = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.communicate()
        expect((process.returncode, answer["results"]), (0, 64))
        # A sanitizer keeps what was freed.
        assert is_sanitized() or usage.ru_maxrss < 400 * 1024, usage.ru_maxrss


def test_a_signal_stops_a_long_query(cli):
    """The query does not go on in the server either."""
    active = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hapax import' AND state = 'active'"
    with database(cli, "") as (url, run):
        process = cli.start("store", "import", "--from", url, "--query", "SELECT 1 AS key, pg_sleep(600)", "--ttl", "1h")
        until(lambda: run(active) == "1\n", "the query runs")
        process.terminate()
        process.communicate(timeout=60)
        expect(process.returncode, 143)
        until(lambda: run(active) == "0\n", "the query has ended")


def test_a_query_with_too_many_columns(cli):
    """A name that --column gives is not looked for among columns that were not read."""
    with database(cli, "") as (url, _):
        columns = ", ".join(f"{i} AS c{i}" for i in range(200))
        for name in ("c150", "none"):
            cli.run("store", "import", "--from", url, "--query", f"SELECT {columns}", "--column", f"key={name}", "--ttl", "1h",
                    code=64).says("too many columns: the limit is 128")


def test_a_database_that_is_not_there(cli):
    if not POSTGRES:
        raise Skip("no PostgreSQL: tests/postgres/with_postgres")
    url = "postgres://app:s3cret@127.0.0.1:1/db"
    expect("s3cret" in cli.run("store", "import", "--from", url, "--query", "SELECT 1", code=69).says("PostgreSQL").err, False)


def test_a_password_is_not_shown(cli):
    """A URL that libpq cannot read, or reads differently, is not repeated."""
    if not POSTGRES:
        raise Skip("no PostgreSQL: tests/postgres/with_postgres")
    for address in ("app:s3%cret@127.0.0.1:1/db", "app:s3cret@[::1/db", "app:p@s3cret@127.0.0.1:1/db", "app:s3cret/p@127.0.0.1:1/db"):
        done = cli.run("store", "import", "--from", f"postgres://{address}", "--query", "SELECT 1", code=64)
        expect_in("invalid PostgreSQL URL", done.err)
        expect(("s3" in done.err, "cret" in done.err), (False, False), done.err)


# ---------------------------------------------------------------- Redis


class Redis:
    def __init__(self, cli):
        if shutil.which("redis-server") is None:
            raise Skip("redis-server is not installed (tools/setup test)")
        self.socket = str(cli.folder / "redis.sock")
        self.url = f"redis+unix:{self.socket}"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", str(cli.folder)], stdout=subprocess.DEVNULL)
        until(lambda: self.ask("PING") == "PONG\n", "Redis answers")

    def ask(self, *lines):
        return subprocess.run(["redis-cli", "-s", self.socket], input="\n".join(lines), text=True, capture_output=True, check=False).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_marks_and_results_of_redis(cli):
    """B9: document B's two layouts: a mark whose value is a time, and beside it the result."""
    with Redis(cli) as redis:
        commands = []
        for i in range(3000):
            name = f"idempotent:billing:acme:k:{i}"
            commands.append(f"SET {name} 2026-01-01T00:00:00.000Z EX {3600 + i}")
            if i % 2:
                commands.append(f"""SET {name}:result '{{"n":{i}}}' EX {7200 + i}""")
        redis.ask(*commands, "SET other 1", 'SET idempotent:billing:acme:alone:result "7" EX 600', "SET idempotent:billing:acme:kept 1")
        names = ("--name", "idempotent:{group}:{tenant}:{key}", "--result-name", "idempotent:{group}:{tenant}:{key}:result")
        source = ("--from", redis.url, *names)
        expected = found(rows=4502, marks=1501, results=1501, repeated=1500)
        expect(counts(imported(cli, *source)), expected)
        expect(counts(imported(cli, *source, "--match", "idempotent:*", "--write")), expected)
        scope = "acme/billing"
        expect_in("duplicate", cli.run("check", "k:0", "--scope", scope, code=1).out)
        expect(cli.run("claim", "k:1", "--scope", scope, "-o", "json", code=1).json["outcome"], "replay")
        expect(result(cli, "k:1", "--scope", scope), '{"n":1}')
        expect(result(cli, "alone", "--scope", scope), "7")
        near(record(cli, "k:100", scope), 3700)
        near(record(cli, "k:101", scope), 7301)
        expect(record(cli, "kept", scope)["expires_at"], None)
        expect(imported(cli, *source, "--write")["existing"], 3002)


def test_a_match_alone_names_marks(cli):
    """B9: with the prefix only, what follows it is the key; the dry run says so."""
    with Redis(cli) as redis:
        redis.ask("SET idempotent:a:1 x EX 600", "SET idempotent:b y EX 600", "SET other z", "SET {t}:c x EX 600")
        source = ("--from", redis.url, "--match", "idempotent:*")
        expect(cli.run("store", "import", *source).fields()["name"], "idempotent:{key}")
        answer = imported(cli, *source, "--write")
        expect((counts(answer), answer["name"]), (found(rows=2, marks=2), "idempotent:{key}"))
        for key in ("a:1", "b"):
            near(record(cli, key), 600)
        expect(imported(cli, "--from", redis.url, "--match", "{t}:*")["first"][0]["key"], "c")
        for match in ("*", "idempotent:?", "i*:*", "i[d]*", "idempotent:"):
            cli.run("store", "import", "--from", redis.url, "--match", match, code=64).says("missing option --name")


def test_results_of_redis(cli):
    """C1, C9: document C's keys, whose value is the result."""
    with Redis(cli) as redis:
        redis.ask("SET idempotency:a '{\"ok\":true}' EX 86400 NX", "SET idempotency:b 2 EX 50", "LPUSH idempotency:list 1",
                  "SET idempotency: 1")
        source = ("--from", redis.url, "--match", "idempotency:*", "--result-name", "idempotency:{key}", "--scope", "t/g")
        answer = imported(cli, *source, code=65)
        expect(counts(answer), found(rows=4, results=2, bad=2))
        expect(sorted(row["place"] for row in answer["bad_rows"]), ["'idempotency:'", "'idempotency:list'"])
        expect_in("another form than --result-name", str(answer["bad_rows"]))
        cli.run("store", "import", *source, "--write", code=65)
        expect(counts(imported(cli, *source, "--write", "--skip-bad"))["bad"], 2)
        expect(result(cli, "a", "--scope", "t/g"), '{"ok":true}')
        near(record(cli, "a", "t/g"), 86400)


def test_into_redis(cli):
    """The store may be of any kind, and may be on the server that is read."""
    with Redis(cli) as redis:
        redis.ask("SET idempotency:a one EX 600")
        source = ("--from", redis.url, "--result-name", "idempotency:{key}", "--write", "--store", redis.url)
        expect(counts(imported(cli, *source)), found(rows=1, results=1))
        answer = cli.run("lookup", "a", "--store", redis.url, "-o", "json").json
        expect((answer["state"], answer["result"]["body"]), ("done", "one"))
        near(answer, 600)
        expect(counts(imported(cli, *source)), found(rows=1, existing=1))


def test_a_signal_stops_a_silent_redis(cli):
    """While it connects, and while it waits for an answer."""
    with socket.socket(socket.AF_UNIX) as listener:
        path = str(cli.folder / "silent.sock")
        listener.bind(path)
        listener.listen()
        for is_greeted in (False, True):
            process = cli.start("store", "import", "--from", f"redis+unix:{path}", "--name", "{key}")
            with listener.accept()[0] as peer:
                expect_in(b"PING", peer.recv(4096))
                if is_greeted:
                    peer.sendall(b"+PONG\r\n")
                    expect_in(b"SCAN", peer.recv(4096))
                process.terminate()
                process.communicate(timeout=20)
            expect(process.returncode, 143)


def test_a_redis_that_is_not_there(cli):
    cli.run("store", "import", "--from", "redis://127.0.0.1:1", "--name", "{key}", code=69).says("127.0.0.1")
