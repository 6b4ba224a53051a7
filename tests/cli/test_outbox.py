"""hapax outbox: init, add, status; bad input. Relays with real brokers are in tests/rabbitmq."""

import sqlite3

from harness import expect, expect_in


def outbox(cli, *arguments, **options):
    return cli.run("outbox", *arguments, "--db", f"sqlite:{cli.folder / 'shop.db'}", **options)


def test_init_add_status(cli):
    expect_in("was created: version 2", outbox(cli, "init").out)
    expect_in("is up to date: version 2", outbox(cli, "init").out)
    answer = outbox(
        cli, "add", "-t", "orders", "--ordering-key", "order-17", "--type", "order.made", "-H", "trace:a=b", input=b'{"order":17}'
    )
    with sqlite3.connect(cli.folder / "shop.db") as db:
        row = db.execute("SELECT id, topic, ordering_key, type, headers, payload, content_type, state FROM hapax_outbox")
        expect(
            row.fetchall(),
            [(answer.out.strip(), "orders", "order-17", "order.made", '{"trace":"a=b"}', b'{"order":17}',
              "application/json", 0)],
        )
    expect(outbox(cli, "status", "-o", "json").json["pending"], 1)
    expect_in("pending      1, the oldest for", outbox(cli, "status").out)


def test_without_an_outbox(cli):
    expect_in("the file or its directory does not exist", outbox(cli, "status", code=69).err)
    sqlite3.connect(cli.folder / "shop.db").execute("CREATE TABLE orders (id)").connection.commit()
    answer = outbox(cli, "status", code=69)
    expect_in("this database has no outbox", answer.err)
    expect_in("hapax outbox init", answer.err)


def test_bad_input(cli):
    outbox(cli, "init")
    for arguments, complaint in [
        (["frob"], "use init, add"),
        (["relya"], "did you mean 'hapax outbox relay'?"),
        (["add"], "missing option --topic"),
        (["add", "-t", "t", "-H", "x"], "'x' is not NAME:VALUE"),
        (["relay"], "missing option --to"),
        (["relay", "--to", "amqp://h", "--lease", "0s"], "must be greater than 0"),
        (["retry"], "missing argument ID"),
        (["park"], "missing argument"),
        (["audit"], "missing option --query"),
        (["init", "--preset", "events", "--column", "x=y"], "is not FIELD=NAME"),
        (["init", "--preset", "events"], "table outbox_events does not exist"),
        (["init", "--preset", "events", "--table", 'a"b; DROP TABLE hapax_outbox'], "does not exist"),
        (["init", "--preset", "events", "--table", "hapax_outbox"], "is the outbox itself"),
        (["audit", "--query", "SELECT x FROM nowhere"], "nowhere"),
        (["rebuild", "--query", "SELECT 1 AS id"], "no id or no topic"),
        (["status", "more"], "unexpected argument 'more'"),
        (["status", "--to", "amqp://h"], "'status' has no option '--to'"),
        (["init", "--table", "t"], "missing option --preset"),
        (["retry", "e1", "--all"], "give IDs, --ordering-key or --all"),
        (["retry", "--ordering-key", ""], "missing argument ID"),
    ]:
        expect_in(complaint, outbox(cli, *arguments, input=b"", code=64).err)
    expect_in("missing option --db", cli.run("outbox", "status", code=64).err)
    expect_in("use the database", cli.run("outbox", "init", "--db", "redis://h", code=69).err)
    expect_in("unknown sink 'ftp'", outbox(cli, "relay", "--to", "ftp://h", code=69).err)
    expect_in("amqp://user:password@host", outbox(cli, "relay", "--to", "amqp://h:x", code=64).err)
    prefix = outbox(cli, "relay", "--to", "redis://h?prefix=p", code=64).err
    expect_in("unknown option 'prefix' in the URL of a Redis sink; use stream=NAME", prefix)
    expect_in("'redis+unix:/run/redis.sock'", outbox(cli, "relay", "--to", "redis+unix:", code=64).err)
    kafka = outbox(cli, "relay", "--to", "kafka://u:secret@h", code=None).err
    expect("sasl.username" in kafka or "was built without Kafka" in kafka, True)
    expect("secret" in kafka, False)
    outbox(cli, "add", "-t", "t", "--id", "twice", input=b"")
    expect_in("already", outbox(cli, "add", "-t", "t", "--id", "twice", input=b"", code=64).err)
    expect(outbox(cli, "status", "-o", "json").json["pending"], 1)


