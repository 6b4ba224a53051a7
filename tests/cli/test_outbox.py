"""hapax outbox: init, add, status; bad input. Relays with real brokers are in tests/rabbitmq."""

import sqlite3

from harness import expect, expect_in


def outbox(cli, *arguments, **options):
    return cli.run("outbox", *arguments, "--db", f"sqlite:{cli.folder / 'shop.db'}", **options)


def test_init_add_status(cli):
    expect_in("was made, in version 1", outbox(cli, "init").out)
    expect_in("is there, in version 1", outbox(cli, "init").out)
    answer = outbox(
        cli, "add", "-t", "orders", "-k", "order-17", "--type", "order.made", "-H", "trace=a=b", input=b'{"order":17}'
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
    sqlite3.connect(cli.folder / "shop.db").execute("CREATE TABLE orders (id)").connection.commit()
    answer = outbox(cli, "status", code=69)
    expect_in("there is no outbox in this database", answer.err)
    expect_in("hapax outbox init", answer.err)


def test_bad_input(cli):
    outbox(cli, "init")
    for arguments, complaint in [
        (["frob"], "there are init"),
        (["add"], "no topic was given"),
        (["add", "-t", "t", "-H", "x"], "'x' is not NAME=VALUE"),
        (["relay"], "nowhere to publish to"),
        (["relay", "--to", "amqp://h", "--lease", "0s"], "no time to wait"),
        (["status", "more"], "an argument too many"),
    ]:
        expect_in(complaint, outbox(cli, *arguments, input=b"", code=64).err)
    expect_in("no database was named", cli.run("outbox", "status", code=64).err)
    expect_in("lies in the database", cli.run("outbox", "init", "--db", "redis://h", code=69).err)
    expect_in("nothing is published to 'ftp'", outbox(cli, "relay", "--to", "ftp://h", code=69).err)
    expect_in("amqp://user:password@host", outbox(cli, "relay", "--to", "amqp://h:x", code=64).err)
    outbox(cli, "add", "-t", "t", "--id", "twice", input=b"")
    expect_in("already", outbox(cli, "add", "-t", "t", "--id", "twice", input=b"", code=64).err)
    expect(outbox(cli, "status", "-o", "json").json["pending"], 1)
