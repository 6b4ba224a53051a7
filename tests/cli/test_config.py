"""hapax config: check, dump, schema; and hapax.yaml, the manual, against all three. A4, D7."""

import json
import re
import shutil
import subprocess

from harness import ROOT, Skip, expect, expect_in, expect_match

MANUAL = (ROOT / "hapax.yaml").read_text(encoding="utf-8")

# Without somewhere to send events the daemon would not start, and the check fails.
UPSTREAM = ("--set", "upstream.url=http://127.0.0.1:9000")


def write(cli, text, name="hapax.yaml"):
    path = cli.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def settings(schema, prefix=""):
    """(path, schema) of every setting; items of lists are path[]."""
    for name, inner in schema.get("properties", {}).items():
        path = prefix + name
        yield path, inner
        yield from settings(inner, path + ".")
        yield from settings(inner.get("items", {}), path + "[].")


def uncommented(text):
    """The manual with its examples taken over: what begins with # and no blank, or two, is one, except in the header."""
    header, _, text = text.partition("\n\n")
    lines, out = text.split("\n"), [header, ""]
    for line, following in zip(lines, lines[1:] + [""]):
        example = re.match(r"^( *)#(?! \S)(.+)$", line)
        empty = re.match(r"^( *)(\w+): \[\]$", line)
        if example:
            out.append(example[1] + example[2])
        elif not (empty and following.startswith(f"{empty[1]}#{empty[2]}:")):
            out.append(line)
    return "\n".join(out)


def test_the_manual_is_right_and_changes_nothing(cli):
    env = {"HAPAX_STORE": None}
    path = write(cli, MANUAL)
    expect(cli.run("config", "check", path, *UPSTREAM, env=env).out, f"ok: {path}\n")
    expect(cli.run("config", "dump", path, env=env).out, cli.run("config", "dump", env=env).out)


def test_every_value_of_the_manual_is_the_default(cli):
    """Not only in effect: as it is written, too. What is left out of the file would be a default, unread."""
    schema = cli.run("config", "schema").json
    stack, seen = [], {}
    for line in MANUAL.splitlines():
        found = re.match(r"^( *)(\w+):(?: (.*))?$", line)
        if not found:
            continue
        depth = len(found[1]) // 2
        stack = stack[:depth] + [found[2]]
        seen[".".join(stack)] = (found[3] or "").strip('"')
    for path, setting in settings(schema):
        if "[]" in path:
            continue
        assert path in seen, f"hapax.yaml does not have {path}"
        if "default" in setting:
            expect(seen[path], json.dumps(setting["default"]).strip('"'), path)


def test_the_examples_of_the_manual_are_right_and_name_the_rest(cli):
    path = write(cli, uncommented(MANUAL))
    cli.run("config", "check", path)
    text = uncommented(MANUAL)
    for setting, _ in settings(cli.run("config", "schema").json):
        name = setting.rsplit(".", 1)[-1]
        expect_match(rf"(^| |{{)(- )?{re.escape(name)}: ", text.replace(":\n", ": \n"), setting)
    routes = cli.run("config", "dump", path, "-o", "json").json["gateway"]["routes"]
    expect([route["name"] for route in routes], ["orders", "imports"])


def test_the_manual_names_what_needs_a_restart(cli):
    for section, setting in (("listen", "gateway"), ("store", "timeout"), ("metrics", "aliases")):
        block = re.search(rf"^{section}:\n(?:(?:  .*)?\n)*?  {setting}:", MANUAL, re.MULTILINE).group(0)
        expect_in("[restart]", block.rsplit("\n\n", 1)[-1], f"{section}.{setting}")


def test_faults_are_named_as_compilers_do(cli):
    path = write(cli, "defaults:\n  tll: 24h\nlisten:\n  admin: nowhere\n")
    result = cli.run("config", "check", path, code=78)
    expect(result.out, "")
    expect(
        sorted(result.err.splitlines()),
        [
            f"{path}:2:3: unknown key 'tll' (did you mean 'ttl'?)",
            f"{path}:4:10: admin: invalid address 'nowhere': missing port",
        ],
    )
    expect(cli.run("config", "dump", path, code=78).out, "")
    many = write(cli, "".join(f"nonsense{i}: 1\n" for i in range(100)))
    lines = cli.run("config", "check", many, code=78).err.splitlines()
    expect(len(lines), 21)
    expect(lines[-1], "and more errors")


