"""An API token is not a shell: no change by the API names a host, a file or a command, and no URL shows its secrets."""

import json
import urllib.parse

from daemon import get, upstream
from harness import expect, expect_in, is_proof, skip_librdkafka, until
from test_api import TOKENS, Api, api, digest

SECRET = "s3cr3t"


class Shop:
    """A database with an outbox."""

    def __init__(self, cli):
        self.cli = cli
        self.url = f"sqlite:{cli.folder}/shop.db"
        cli.run("outbox", "init", "--db", self.url)

    def add(self, event):
        self.cli.run("outbox", "add", "--db", self.url, "-t", "orders", "--ordering-key", "k", "--id", event, input=b'{"n":1}')


def url(scheme, at, **options):
    return f"{scheme}://{at}?" + "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in options.items())


def hostile_properties(marker):
    """Properties with which librdkafka runs a program, or loads one. Its shell would make the file."""
    gssapi = {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "GSSAPI"}
    return [
        {**gssapi, "sasl.kerberos.kinit.cmd": f"touch {marker}"},
        {"security.protocol": "sasl_plaintext", "sasl.kerberos.kinit.cmd": f"touch {marker}"},
        {**gssapi, "sasl.kerberos.keytab": f'x" ; touch {marker} ; "'},
        {**gssapi, "sasl.kerberos.principal": f"x; touch {marker} #"},
        gssapi,
        {"security.protocol": "sasl_ssl"},
        {"security.protocol": "\tSASL_SSL"},
        {"security.protocol": "sasl_ssl", "sasl.mechanism": ""},
        {"plugin.library.paths": f"{marker}.so"},
        {"ssl.engine.location": f"{marker}.so"},
        {"ssl.providers": f"{marker}.so"},
        {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": f"file://{marker}"},
        {"offset.store.method": "file", "offset.store.path": str(marker)},
        {"test.mock.num.brokers": "1"},
    ]


def unchanged(daemon, call, before):
    expect(call("GET", "/config").json, before)
    assert not (daemon.config.parent / "conf.d" / "99-runtime.yaml").exists()


def test_a_change_runs_no_command(cli):
    """What was seen: a sink that logs in by GSSAPI, whose kinit is any command, run as the daemon's user."""
    marker = cli.folder / "executed"
    shop = Shop(cli)
    with upstream() as sink:
        with api(cli, f"outbox: {{url: '{shop.url}', sink: '{sink.url}', retry: 20ms}}\n") as (daemon, call):
            before = call("GET", "/config").json
            shop.add("e1")
            until(lambda: len(sink.requests) == 1, "the relay has begun")
            for properties in hostile_properties(marker):
                target = url("kafka", "127.0.0.1:1/t", **properties)
                call("PATCH", "/config", {"outbox": {"sink": target}}).is_problem(409, "cannot change outbox.sink here")
                consumer = {"name": "x", "from": target, "to": "http://127.0.0.1:1"}
                call("PATCH", "/config", {"consumers": [consumer]}).is_problem(409, "cannot change consumers here")
            call("PATCH", "/config", {"consumers": [{"name": "x", "from": "redis://127.0.0.1:1/s", "exec": f"touch {marker}"}]}).is_problem(409)
            unchanged(daemon, call, before)
            # The relay goes on as before.
            shop.add("e2")
            until(lambda: len(sink.requests) == 2, "the relay goes on")
    assert not marker.exists()


def test_no_url_runs_a_command(cli):
    """Nor from the operator's own files and options: text that is pasted there may come from a stranger."""
    marker = cli.folder / "executed"
    path = cli.folder / "hostile.yaml"
    shop = Shop(cli)
    shop.add("e1")
    every = hostile_properties(marker)
    for number, properties in enumerate(every):
        target = url("kafka", "127.0.0.1:1/t", **properties)
        sink = f"outbox: {{url: '{shop.url}', sink: '{target}'}}\n"
        consumer = f"consumers: [{{name: x, from: '{target}', to: 'http://127.0.0.1:1'}}]\n"
        for text, word in ((sink, "outbox: "), (consumer, "consumer 'x': from: ")):
            path.write_text(text)
            refused = cli.run("config", "check", str(path), code=78)
            expect_in(word, refused.err)
            expect_in("propert" if "security.protocol" not in properties else "", refused.err)
        # The same reader, asked by other commands.
        if number == 0 or is_proof():
            cli.run("serve", "--config", str(path), "--store", "memory:", "--gateway", "off", "--admin", "127.0.0.1:0", code=78)
            cli.run("consume", "--from", target, "--to", "http://127.0.0.1:1", "--idle-exit", "1s", code=64)
            cli.run("outbox", "relay", "--db", shop.url, "--to", target, "--once", code=64)
    assert not marker.exists()


def test_a_change_names_no_host_file_or_command(cli):
    """By a value, by a list, by taking back, by what the environment hides, or by what is the same now."""
    routes = "gateway: {routes: [{path: /a, upstream: 'http://127.0.0.1:1'}, {path: /b}]}\n"
    proxy = "proxy: {routes: [{path: /a, upstream: 'http://127.0.0.1:1'}]}\n"
    files = cli.folder / "conf.d"
    files.mkdir()
    (files / "10-site.yaml").write_text("traces: {sample: 0.5}\nupstream: {url: 'http://127.0.0.1:1'}\n")
    env = cli.env(HAPAX_STORE=None, HAPAX_TRACES_SERVICE_NAME="shop")
    with api(cli, routes + proxy, url=None, env=env) as (daemon, call):
        before = call("GET", "/config").json
        row = {"path": "/a", "upstream": "http://127.0.0.1:1"}
        evil = "http://127.0.0.1:2"
        own = [{"name": "admin", "hash": digest(TOKENS["admin"]), "role": "admin"}]
        for patch, setting in (
            ({"outbox": {"url": "sqlite:/tmp/x"}}, "outbox.url"),
            ({"outbox": {"sink": evil}}, "outbox.sink"),
            ({"outbox": evil}, "outbox"),
            ({"upstream": {"url": evil}}, "upstream.url"),
            ({"log": {"level": "debug"}, "upstream": {"max_idle": 0, "url": evil}}, "upstream.url"),
            ({"upstream": {"url": "http://127.0.0.1:1"}}, "upstream.url"),
            ({"store": {"url": "memory:"}}, "store.url"),
            ({"store": {"journal": "file:/tmp/x"}}, "store.journal"),
            ({"log": {"audit": "/etc/cron.d/x"}}, "log.audit"),
            ({"traces": {"endpoint": evil}}, "traces.endpoint"),
            ({"traces": {"headers_file": "/etc/shadow"}}, "traces.headers_file"),
            ({"traces": {"service_name": "x"}}, "traces.service_name"),
            ({"tls": {"certificate": "/etc/shadow"}}, "tls.certificate"),
            ({"tls": {"admin": {"client_ca": "/tmp/x"}}}, "tls.admin.client_ca"),
            ({"listen": {"admin": "0.0.0.0:1"}}, "listen.admin"),
            ({"resp": {"users": []}}, "resp.users"),
            ({"auth": {"open_metrics": True}}, "auth.open_metrics"),
            # It is the one that there is; kept, it would outlive its row in the file.
            ({"auth": {"tokens": own}}, "auth.tokens"),
            ({"auth": {"tokens": []}}, "auth.tokens"),
            ({"consumers": []}, "consumers"),
            ({"http": {"trusted_proxies": ["0.0.0.0/0"]}}, "http.trusted_proxies"),
            ({"gateway": {"webhook": {"allowed_origins": ["*"]}}}, "gateway.webhook.allowed_origins"),
            ({"gateway": {"routes": [{**row, "upstream": evil}, {"path": "/b"}]}}, "gateway.routes[0].upstream"),
            ({"gateway": {"routes": [row, {"path": "/b", "upstream": evil}]}}, "gateway.routes[1].upstream"),
            ({"gateway": {"routes": [row, {"path": "/b", "tenant": "acme"}]}}, "gateway.routes[1].tenant"),
            ({"gateway": {"routes": [{"path": "/b"}, row]}}, "gateway.routes[0]."),
            ({"gateway": {"routes": [row]}}, "gateway.routes"),
            ({"gateway": {"routes": []}}, "gateway.routes"),
            ({"gateway": {"routes": [row, {"path": "/b"}, {"path": "/c"}]}}, "gateway.routes"),
            ({"proxy": {"routes": [{**row, "upstream": evil}]}}, "proxy.routes"),
            ({"proxy": {"routes": [{**row, "credential": "none"}]}}, "proxy.routes"),
        ):
            call("PATCH", "/config", patch).is_problem(409, f"cannot change {setting}{'' if setting[-1] == '.' else ' here'}")
        for text in (b'{"\\u006futbox": {"sink": "x"}}', b'{"outbox": {"s\\u0069nk": "http://h"}}'):
            expect(call("PATCH", "/config", text).status // 100, 4)
        unchanged(daemon, call, before)
        expect({entry["outcome"] for entry in call("GET", "/audit").json["entries"]}, {"invalid"})
        # Numbers may change, and what makes two events the same.
        changed = call("PATCH", "/config", {"traces": {"sample": "0.25"}, "store": {"max_clock_skew": "9s"}}).json
        expect((changed["traces"]["sample"], changed["store"]["max_clock_skew"]), ("0.25", "9s"))
        changed = call("PATCH", "/config", {"gateway": {"routes": [{**row, "key": "content"}, {"path": "/b"}]}}).json
        expect([route["key"] for route in changed["gateway"]["routes"]], ["content", "event-id"])
        expect([route["upstream"] for route in changed["gateway"]["routes"]], ["http://127.0.0.1:1"] * 2)
        # From here on 99-runtime.yaml has rows of its own: what it has is not changed either.
        call("PATCH", "/config", {"gateway": {"routes": [{**row, "upstream": evil}, {"path": "/b"}]}}).is_problem(409, "gateway.routes[0].upstream")
        expect(call("PATCH", "/config", {"gateway": None}).json["gateway"], before["gateway"])


def test_what_the_operator_wrote_is_not_taken_back(cli):
    """99-runtime.yaml is a file of the operator's folder: null must not undo what it says of hosts."""
    runtime = cli.folder / "conf.d" / "99-runtime.yaml"
    runtime.parent.mkdir()
    runtime.write_text('{"upstream": {"url": "http://127.0.0.1:2"}, "log": {"rate": 7}}')
    with api(cli, "upstream: {url: 'http://127.0.0.1:1'}\n", url=None) as (daemon, call):
        expect(call("GET", "/config").json["upstream"]["url"], "http://127.0.0.1:2")
        for patch in ({"upstream": {"url": None}}, {"upstream": None}):
            call("PATCH", "/config", patch).is_problem(409, "cannot change upstream.url here")
        expect(call("PATCH", "/config", {"log": None}).json["upstream"]["url"], "http://127.0.0.1:2")
        # What the operator writes next to it counts, and is not the patch's fault.
        text = daemon.config.read_text()
        daemon.config.write_text(text + "proxy: {routes: [{path: /x, upstream: 'http://127.0.0.1:3'}]}\n")
        expect(len(call("PATCH", "/config", {"log": {"rate": 9}}).json["proxy"]["routes"]), 1)


def secret_patches():
    yield {"outbox": {"sink": f"kafka://u:{SECRET}@h/t?ssl.key.pem={SECRET}&sasl.oauthbearer.client.secret={SECRET}"}}
    yield {"outbox": {"sink": f"kafka://h/t?{SECRET}={SECRET}&{SECRET}"}}
    yield {"upstream": {"url": f"http://u:{SECRET}@h/?{SECRET}"}}
    yield {"traces": {"endpoint": f"http://u:{SECRET}@h"}}
    yield {"consumers": [{"name": "x", "from": f"amqp://u:{SECRET}@h/q", "exec": f"curl -u {SECRET}"}]}
    yield {"gateway": {"routes": [{"upstream": f"http://u:{SECRET}@h"}]}}
    yield {"gateway": {"routes": [{"upstream": f"u:{SECRET}@h"}]}}
    yield {"gateway": {"routes": [{"upstream": f"http://u:{SECRET}/x@h"}]}}
    yield {"proxy": {"routes": [{"path": "/", "upstream": f"http://h/?{SECRET}"}]}}
    yield {"auth": {"tokens": [{"name": "x", "hash": f"sha256:{SECRET}", "role": "admin"}]}}
    yield {"log": {"level": f"redis://:{SECRET}@h"}}
    yield {"log": {"rate": f"redis://:{SECRET}@h"}}
    yield {"scopes": [{"scope": f"redis://:{SECRET}@h"}]}
    yield {SECRET: SECRET}


def test_secrets_of_urls_are_shown_nowhere(cli):
    """Neither of what is in force nor of what was refused: in replies to readers, in the audit, in the log."""
    skip_librdkafka()
    audit = cli.folder / "audit.log"
    shop = Shop(cli)
    shop.add("e1")
    kafka = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "shop",
        "sasl.password": SECRET,
        "sasl.oauthbearer.config": SECRET,
        "ssl.key.pem": SECRET,
        "ssl.key.password": SECRET,
        "ssl.keystore.password": SECRET,
        "client.id": "till",
    }
    config = f"log: {{audit: '{audit}', level: debug}}\n"
    config += f"outbox: {{url: '{shop.url}', sink: '{url('kafka', '127.0.0.1:1/t', **kafka)}'}}\n"
    config += "consumers:\n"
    config += f"  - {{name: k, from: '{url('kafka', '127.0.0.1:1/t', group='g', **kafka)}', to: 'http://127.0.0.1:1'}}\n"
    config += f"  - {{name: r, from: 'redis://:{SECRET}@127.0.0.1:1/s?group=g', to: 'http://127.0.0.1:1'}}\n"
    config += f"  - {{name: a, from: 'amqp://u:{SECRET}@127.0.0.1:1/q', to: 'http://127.0.0.1:1'}}\n"
    with upstream() as service, api(cli, config, url=service.url) as (daemon, call):
        reader = Api(daemon, "read")
        shown = reader("GET", "/config").json
        expect_in("sasl.username=shop&sasl.password=***&", shown["outbox"]["sink"])
        expect_in("ssl.key.pem=***&", shown["outbox"]["sink"])
        expect_in("client.id=till", shown["consumers"][0]["from"])
        expect(shown["consumers"][1]["from"], "redis://:***@127.0.0.1:1/s?group=g")
        count = 0
        for patch in secret_patches():
            expect(call("PATCH", "/config", patch).status // 100, 4)
            count += 1
        until(lambda: audit.exists() and audit.read_text().count("\n") == count, "the file has them")
        until(lambda: any("outbox" in line and "warn" in line for line in list(daemon.lines)), "the sink was tried")
        pages = ["/metrics", "/healthz?verbose", "/readyz?verbose", "/openapi.json", "/actuator/deduplication"]
        pages += [f"/api/v1/{name}" for name in ("config", "audit", "stats", "outbox")]
        texts = {page: reader.raw("GET", page).body.decode() for page in pages}
        texts["audit file"] = audit.read_text()
        assert not (daemon.config.parent / "conf.d" / "99-runtime.yaml").exists()
    texts["log"] = "".join(daemon.lines)
    for name, text in texts.items():
        assert SECRET not in text, (name, [line for line in text.splitlines() if SECRET in line])
    details = [json.loads(line)["detail"] for line in texts["audit file"].splitlines()]
    expect(details[0], {"outbox": {"sink": "***"}})
    expect(details[-1], {})


def test_faults_show_no_secret(cli):
    """A URL that is wrong is named by its place; what is shown of it has no secret."""
    path = cli.folder / "wrong.yaml"
    places = [
        "upstream: {{url: '{}'}}\n",
        "gateway: {{routes: [{{upstream: '{}'}}]}}\n",
        "proxy: {{routes: [{{path: /, upstream: '{}'}}]}}\n",
        "traces: {{endpoint: '{}'}}\n",
        "consumers: [{{name: x, from: 'redis://h/s', to: '{}'}}]\n",
    ]
    # These do not show the values of options either, some of which may be shown.
    readers = [
        "consumers: [{{name: x, from: '{}', exec: 'true'}}]\n",
        "outbox: {{url: '{}', sink: 'http://h'}}\n",
        "outbox: {{url: 'sqlite:x.db', sink: '{}'}}\n",
    ]
    wrong = [
        f"http://u:{SECRET}@h", f"u:{SECRET}@h", f"http://u:{SECRET}/x@h", f"http://h/?{SECRET}", f"http://h:{SECRET}",
        f"ftp://u:{SECRET}@h", f"redis://u:{SECRET}/x@h/s", f"redis://h:{SECRET}/s", f"redis+cluster://u:{SECRET}/@h/s",
        f"amqp://u:{SECRET}%zz@h/q", f"amqp://h:{SECRET}/q", f"kafka://u:{SECRET}@h/t", f"postgres://u:{SECRET}%zz@h/d",
        f"kafka://h/t?sasl.password=a&{SECRET}", f"kafka://h/t?ssl.key.pem={SECRET}&no.such=1",
    ]  # fmt: skip
    options = [
        f"redis://h/s?min_idle={SECRET}", f"redis://h/s?db={SECRET}", f"kafka://h/t?linger.ms={SECRET}",
        f"kafka://h/t?sasl.mechanisms={SECRET}", f"kafka://h/t?warm_up={SECRET}", f"postgres://h/d?pool={SECRET}",
    ]  # fmt: skip
    cases = [(place, target) for target in wrong for place in (places + readers if is_proof() else [*places[:1], *places[-1:], *readers])]
    cases += [(place, target) for target in options for place in readers]
    for place, target in cases:
        path.write_text(place.format(target))
        checked = cli.run("config", "check", str(path), code=None)
        assert SECRET not in checked.out + checked.err, (place, target, checked.err)


def test_the_store_shows_no_secret(cli):
    """Nor do commands and the daemon say it of a store that is not there or not understood."""
    for target in (
        f"redis://u:{SECRET}@127.0.0.1:1/0", f"redis://u:{SECRET}/@127.0.0.1:1", f"postgres://u:{SECRET}@127.0.0.1:1/d",
        f"postgres://127.0.0.1:1/d?password={SECRET}&x{SECRET}=1", f"http://u:{SECRET}/@127.0.0.1:1",
        f"http://127.0.0.1:{SECRET}",
    ):
        for command in (["check", "k"], ["stats"], ["store", "info"], ["serve", "--gateway", "off", "--admin", "127.0.0.1:0"]):
            said = cli.run(*command, "--store", target, code=None)
            assert said.code != 0, said
            assert SECRET not in said.out + said.err, (command, target, said.err)


def test_a_change_of_many_names_is_refused_at_once(cli):
    """Each name is looked for among all others: 200,000 of them held the worker for minutes, and all who waited for it."""
    with api(cli, "") as (_daemon, call):
        call("PATCH", "/config", {f"k{i}": 1 for i in range(200_000)}).is_problem(413, "limit 256 KiB")
        call("PATCH", "/config", {"http": {f"k{i}": 1 for i in range(20_000)}}).is_problem(422, "more than 256 members")


def test_get_is_all_that_a_reader_may(cli):
    """A change needs the role admin, whatever it says."""
    with api(cli) as (daemon, call):
        for role in ("read", "write", None):
            reply = Api(daemon, role)("PATCH", "/config", {"log": {"level": "debug"}})
            expect(reply.status, 401 if role is None else 403)
        expect(get(daemon.admin, "/livez").status, 200)
