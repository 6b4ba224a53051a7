#!/usr/bin/env python3
"""test_postgres_sql HAPAX EXAMPLES - the ledger by SQL and by command, on the server of with_postgres, as TAP.

psql stands for every language; with HAPAX_PROOF=1 Node's `pg` does too, if the registry can be reached.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HAPAX, EXAMPLES = map(os.path.abspath, sys.argv[1:3])
URL = "postgres:///postgres" + os.environ["HAPAX_TEST_POSTGRES"]
PROOF = os.environ.get("HAPAX_PROOF", "0") not in ("", "0")
CASES = []


class Skip(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


def expect(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def psql(text, code=0):
    """The rows as text; with another code, what was said instead."""
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != code:
        raise AssertionError(f"{text}: {done.stderr}")
    return done.stdout.strip() if code == 0 else done.stderr


def hapax(*arguments, code=0):
    done = subprocess.run(
        [HAPAX, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != code:
        raise AssertionError(f"hapax {arguments}: exit {done.returncode}: {done.stderr}")
    return done.stdout if code == 0 else done.stderr


def fails(text, state, *words):
    said = psql(r"\set VERBOSITY verbose" + "\n" + text, code=3)
    for word in (state, *words):
        if word not in said:
            raise AssertionError(f"no {word!r} in {said!r}")


@case
def a_database_is_migrated_by_command():
    said = hapax("check", "k", "--store", URL, code=69)
    if "hapax store migrate" not in said:
        raise AssertionError(said)
    expect(hapax("store", "migrate", URL), "migrated from version 0 to 4\n")
    expect(hapax("store", "migrate", URL), "the store is up to date: version 4\n")
    expect(json.loads(hapax("store", "migrate", URL, "-o", "json")), {"from": 4, "to": 4})
    expect(hapax("store", "migrate", "memory:"), "nothing to do: this store is migrated when it is opened\n")


@case
def commands_and_sql_share_one_ledger():
    hapax("check", "shared", "--store", URL)
    hapax("check", "shared", "--store", URL, code=1)
    expect(psql("SELECT hapax_check('shared')"), "replay")
    expect(psql("SELECT hapax_check('from sql')"), "acquired")
    hapax("check", "from sql", "--store", URL, code=1)
    expect(json.loads(hapax("stats", "--store", URL, "-o", "json"))["keys"], 2)
    expect(json.loads(hapax("store", "info", URL, "-o", "json"))["kind"], "postgres")


@case
def claim_complete_replay():
    token = psql("SELECT token FROM hapax_claim('order')")
    psql(f"SELECT hapax_complete('order', {token}, 'traded', p_status => 7)")
    expect(
        psql("SELECT outcome, attempt, result_class, result_status, convert_from(body, 'UTF8') FROM hapax_claim('order')"),
        "replay|1|ok|7|traded",
    )
    # Completed again: as before. By another token: an error, which takes the transaction with it.
    psql(f"SELECT hapax_complete('order', {token}, 'other')")
    expect(psql("SELECT convert_from(body, 'UTF8') FROM hapax_claim('order')"), "traded")
    fails(f"SELECT hapax_complete('order', {token} + 1)", "HX006", "Roll back", "not of this key")
    fails(f"SELECT hapax_complete('order', {token} - 1)", "HX006", "Roll back", "newer token")
    fails(f"SELECT hapax_renew('order', {token})", "HX006", "Roll back", "is done")
    fails("SELECT hapax_complete('absent', 7)", "HX006", "Roll back", "no record")
    fails("SELECT hapax_renew('given', token) FROM (SELECT token, hapax_release('given', token) FROM hapax_claim('given')) c",
          "HX006", "Roll back", "was released")


@case
def a_large_result_comes_back_whole():
    psql("SELECT hapax_complete('large', token, convert_to(repeat('x', 100000), 'UTF8')) FROM hapax_claim('large')")
    expect(psql("SELECT length(body), body = convert_to(repeat('x', 100000), 'UTF8') FROM hapax_claim('large')"), "100000|t")


@case
def release_park_renew():
    token = psql("SELECT token FROM hapax_claim('work', p_lease => '10 minutes', p_owner => 'psql')")
    expect(psql("SELECT outcome, lease_left > '9 minutes' FROM hapax_claim('work')"), "in_progress|t")
    psql(f"SELECT hapax_renew('work', {token}, '20 minutes')")
    expect(psql("SELECT lease_left > '19 minutes' FROM hapax_claim('work')"), "t")
    psql(f"SELECT hapax_park('work', {token}, 'who knows')")
    expect(psql("SELECT outcome FROM hapax_claim('work')"), "parked")
    psql(f"SELECT hapax_release('work', {token}, 'not done')")
    later = psql("SELECT outcome, attempt, token FROM hapax_claim('work')").split("|")
    expect(later[:2], ["acquired", "2"])
    if int(later[2]) <= int(token):
        raise AssertionError("the token did not rise")


@case
def only_an_acquired_claim_has_a_token():
    shape = "SELECT outcome, token IS NULL, holder_token FROM hapax_claim('own', {})"
    token = psql("SELECT token FROM hapax_claim('own', sha256('a'), p_lease => '10 minutes')")
    expect(psql(shape.format("sha256('a')")), f"in_progress|t|{token}")
    expect(psql(shape.format("sha256('b')")), "mismatch|t|")
    # What naive code does with the answer is an error, and the claim is the holder's still.
    fails("SELECT hapax_complete('own', token) FROM hapax_claim('own')", "HX004", "token")
    psql(f"SELECT hapax_park('own', {token})")
    expect(psql(shape.format("sha256('a')")), "parked|t|")
    psql(f"SELECT hapax_complete('own', {token})")
    expect(psql(shape.format("sha256('a')")), "replay|t|")
    expect(psql("SELECT outcome, token IS NOT NULL, holder_token IS NULL FROM hapax_claim('own too')"), "acquired|t|t")


@case
def who_waits_hears_the_end_of_the_claim():
    token = psql("SELECT token FROM hapax_claim('awaited', p_lease => '10 minutes')")
    said = psql(
        "SELECT hapax_listen();\n"
        "SELECT outcome, holder_token FROM hapax_claim('awaited');\n"
        # Another session completes it; psql shows what it was told with the answer to the next statement.
        f"\\! psql -XqAt -c \"SELECT hapax_complete('awaited', {token}, 'theirs')\"\n"
        "SELECT outcome, convert_from(body, 'UTF8') FROM hapax_claim('awaited');"
    ).splitlines()
    expect([line for line in said if "|" in line], [f"in_progress|{token}", "replay|theirs"])
    expect([f'payload "{token}"' in line for line in said if "notification" in line], [True])


@case
def without_lease_a_claim_lives_in_its_transaction():
    expect(psql("BEGIN; SELECT outcome FROM hapax_claim('tx'); ROLLBACK; SELECT count(*) FROM hapax_record "
                "WHERE key = 'tx'"), "acquired\n0")
    # The same attempt again is the same claim; another one takes over what was committed without an end.
    psql("SELECT outcome FROM hapax_claim('tx')")
    expect(psql("SELECT outcome, attempt FROM hapax_claim('tx')"), "acquired|2")


@case
def another_payload_is_a_mismatch():
    psql("SELECT hapax_check('paid', sha256('a'))")
    expect(psql("SELECT hapax_check('paid', sha256('b'))"), "mismatch")
    expect(psql("SELECT outcome, body IS NULL FROM hapax_claim('paid', sha256('b'))"), "mismatch|t")


@case
def a_duplicate_raises_when_asked_to():
    psql("CREATE TABLE trade (key text)")
    once = "BEGIN; SELECT hapax_check('once', p_raise => true); INSERT INTO trade VALUES ('once'); COMMIT;"
    psql(once)
    fails(once, "HX002", "replay")
    expect(psql("SELECT count(*) FROM trade"), "1")


@case
def many_keys_at_once():
    expect(psql("SELECT count(*) FROM hapax_check_all(ARRAY['m1', 'm2', 'm3', 'm2'])"), "3")
    expect(psql("SELECT * FROM hapax_check_all(ARRAY['m3', 'm4'])"), "m4")
    psql("SELECT hapax_release('m5', token, 'failed') FROM hapax_claim('m5')")
    expect(psql("SELECT * FROM hapax_check_all(ARRAY['m4', 'm5'])"), "m5")


@case
def bad_input_is_refused():
    fails("SELECT hapax_claim('')", "HX004", "1 to 1,024 bytes")
    fails("SELECT hapax_claim(NULL)", "HX004", "1 to 1,024 bytes")
    fails("SELECT hapax_claim(repeat('x', 1025))", "HX004")
    fails("SELECT hapax_claim('k', p_group => repeat('x', 129))", "HX004", "1 to 128")
    fails("SELECT hapax_claim('k', 'short')", "HX004", "SHA-256")
    fails("SELECT hapax_claim('k', p_ttl => '0 s')", "HX004", "TTL")
    fails("SELECT hapax_claim('k', p_lease => '8 days')", "HX004", "7 days")
    fails("SELECT hapax_claim('k', p_on_lapse => 'hope')", "HX004", "retry")
    fails("SELECT hapax_complete('k', 1, p_class => 'fine')", "HX004", "definitive")
    fails("SELECT hapax_complete('k', 1)", "HX006")
    for name in ("complete", "release", "renew", "park"):
        fails(f"SELECT hapax_{name}('k', NULL)", "HX004", "token", "hapax_claim()")
        fails(f"SELECT hapax_{name}('', 1)", "HX004", "1 to 1,024 bytes")
        fails(f"SELECT hapax_{name}('k', 1, p_group => NULL)", "HX004", "1 to 128")
        fails(f"SELECT hapax_{name}('k', 1, p_tenant => '*')", "HX004", "tenant")
    fails("SELECT hapax_complete('k', 1, p_status => NULL)", "HX004", "status")
    fails("SELECT hapax_complete('k', 1, p_class => NULL)", "HX004", "definitive")
    fails("SELECT hapax_renew('k', 1, NULL)", "HX004", "lease")
    for lease in ("-1 s", "0 s", "8 days"):
        fails(f"SELECT hapax_renew('k', 1, '{lease}')", "HX004", "7 days")
        fails(f"SELECT hapax_claim('k', p_lease => '{lease}')", "HX004", "7 days")
    fails("SELECT hapax_claim('k', p_on_lapse => NULL)", "HX004", "retry")
    fails("SELECT hapax_claim('k', p_ttl => '-1 day')", "HX004", "forever")
    fails("SELECT hapax_claim('k', p_ttl => '101 years')", "HX004", "100 years")
    fails("SELECT hapax_claim('k', p_group => NULL)", "HX004", "1 to 128")
    fails("SELECT hapax_claim('k', p_tenant => '')", "HX004", "1 to 128")
    fails("SELECT hapax_check('k', p_ttl => '0')", "HX004", "TTL")
    fails("SELECT hapax_check(NULL)", "HX004", "1 to 1,024 bytes")
    fails("SELECT hapax_check_all(NULL)", "HX004", "array of keys")
    fails("SELECT hapax_check_all(ARRAY['k', NULL])", "HX004", "1 to 1,024 bytes")
    fails("SELECT hapax_check_all(ARRAY['k'], p_ttl => '-1 s')", "HX004", "TTL")
    expect(psql("SELECT count(*) FROM hapax_check_all(ARRAY[]::text[])"), "0")
    expect(psql("SELECT count(*) FROM hapax_record WHERE key = 'k'"), "0")


@case
def the_owner_sees_one_tenant_at_a_time():
    """B12: FORCE, so that the owner's own mistakes are bounded too."""
    psql("CREATE ROLE ledger LOGIN; CREATE SCHEMA owned AUTHORIZATION ledger;")
    url = URL.replace("user=postgres", "user=ledger") + "&schema=owned"
    hapax("store", "migrate", url)
    hapax("check", "k", "--scope", "acme/g", "--store", url)
    hapax("check", "k", "--scope", "evil/g", "--store", url)
    count = "SET search_path = owned; SET ROLE ledger; {} SELECT count(*) FROM hapax_record"
    expect(psql(count.format("")), "0")
    expect(psql(count.format("SET hapax.tenant = 'acme';")), "1")
    expect(psql(count.format("SET hapax.tenant = '*';")), "2")
    fails("SET search_path = owned; SET ROLE ledger; SELECT hapax_claim('k')", "HX005", "SET hapax.tenant")
    fails("SET search_path = owned; SET ROLE ledger; SET hapax.tenant = 'acme'; "
          "SELECT hapax_claim('x', p_tenant => 'evil')", "42501")
    expect(psql("SELECT count(*) FROM owned.hapax_record"), "2")