def test_what_people_do(cli):
    outbox(cli, "init")
    for number in (1, 2):
        outbox(cli, "add", "-t", "t", "--id", f"e{number}", "--ordering-key", f"k{number}")
    expect_in("parked 1", outbox(cli, "park", "e1").out)
    expect(outbox(cli, "park", "absent", code=1).out, "parked 0\n")
    expect_in("e1  key k1, attempts 0: parked by hand", outbox(cli, "status", "--parked").out)
    parked = {"id": "e1", "topic": "t", "ordering_key": "k1", "attempts": 0, "error": "parked by hand"}
    expect(outbox(cli, "status", "--parked", "-o", "json").json, parked)
    expect_in("parked       1, of 1 ordering key; 0 wait behind them", outbox(cli, "status").out)
    expect(outbox(cli, "retry", "--all", "-o", "json").json, {"retried": 1})
    expect(outbox(cli, "retry", "--ordering-key", "k1", code=1).out, "retried 0\n")
    expect_in("purged 0", outbox(cli, "purge", "--older", "1h").out)


def test_audit_and_rebuild(cli):
    """E4: business rows without an event are found, and their events made again."""
    outbox(cli, "init")
    with sqlite3.connect(cli.folder / "shop.db") as db:
        db.execute("CREATE TABLE orders (id TEXT)")
        db.executemany("INSERT INTO orders VALUES (?)", [("o1",), ("o2",), ("o3",)])
    outbox(cli, "add", "-t", "orders", "--id", "order-o1", "--ordering-key", "o1")
    outbox(cli, "add", "-t", "orders", "--id", "order-o3", "--ordering-key", "o3")
    answer = outbox(cli, "audit", "--query", "SELECT 'order-' || id FROM orders", code=1)
    expect(answer.out, "order-o2\n")
    expect_in("3 checked, 1 have no event", answer.err)
    expect(outbox(cli, "audit", "--by", "ordering_key", "--query", "SELECT id FROM orders", code=1).out, "o2\n")
    expect(outbox(cli, "audit", "--query", "VALUES ('order-o2')", "-o", "json", code=1).json, {"id": "order-o2"})
    expect_in("would write", outbox(cli, "audit", "--query", "DELETE FROM orders RETURNING id", code=64).err)
    query = "SELECT 'order-' || id AS id, 'orders' AS topic, id AS ordering_key, json_object('id', id) AS payload FROM orders"
    expect(outbox(cli, "rebuild", "--query", query).out, "rebuilt 1\n")
    expect(outbox(cli, "rebuild", "--query", query).out, "rebuilt 0\n")
    outbox(cli, "audit", "--query", "SELECT 'order-' || id FROM orders")


def test_tables_of_others(cli):
    with sqlite3.connect(cli.folder / "shop.db") as db:
        db.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, queue TEXT, payload TEXT, status TEXT)")
        db.execute("INSERT INTO events VALUES (1, 'q', '{}', 'pending')")
    answer = outbox(cli, "init", "--preset", "events", "--table", "events", "--column", "topic=queue", "--existing")
    expect_in("1 existing row became an event", answer.out)
    with sqlite3.connect(cli.folder / "shop.db") as db:
        db.execute("INSERT INTO events VALUES (2, 'q', '{}', 'pending')")
    expect(outbox(cli, "status", "-o", "json").json["pending"], 2)


def test_help_of_each_action(cli):
    """An action has its own options and examples only; an unknown action has the help of the command."""
    for action in ("init", "add", "status", "relay", "retry", "park", "purge", "audit", "rebuild"):
        text = cli.run("outbox", action, "--help").out
        for part in (f"hapax outbox {action} - ", f"Usage: hapax outbox {action} ", "--db URL", "--output text|json"):
            expect_in(part, text, action)
        examples = text.split("\nExamples:\n")[1]
        expect_in(f"hapax outbox {action} ", examples)
        expect("--topic" in text, action == "add", action)
        expect("--to URL" in text, action == "relay", action)
        expect("--query" in text, action in ("audit", "rebuild"), action)
        assert max(len(line) for line in text.splitlines()) <= 90, text
        expect_in(f"  {action} ", cli.run("outbox", "--help").out)
    expect(cli.run("outbox", "frob", "--help").out, cli.run("outbox", "--help").out)


def test_an_older_outbox(cli):
    outbox(cli, "init")
    outbox(cli, "add", "-t", "t", "--id", "kept")
    with sqlite3.connect(cli.folder / "shop.db") as db:
        db.execute("ALTER TABLE hapax_outbox_relay DROP COLUMN lease_ms")
        db.execute("UPDATE hapax_outbox_meta SET version = 1")
    for arguments in (["status"], ["relay", "--to", "http://127.0.0.1:1/"], ["add", "-t", "t"]):
        expect_in("run 'hapax outbox init", outbox(cli, *arguments, code=69).err)
    expect(outbox(cli, "init").out, "the outbox table was updated: version 2\n")
    expect(outbox(cli, "status", "-o", "json").json["pending"], 1)