def test_no_item_of_a_list_is_empty(cli):
    """A dash too many, or a forgotten map, is an error. Every list that there is, and the form for editors."""
    schema = cli.run("config", "schema").json
    lists = [(path, setting["items"]) for path, setting in settings(schema) if "items" in setting]
    expect_in("scopes[].types", [path for path, _ in lists])
    for path, items in lists:
        assert items["type"] in ("object", "string"), f"{path}: {items['type']}"
        names, value = path.split("."), [None]
        for name in reversed(names):
            value = {name.removesuffix("[]"): [value] if name.endswith("[]") else value}
        why = "has an empty item (null); it must be a map" if items["type"] == "object" else "needs a list of strings"
        result = cli.run("config", "check", write(cli, json.dumps(value)), code=78)
        expect_match(rf"hapax\.yaml:1:\d+: '{names[-1]}' {re.escape(why)}", result.err, path)


def test_what_is_no_yaml(cli):
    for text in ("a: [1\n", "\tx: 1\n", "a: 1\na: 2\n", "a: &a [*a]\n", "a: !!int 1\n", "---\n---\n", "a: \x01\n"):
        expect_match(r"hapax\.yaml:\d+:\d+: ", cli.run("config", "check", write(cli, text), code=78).err)
    binary = cli.folder / "binary.yaml"
    binary.write_bytes(bytes(range(256)))
    cli.run("config", "check", str(binary), code=78)
    large = write(cli, "# " + "x" * (1 << 20) + "\n")
    expect_in("larger than", cli.run("config", "check", large, code=78).err)


def test_files_that_are_not_there(cli):
    expect_in("could not open the file: No such file", cli.run("config", "check", "/nowhere/x.yaml", code=66).err)
    expect_in("Is a directory", cli.run("config", "check", str(cli.folder), code=None).err)
    expect_in("/nowhere", cli.run("config", "check", code=66, env={"HAPAX_CONFIG": "/nowhere"}).err)


def dumped(cli, *arguments, **options):
    return cli.run("config", "dump", "-o", "json", *arguments, **options).json


def test_options_then_environment_then_file_then_defaults(cli):
    path = write(cli, "defaults: {ttl: 1h, lease: 5s}\nstore: {cleanup_interval: 1m}\n")
    expect(dumped(cli)["defaults"]["ttl"], "1d")
    expect(dumped(cli, path)["defaults"]["ttl"], "1h")
    documents = {"IDEMPOTENCY_TTL": "2h", "IDEMPOTENCY_CLEANUP_INTERVAL": "2m"}
    expect(dumped(cli, path, env=documents)["defaults"]["ttl"], "2h")
    expect(dumped(cli, path, env=documents)["store"]["cleanup_interval"], "2m")
    expect(dumped(cli, path, env={**documents, "HAPAX_TTL": "3h"})["defaults"]["ttl"], "3h")
    expect(dumped(cli, path, "--set", "defaults.ttl=4h", env=documents)["defaults"]["ttl"], "4h")
    expect(dumped(cli, path, env=documents)["defaults"]["lease"], "5s")
    expect(dumped(cli)["store"]["url"], cli.store)
    expect(dumped(cli, env={"HAPAX_LISTEN_GATEWAY": "off"})["listen"]["gateway"], "off")
    expect(dumped(cli, env={"HAPAX_ENABLED": "false"})["enabled"], False)
    faulty = cli.run("config", "check", code=78, env={"IDEMPOTENCY_TTL": "24"})
    expect_in("IDEMPOTENCY_TTL: ttl: '24' is not a duration", faulty.err)


def test_a_slip_in_a_variable_is_noted(cli):
    result = cli.run("config", "check", *UPSTREAM, env={"HAPAX_LISTEN_GATWAY": "off", "HAPAX_TOKEN": "1"})
    expect(
        result.err, "hapax: config: note: HAPAX_LISTEN_GATWAY is not a setting (did you mean HAPAX_LISTEN_GATEWAY?)\n"
    )


def test_a_lease_below_the_timeout_of_the_store_is_a_warning(cli):
    """What such a store grants may be over when the answer comes."""
    text = """
store: {timeout: 2s}
defaults: {lease: 2s}
scopes:
  - {scope: acme/short, lease: 1999ms}
  - {scope: acme/long, lease: 10s}
"""
    result = cli.run("config", "check", write(cli, text), *UPSTREAM)
    warning = "^hapax: config: warning: lease is shorter than store.timeout, [^\n]* \\(scope: %s, lease: %s, timeout: %s\\)\n$"
    expect_match(warning % ("acme/short", "1999ms", "2s"), result.err)
    result = cli.run("config", "check", write(cli, "defaults: {lease: 1s}\n"), *UPSTREAM)
    expect_match(warning % ("defaults", "1s", "5s"), result.err)