PROCESSED_KEY = ("key_bytes = convert_to('{}', 'UTF8') AND group_bytes = convert_to('trade-service', 'UTF8') "
                 "AND tenant_bytes = convert_to('acme', 'UTF8')")
PROCESSED = "idempotency_key = '{}' AND consumer_group = 'trade-service' AND tenant_id = 'acme'"


def process(key, body, event="NULL", tenant="acme", options=""):
    """Claim and complete a key as document B's consumer does; body and event are SQL."""
    scope = f"p_group => 'trade-service', p_tenant => '{tenant}'"
    psql(f"SELECT hapax_complete('{key}', token, {body}, {scope}{options}) FROM hapax_claim('{key}', {scope}, "
         f"p_event_id => {event}, p_event_type => 'rfq.executed', p_event_source => '/desk', "
         "p_event_time => '2026-01-02 03:04:05.678+00')")


@case
def processed_events_are_read_as_in_document_b():
    """B3: wasProcessed and getProcessingResult of document B, one SELECT each."""
    was_processed = "SELECT 1 FROM hapax_processed_events WHERE " + PROCESSED_KEY
    result = ("SET TIME ZONE 'UTC'; SELECT idempotency_key, event_type, consumer_group, tenant_id, event_id, "
              "event_timestamp, result_status, result_payload FROM hapax_processed_events WHERE " + PROCESSED)
    expect(psql(was_processed.format("q-1")), "")
    process("q-1", """'{"tradeId": "123"}'""", "'e-7ü'")
    expect(psql(was_processed.format("q-1")), "1")
    expect(psql(result.replace(PROCESSED, PROCESSED_KEY).format("q-1")), psql(result.format("q-1")))
    expect(
        psql(result.format("q-1")),
        'q-1|rfq.executed|trade-service|acme|e-7ü|2026-01-02 03:04:05.678+00|success|{"tradeId": "123"}',
    )
    expect(psql("SELECT event_source, processed_at BETWEEN now() - interval '1 minute' AND now(), result_payload->>'tradeId' "
                "FROM hapax_processed_events WHERE " + PROCESSED.format("q-1")), "/desk|t|123")
    # A definitive failure is a result, too. Large results lie in another table.
    process("q-2", """'{"error": "no such rfq"}'""", options=", p_class => 'definitive'")
    process("q-3", """convert_to('["' || repeat('x', 1000) || '"]', 'UTF8')""")
    expect(psql(result.format("q-2")).split("|")[6:], ["failed", '{"error": "no such rfq"}'])
    expect(len(psql(result.format("q-3")).split("|")[7]), 1004)
    # Marks have no event. What runs or failed was not processed.
    psql("SELECT hapax_check('q-4', p_group => 'trade-service', p_tenant => 'acme')")
    expect(psql(result.format("q-4")).split("|")[4:], ["", "", "success", ""])
    psql("SELECT hapax_release('q-5', token, p_group => 'trade-service', p_tenant => 'acme') "
         "FROM hapax_claim('q-5', p_group => 'trade-service', p_tenant => 'acme')")
    psql("SELECT hapax_claim('q-6', p_lease => '1 minute', p_group => 'trade-service', p_tenant => 'acme')")
    expect(psql(was_processed.format("q-5") + " UNION ALL " + was_processed.format("q-6")), "")


