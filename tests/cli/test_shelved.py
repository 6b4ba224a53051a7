"""Results that file: keeps in a class segment and no longer in memory: store copy, store info, fsck."""

import base64
import json
import os
import pathlib
import sqlite3

from harness import TIMEOUT_SECONDS, expect, expect_in, finish, until

COUNT, SIZE = 40, 6000
FILLERS = 2000  # of tests/cli/seed.c
KEYS = [f"key-{number:06}" for number in range(COUNT)]
BLOCK = 4096


def body(number):
    """As tests/cli/seed.c makes it."""
    return bytes((i * 31 + number * 7 + i // 251) & 0xFF for i in range(SIZE))


def shelve(cli, name="ledger", size=SIZE):
    """A store with COUNT results; its folder."""
    folder = cli.folder / name
    cli.seed("shelved", "key-", COUNT, size, store=f"file:{folder}")
    return folder


def class_segments(folder):
    return [path for path in folder.glob("*.seg") if not path.name.startswith("log-")]


def place_of(folder, number):
    """The class segment with a result, and where in it."""
    found = [(path, path.read_bytes().find(body(number))) for path in class_segments(folder)]
    found = [(path, at) for path, at in found if at >= 0]
    expect(len(found), 1, f"copies of result {number}")
    return found[0]


def frame_of(path, at):
    """Where the frame begins that holds what is at an offset."""
    data = path.read_bytes()
    return max(offset for offset in range(BLOCK, at, BLOCK) if data[offset : offset + 4] == b"HXFR")


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def stored(cli, store, key):
    """The body of a key; None: there is no such key."""
    result = cli.run("lookup", key, "--store", store, "-o", "json", code=None)
    if result.code == 1:
        return None
    expect(result.code, 0, f"lookup {key}: {result.err}")
    return base64.b64decode(result.json["result"]["body_base64"], validate=True)


def expect_all(cli, store):
    for number, key in enumerate(KEYS):
        assert stored(cli, store, key) == body(number), f"{key} of {store} is not what it was"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "LOCK"}


def test_they_are_copied_byte_by_byte(cli):
    folder = shelve(cli)
    source = f"file:{folder}"
    info = cli.run("store", "info", source, "-o", "json").json
    expect((info["done"], info["keys"]), (COUNT + FILLERS, COUNT + FILLERS))
    assert COUNT * SIZE < info["files"]["class_bytes"], info
    # They are not in memory: it holds little more than that of a store without them.
    small = cli.run("store", "info", f"file:{shelve(cli, 'small', 1)}", "-o", "json").json
    assert info["bytes"] - small["bytes"] < COUNT * SIZE / 10, (info, small)
    for number in range(COUNT):
        place_of(folder, number)
    expect_all(cli, source)
    for target in (f"sqlite:{cli.folder / 'copy.db'}", f"file:{cli.folder / 'copy'}"):
        answer = cli.run("store", "copy", source, target, "-o", "json").json
        expect(answer["records"], COUNT + FILLERS)
        assert answer["bytes"] > COUNT * SIZE, answer
        expect_all(cli, target)
        expect(cli.run("store", "info", target, "-o", "json").json["done"], COUNT + FILLERS)
    for path in (folder, cli.folder / "copy"):
        expect(cli.run("fsck", path).fields()["verdict"], "sound")


def test_damage_of_one_is_found_before_anything_is_copied(cli):
    """And what a repair keeps is whole; what it does not, it has told."""
    folder = shelve(cli)
    path, at = place_of(folder, 7)
    flip(path, at + SIZE // 2)
    before = files(folder)
    frame = frame_of(path, at)
    for target in (cli.folder / "copy.db", cli.folder / "copy"):
        scheme = "sqlite" if target.suffix else "file"
        result = cli.run("store", "copy", f"file:{folder}", f"{scheme}:{target}", code=74)
        result.says(path.name, f"at offset {frame}", "damaged", "at risk", "hapax fsck")
        assert not target.exists(), "a target was made for nothing"
    cli.run("store", "info", f"file:{folder}", code=74).says(path.name, f"at offset {frame}")
    problems = json.loads(cli.run("fsck", folder, "-o", "json", code=74).out)["problems"]
    damages = [(problem["file"], problem["offset"]) for problem in problems if problem["kind"] == "damage"]
    expect(damages, [(path.name, frame)])
    expect(files(folder), before, "the files")
    at_risk = next(problem["keys_at_risk_max"] for problem in problems if problem["kind"] == "damage")
    answer = cli.run("fsck", folder, "--repair", "--accept-loss", "-o", "json").json
    lost = []
    for number, key in enumerate(KEYS):
        found = stored(cli, f"file:{folder}", key)
        assert found in (None, body(number)), f"{key} is not what it was"
        if found is None:
            lost.append(number)
    expect_in(7, lost)
    expect(answer["salvaged"], COUNT + FILLERS - len(lost))
    assert len(lost) <= at_risk < COUNT, (lost, at_risk)
    # Nothing but what was in the frame.
    damaged = pathlib.Path(answer["damaged_store"]) / path.name
    for number in lost:
        if number != 7:
            expect(frame_of(damaged, damaged.read_bytes().index(body(number))), frame, f"frame of {number}")


def has_open(process, path):
    folder = pathlib.Path(f"/proc/{process.pid}/fd")
    return any(os.path.realpath(link) == str(path.resolve()) for link in folder.iterdir())


def test_damage_of_one_while_it_is_copied(cli):
    """The source was sound when it was opened: the copy ends, says where, and is not taken for a whole one."""
    folder = shelve(cli)
    target = cli.folder / "copy.db"
    cli.run("check", "nothing", "--store", f"sqlite:{target}")
    cli.run("forget", "nothing", "--store", f"sqlite:{target}")
    path, at = place_of(folder, 7)
    blocker = sqlite3.connect(target, timeout=TIMEOUT_SECONDS, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    process = cli.start("store", "copy", f"file:{folder}", f"sqlite:{target}")
    try:
        until(lambda: has_open(process, target), "the target is open, so the source is")
        flip(path, at + SIZE // 2)
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
    out, err = finish(process, 74)
    expect(out, b"")
    expect_in(f"key '{KEYS[7]}': {path.name} at offset {at}: a result of {SIZE} bytes is damaged", err.decode())
    cli.run("store", "info", f"sqlite:{target}", code=64).says("part of an unfinished copy", "delete it")
    # As it was before, nothing is missing.
    flip(path, at + SIZE // 2)
    other = f"sqlite:{cli.folder / 'other.db'}"
    cli.run("store", "copy", f"file:{folder}", other)
    expect_all(cli, other)