def test_cookies_that_do_not_count_are_noted(cli):
    """Where nothing but a cookie would tell clients apart, a person has to name it."""
    text = """
listen: {proxy: '127.0.0.1:8081'}
upstream: {url: 'http://127.0.0.1:9000'}
proxy:
  routes:
    - {name: plain, path: /plain}
    - {name: named, path: /named, credential_cookies: [session]}
    - {name: principal, path: /principal, credential: 'header:X-User'}
    - {name: public, path: /public, credential: none}
"""
    result = cli.run("config", "check", write(cli, text))
    expect_match("^hapax: config: note: route 'plain': cookies do not identify clients: .*credential_cookies\n$", result.err)
    expect(cli.run("config", "check", write(cli, text.replace("listen:", "#"))).err, "")


def test_the_file_is_found(cli):
    expect(cli.run("config", "check", *UPSTREAM).out, "ok: no file, defaults and environment\n")
    path = write(cli, "enabled: false\n", "home/.config/hapax/hapax.yaml")
    expect(cli.run("config", "check", *UPSTREAM).out, f"ok: {path}\n")
    other = write(cli, "enabled: true\n", "other.yaml")
    expect(cli.run("config", "check", *UPSTREAM, env={"HAPAX_CONFIG": other}).out, f"ok: {other}\n")
    write(cli, "enabled: false\nloops: 3\n", "home/.config/hapax/conf.d/10.yaml")
    expect(dumped(cli)["loops"], 3)


def test_a_dump_reads_back(cli):
    path = write(cli, uncommented(MANUAL))
    once = cli.run("config", "dump", path).out
    expect(cli.run("config", "dump", write(cli, once, "again.yaml")).out, once)
    compact = cli.run("config", "dump", path, "-o", "json").out
    expect(cli.run("config", "dump", write(cli, compact, "again.json")).out, once)


def test_passwords_do_not_show(cli):
    result = cli.run("config", "dump", env={"HAPAX_STORE": "redis://me:s3cret@example.com"})
    assert "s3cret" not in result.out
    expect_in("redis://me:***@example.com", result.out)


def test_the_schema_is_one(cli):
    schema = cli.run("config", "schema").json
    expect(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
    dump = dumped(cli)
    for path, setting in settings(schema):
        assert setting["description"] and "." not in setting["description"][-1], path
        if "[]" in path:
            continue
        value = dump
        for name in path.split("."):
            value = value[name]
        if "pattern" in setting and isinstance(value, str):
            expect_match(setting["pattern"], value, path)
        if "enum" in setting:
            expect_in(value, setting["enum"], path)


def test_usage(cli):
    cli.run("config", code=64).says("missing action")
    cli.run("config", "chek", code=64).says("unknown action 'chek'")
    cli.run("config", "schema", "x", code=64).says("unexpected argument")
    cli.run("config", "dump", "--set", "x", code=64).says("is not SETTING=VALUE")
    cli.run("config", "dump", "--set", "listen.x=1", code=64).says("unknown setting 'listen.x'")
    cli.run("config", "dump", "--set", "gateway.routes=1", code=64).says("unknown setting")
    cli.run("config", "dump", "--set", "listen=1", code=64).says("unknown setting")


def test_the_page_of_the_manual_has_every_setting(cli):
    page = (ROOT / "man/hapax.yaml.5").read_text(encoding="utf-8").replace("\\-", "-")
    for path, setting in settings(cli.run("config", "schema").json):
        section, _, name = path.replace("[]", "").rpartition(".")
        if "properties" in setting or "properties" in setting.get("items", {}):
            expect_in(f".SS {path}".replace("[]", "") if section != "scopes" else ".SS defaults.types", page)
            continue
        # What defaults and scopes have in common stands once.
        section = "defaults.types" if section == "scopes.types" else section
        section = "defaults" if section == "scopes" and name != "scope" else section
        block = page.split(f".SS {section or 'At the top'}\n")[1].split("\n.S")[0]
        default = setting.get("default", [] if "array" in setting.get("type", "") else None)
        text = "empty" if default == "" else json.dumps(default).strip('"')
        expect_in(f".B {name}\\fR" + ("" if default is None else f" ({text})") + "\n", block, path)


def test_the_page_is_well_formed(cli):
    if shutil.which("groff") is None:
        raise Skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-t", "-ww", "-z", str(ROOT / "man/hapax.yaml.5")],
        capture_output=True,
        check=True,
        env=cli.env(),
    )
    expect(done.stderr, b"")