@case
def an_expired_event_was_not_processed():
    """B8: 7 days, and whether or not the clean-up was there."""
    process("old", "NULL")
    process("new", "NULL")
    psql("UPDATE hapax_record SET expires = hapax_now() - 1 WHERE key = 'old'")
    expect(psql("SELECT idempotency_key FROM hapax_processed_events WHERE idempotency_key IN ('old', 'new')"), "new")


@case
def nothing_in_a_record_makes_the_view_fail():
    bodies = {"bytes": r"'\xff00'", "nul": r"""'{"a": "\\u0000"}'""", "number": "'1e999999'", "empty": "''",
              "deep": "convert_to(repeat('[', 100000), 'UTF8')", "text": "'traded'"}
    for key, body in bodies.items():
        process(f"json {key}", body, "repeat('ü', 200)")
    expect(psql("SELECT count(*), count(result_payload), min(length(event_id)), max(length(event_id)) "
                "FROM hapax_processed_events WHERE idempotency_key LIKE 'json %'"), f"{len(bodies)}|0|127|127")
    psql(r"UPDATE hapax_record SET key = '\x6aff005c', changed = 9223372036854775807, cause = '\xffff' "
         "WHERE key = 'json text'")
    expect(psql(r"SELECT idempotency_key, processed_at, event_id, event_type, event_source, event_timestamp "
                r"FROM hapax_processed_events WHERE key_bytes = '\x6aff005c'"), r"j\377\000\\|||||")
    psql(r"DELETE FROM hapax_record WHERE key = '\x6aff005c'")
    times = "'infinity'", "'-infinity'", "'12000-01-01'", "'0044-03-15 BC'", "'1970-01-01 00:00:00+00'"
    for time in times:
        expect(psql(f"SELECT hapax_cause(NULL, '', NULL, {time})"), "")
    expect(psql("SELECT hapax_cause_time(hapax_cause(NULL, NULL, NULL, '1815-12-10 00:00+00')) = '1815-12-10 00:00+00'"), "t")


