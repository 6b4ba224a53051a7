"""Conditions (E13) of a store that is slow, then away: each begins and ends for real."""

from conditions import begins, ends, health
from daemon import get, post, serve, upstream
from harness import expect, until
from test_outage import redis


def test_a_store_that_is_away(cli):
    """First slow, then away; with a journal, work goes on."""
    with redis(cli) as server, upstream() as behind:
        text = f"store: {{timeout: 1s, journal: 'sqlite:{cli.folder}/journal.db'}}\ndefaults: {{on_store_failure: continue}}\n"
        with serve(cli, behind.url, store=server.url, config=text) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            server.freeze()
            # A probe asks the store at once; the daemon itself does it at intervals.
            until(lambda: ("store_slow", None) in health(daemon)[1], "it is noticed")
            begins(daemon, "store_slow", reason="half of store.timeout", status=503)
            begins(daemon, "store_down", severity="critical", status=503)
            begins(daemon, "journal_in_use", status=503)
            expect(get(daemon.admin, "/readyz").status, 200)
            server.thaw()
            for name in ("store_down", "store_slow", "journal_in_use"):
                ends(daemon, name)
            expect(health(daemon)[0], 200)
