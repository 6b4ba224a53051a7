"""hapax stats."""

from harness import expect, expect_in, expect_match, until

DECISIONS = [
    "acquired", "replay", "in_progress", "mismatch", "parked", "fenced", "completed", "released", "unverified",
    "limit", "forgotten",
]
MEMBERS = [
    "store", "now", "skew_ms", "keys", "states", "expired", "evicted", "tidy_failures", "bytes", "bytes_max", "keys_max",
    "reserve_bytes", "disk_full", "token", "decisions", "hit_rate", "last_24h",
]


def fill(cli):
    """default/default: 3 first, 2 duplicates, 1 mismatch; acme/mail: 1 first."""
    for key in ("a", "b"):
        cli.run("check", key)
    cli.run("check", "c", "--payload", "-", input=b"1")
    cli.run("check", "a", code=1)
    cli.run("check", "a", code=1)
    cli.run("check", "c", "--payload", "-", input=b"2", code=65)
    cli.run("check", "a", "--scope", "acme/mail")


def test_totals_and_scopes(cli):
    fill(cli)
    result = cli.run("stats")
    expect(result.err, "")
    fields = result.fields()
    expect(fields["store"], cli.store)
    expect(fields["keys"], "4  (claimed 0, done 4, failed 0, parked 0)")
    expect(fields["expired"], "0 known, not yet removed")
    expect(fields["hit rate"], "33.3%  (4 first, 2 duplicate)")
    expect(fields["limits"], "none")
    expect_match(r"\A\d+\.\d [KM]iB\Z", fields["size"])
    rows = [line.split() for line in result.out.split("\n\n")[1].splitlines()]
    expect(rows[0][4:], ["ACQUIRED", "REPLAY", "IN-PROGRESS", "MISMATCH", "PARKED", "FENCED", "LIMIT", "HIT-RATE"])
    expect(rows[1], ["acme/mail", "1", "0", "0", "0", "0", "0", "0", "0.0%"])
    expect(rows[2], ["default/default", "3", "2", "0", "1", "0", "0", "0", "40.0%"])


def test_json(cli):
    fill(cli)
    answer = cli.run("stats", "-o", "json").json
    expect(list(answer), MEMBERS)
    expect(answer["store"], cli.store)
    expect((answer["keys"], answer["states"]), (4, {"claimed": 0, "done": 4, "failed": 0, "parked": 0}))
    expect((answer["bytes_max"], answer["keys_max"], answer["hit_rate"]), (None, None, 0.3333))
    expect(list(answer["decisions"]), DECISIONS)
    expect((answer["decisions"]["acquired"], answer["decisions"]["replay"]), (4, 2))
    expect([scope["scope"] for scope in answer["last_24h"]], ["acme/mail", "default/default"])
    expect(list(answer["last_24h"][1]), ["scope", "decisions", "hit_rate"])
    expect((answer["last_24h"][1]["decisions"]["mismatch"], answer["last_24h"][1]["hit_rate"]), (1, 0.4))
    assert answer["bytes"] > 0 and answer["token"] >= 4


def test_states(cli):
    cli.seed("claim", "a", 600000, "x")
    cli.seed("release", "b", "x")
    cli.seed("park", "c", "x")
    cli.run("check", "d")
    answer = cli.run("stats", "-o", "json").json
    expect(answer["states"], {"claimed": 1, "done": 1, "failed": 1, "parked": 1})


def test_a_store_that_has_decided_nothing(cli):
    cli.run("check", "k")
    cli.sql("DELETE FROM hapax_counter")
    answer = cli.run("stats", "-o", "json").json
    expect((answer["hit_rate"], answer["last_24h"]), (None, []))
    result = cli.run("stats")
    expect(result.fields()["hit rate"], "-  (0 first, 0 duplicate)")
    assert "SCOPE" not in result.out