@case
def the_view_shows_the_tenant_of_the_session():
    """B12, and on PostgreSQL 14, whose views cannot be security_invoker, too."""
    psql("CREATE ROLE reader; SELECT hapax_grant('reader')")
    process("mine", "NULL")
    process("theirs", "NULL", tenant="evil")
    tenants = "SET ROLE reader; {} SELECT string_agg(DISTINCT tenant_id, ' ') FROM hapax_processed_events"
    for invoker in "true", "false":
        psql(f"ALTER VIEW hapax_processed_events SET (security_invoker = {invoker})")
        expect(psql(tenants.format("")), "")
        expect(psql(tenants.format("SET hapax.tenant = 'evil';")), "evil")
        expect(psql(tenants.format("SET hapax.tenant = '*';")), "")
        # A function of the caller sees no row that the caller does not.
        said = psql("SET ROLE reader; SET hapax.tenant = 'evil'; SET client_min_messages = 'error'; "
                    "CREATE FUNCTION pg_temp.leak(bytea) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
                    "$$ BEGIN IF $1 <> 'evil' THEN RAISE 'leaked %', $1; END IF; RETURN true; END $$; "
                    "SELECT count(*) FROM hapax_processed_events WHERE pg_temp.leak(tenant_bytes)")
        expect(said, "1")
    psql("ALTER VIEW hapax_processed_events SET (security_invoker = true)")
    # A role that only reads it, with the two lines of README.md.
    readme = pathlib.Path(EXAMPLES, "../src/store/postgres/README.md").read_text(encoding="utf-8")
    grants = re.findall(r"^    (GRANT SELECT ON .* TO report;)$", readme, re.M)
    psql("CREATE ROLE report; " + grants[0])
    seen = "SET ROLE report; SET hapax.tenant = 'acme'; SELECT 1 FROM hapax_processed_events WHERE "
    fails(seen + PROCESSED_KEY.format("mine"), "42501")
    psql(grants[1])
    expect(psql(seen + PROCESSED_KEY.format("mine")), "1")
    fails("SET ROLE report; SET hapax.tenant = 'acme'; DELETE FROM hapax_record", "42501")
    expect(psql("SELECT count(DISTINCT tenant_id) > 1 FROM hapax_processed_events"), "t")