def test_one_scope(cli):
    fill(cli)
    answer = cli.run("stats", "--scope", "acme/mail", "-o", "json").json
    expect([scope["scope"] for scope in answer["last_24h"]], ["acme/mail"])
    expect(answer["keys"], 4, "totals are of the whole store")
    result = cli.run("stats", "--scope", "acme/mail")
    assert "default/default" not in result.out


def test_hours_are_added_up_and_older_ones_left_out(cli):
    cli.run("check", "k")
    hour = 3600000
    (now,) = cli.sql("SELECT hour_ms FROM hapax_counter")[0]
    columns = [row[1] for row in cli.sql("PRAGMA table_info(hapax_counter)")]
    for age in (1, 23, 24, 100):
        values = ", ".join(f"hour_ms - {age * hour}" if name == "hour_ms" else name for name in columns)
        cli.sql(f"INSERT INTO hapax_counter SELECT {values} FROM hapax_counter WHERE hour_ms = {now}")
    answer = cli.run("stats", "-o", "json").json
    # This hour, the one before it and the 23rd; the counts of all hours that are kept stand above.
    expect(answer["last_24h"][0]["decisions"]["acquired"], 3)
    expect(answer["decisions"]["acquired"], 5)


def test_expired_keys_are_counted(cli):
    cli.run("check", "long")
    cli.seed("many", "short", 1, 1)
    until(lambda: cli.run("lookup", "short000000", code=None).code == 1, "the key has expired")
    answer = cli.run("stats", "-o", "json").json
    expect((answer["keys"], answer["expired"]), (2, 1))
    expect(cli.run("stats").fields()["expired"], "1 known, not yet removed")


def test_many_scopes(cli):
    for number in range(30):
        cli.run("check", "k", "--scope", f"tenant-{number:02}/group")
    answer = cli.run("stats", "-o", "json").json
    expect([scope["scope"] for scope in answer["last_24h"]], [f"tenant-{n:02}/group" for n in range(30)])


def test_more_scopes_than_anybody_reads(cli):
    cli.run("check", "k")
    columns = [row[1] for row in cli.sql("PRAGMA table_info(hapax_counter)")]
    values = ", ".join({"tenant": "CAST('t' || n AS BLOB)", "acquired": "2"}.get(name, name) for name in columns)
    # Two hours of 70,000 scopes: more rows than fit, and more scopes than are shown.
    cli.sql(
        "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 70000)"
        f" INSERT INTO hapax_counter SELECT {values} FROM hapax_counter, number"
    )
    values = values.replace("CAST('t' || n AS BLOB)", "tenant").replace("hour_ms", "hour_ms - 3600000")
    cli.sql(f"INSERT INTO hapax_counter SELECT {values} FROM hapax_counter WHERE acquired = 2")
    result = cli.run("stats", "-o", "json")
    expect_in("more than 65536 scopes; the rest are counted as other/other", result.err)
    scopes = {row["scope"]: row["decisions"]["acquired"] for row in result.json["last_24h"]}
    expect(len(scopes), len(result.json["last_24h"]), "names are there once")
    assert len(scopes) <= 65537, len(scopes)
    expect(sum(scopes.values()), 280001)
    answer = cli.run("stats", "-o", "json", "--scope", "t69999/default").json
    expect([row["decisions"]["acquired"] for row in answer["last_24h"]], [4])


def test_a_damaged_table_of_counters(cli):
    cli.run("check", "k")
    cli.sql("UPDATE hapax_counter SET tenant = x'', grp = x'', acquired = -5, replay = -7")
    for form in ("text", "json"):
        result = cli.run("stats", "-o", form, code=None)
        assert result.code in (0, 74), (result.code, result.err)
    cli.sql("UPDATE hapax_counter SET tenant = zeroblob(5000)")
    result = cli.run("stats", code=None)
    assert result.code in (0, 74), (result.code, result.err)


def test_help_explains_the_rate(cli):
    expect_in("duplicates / (first + duplicates)", cli.run("help", "stats").out)