@case
def one_event_among_many_is_found_by_the_index():
    plan = psql("SET ROLE reader; SET hapax.tenant = 'acme'; SET enable_seqscan = off; "
                "EXPLAIN SELECT result_payload FROM hapax_processed_events WHERE " + PROCESSED_KEY.format("mine"))
    if "Index Cond: ((tenant = " not in plan or "Subplans Removed: 7" not in plan:
        raise AssertionError(plan)


@case
def the_example_in_sql():
    script = pathlib.Path(EXAMPLES, "consume_postgres.sql").read_text(encoding="utf-8")
    expect(psql(script), "charged: receipt 4711")
    expect(psql(script), "replay: receipt 4711")
    expect(psql("SELECT count(*) FROM payment"), "1")


def node_runs(script, *arguments, count=1):
    """What that many processes print that run the script with Node's pg, sorted."""
    if not PROOF:
        raise Skip("only with HAPAX_PROOF=1")
    if not shutil.which("npm"):
        raise Skip("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(script, folder)
        done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "pg@8"], cwd=folder, timeout=120,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Skip("the npm registry was not reached")
        command = ["node", os.path.basename(script), "postgres:///postgres", *arguments]
        runs = [subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        return sorted(run.communicate(timeout=60)[0] for run in runs)


@case
def the_example_in_node():
    outputs = node_runs(os.path.join(EXAMPLES, "consume_postgres.mjs"), "order-18", count=4)
    expect(outputs, ['acquired {"receipt":4711}\n'] + ['replay {"receipt":4711}\n'] * 3)
    expect(psql("SELECT count(*) FROM payment WHERE order_id = 'order-18'"), "1")


@case
def bad_input_from_node():
    output = node_runs(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_input.mjs"))[0]
    expect(output.split(), ["HX004"] * 11 + ["HX006", "0"])


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except Skip as skip:
            print(f"ok {number} - {function.__name__} # SKIP {skip}")
        except Exception as error:
            failed += 1
            print(f"not ok {number} - {function.__name__}")
            print("# " + str(error).replace("\n", "\n# "))
        sys.stdout.flush()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
