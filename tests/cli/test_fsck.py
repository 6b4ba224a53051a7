"""hapax fsck."""

import fcntl
import json
import struct

from harness import expect, expect_in, until

BLOCK = 4096
F_OFD_SETLK = 37  # of <fcntl.h>; Python 3.11 does not name it


def fill(cli, count=6):
    """A file: store with keys key-0 ..., each in a frame of its own; its folder."""
    folder = cli.folder / "ledger"
    for number in range(count):
        cli.run("check", f"key-{number}", "--store", f"file:{folder}")
    return folder


def segment(folder):
    """The log's first segment."""
    return sorted(folder.glob("log-*.seg"))[0]


def frame_of(folder, key):
    """Where the frame with that key begins."""
    at = segment(folder).read_bytes().index(key.encode())
    return at // BLOCK * BLOCK


def damage(folder, offset):
    """Flip a bit."""
    path = segment(folder)
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(data)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "LOCK"}


def test_a_sound_store(cli):
    folder = fill(cli)
    before = files(folder)
    fields = cli.run("fsck", folder).fields()
    expect((fields["verdict"], fields["closed"]), ("sound", "cleanly"))
    answer = cli.run("fsck", f"file:{folder}", "-o", "json").json
    expect((answer["verdict"], answer["problems"], answer["damages"], answer["closed"]), ("sound", [], 0, True))
    assert answer["records"] >= 6, answer
    expect(files(folder), before, "the files")


def test_damage_is_explained(cli):
    folder = fill(cli)
    offset = frame_of(folder, "key-2")
    damage(folder, offset + 200)
    before = files(folder)
    result = cli.run("fsck", folder, code=74)
    expect_in("damage: log-", result.out)
    expect_in(f"at offset {offset}", result.out)
    result.says("damaged", "hint: restore a backup", "--repair --accept-loss")
    answer = json.loads(cli.run("fsck", folder, "-o", "json", code=74).out)
    expect((answer["verdict"], answer["problems"][0]["kind"]), ("damaged", "damage"))
    expect(answer["problems"][0]["offset"], offset)
    assert answer["problems"][0]["lsn"] > 0, answer
    expect(files(folder), before, "the files")
    # The store itself refuses, and names the place and the way out.
    cli.run("check", "key-0", "--store", f"file:{folder}", code=74).says("log-", f"offset {offset}", "LSN", "hapax fsck")


def test_repair_wants_both_words(cli):
    folder = fill(cli)
    damage(folder, frame_of(folder, "key-2") + 200)
    before = files(folder)
    cli.run("fsck", folder, "--repair", code=64).says("--repair requires --accept-loss", "nothing changed")
    cli.run("fsck", folder, "--accept-loss", code=64).says("--accept-loss requires --repair")
    expect(files(folder), before, "the files")


def test_repair_keeps_what_can_be_read(cli):
    folder = fill(cli)
    token = cli.run("store", "info", f"file:{folder}", "-o", "json").json["token"]
    damage(folder, frame_of(folder, "key-2") + 200)
    before = files(folder)
    result = cli.run("fsck", folder, "--repair", "--accept-loss")
    fields = result.fields()
    expect((fields["verdict"], fields["salvaged"]), ("repaired", "5 keys"))
    damaged = cli.folder / "ledger.damaged-1"
    expect(fields["damaged one"], str(damaged))
    expect(files(damaged), before, "the damaged store")
    expect(cli.run("fsck", folder).fields()["verdict"], "sound")
    for number in (0, 1, 3, 4, 5):
        cli.run("check", f"key-{number}", "--store", f"file:{folder}", code=1)
    expect(cli.run("check", "key-2", "--store", f"file:{folder}").out, "first\n")
    # Tokens of what was lost are not given out again.
    assert cli.run("store", "info", f"file:{folder}", "-o", "json").json["token"] > token + 2**40


def test_repair_of_a_sound_store_changes_nothing(cli):
    folder = fill(cli)
    before = files(folder)
    expect(cli.run("fsck", folder, "--repair", "--accept-loss").fields()["verdict"], "sound")
    expect(files(folder), before, "the files")
    assert not (cli.folder / "ledger.damaged-1").exists()


def test_a_header_that_cannot_be_read(cli):
    folder = fill(cli)
    damage(folder, 30)
    expect_in("damage: ", cli.run("fsck", folder, code=74).out)
    answer = cli.run("fsck", folder, "--repair", "--accept-loss", "-o", "json").json
    expect((answer["salvaged"], answer["unread"]), (0, 1))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_a_newer_format(cli):
    """Major version, and flags without which it must not be read, or not be written: hands off."""
    folder = fill(cli)
    store = f"file:{folder}"
    for path in (folder / "STORE", segment(folder)):
        original = path.read_bytes()
        expect(struct.unpack_from("<I", original, 124)[0], crc32c(original[:124]), "the CRC as we make it")
        for form, offset, value in (("<H", 8, 2), ("<I", 12, 1 << 31), ("<I", 16, 1 << 31)):
            data = bytearray(original)
            struct.pack_into(form, data, offset, value)
            struct.pack_into("<I", data, 124, crc32c(data[:124]))
            path.write_bytes(data)
            before = files(folder)
            cli.run("check", "key-9", "--store", store, code=69).says("newer")
            if offset != 16:
                for options in ([], ["--repair", "--accept-loss"]):
                    result = cli.run("fsck", folder, *options, code=69)
                    expect_in("newer", result.out + result.err)
            expect(files(folder), before, "the files")
            assert not (cli.folder / "ledger.damaged-1").exists()
        path.write_bytes(original)
    cli.run("check", "key-0", "--store", store, code=1)


def test_a_truncated_segment(cli):
    folder = fill(cli)
    path = segment(folder)
    path.write_bytes(path.read_bytes()[: frame_of(folder, "key-4") + 100])
    cli.run("fsck", folder, code=74).says("damaged")


def test_a_store_in_use(cli):
    folder = fill(cli)
    with open(folder / "LOCK", "r+b") as lock:
        # As the store does: a lock of the open file, not of the process.
        fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        cli.run("fsck", folder, code=69).says("in use")
    until(lambda: cli.run("fsck", folder, code=None).code == 0, "the lock is free")


def test_no_store(cli):
    empty = cli.folder / "empty"
    empty.mkdir()
    result = cli.run("fsck", empty, code=None)
    assert result.code in (64, 69), (result.code, result.err)
    result = cli.run("fsck", cli.folder / "nowhere", code=None)
    assert result.code in (64, 69), (result.code, result.err)
    assert not (cli.folder / "nowhere").exists()
    cli.run("fsck", code=64).says("missing argument")


def test_a_missing_log(cli):
    folder = fill(cli)
    for path in folder.glob("log-*.seg"):
        path.unlink()
    before = files(folder)
    result = cli.run("fsck", folder, code=74)
    expect_in("damage: log-0000000000000001.seg", result.out)
    expect_in("a segment of the log is missing", result.out)
    expect_in("the number of keys at risk is unknown", result.out)
    cli.run("check", "key-0", "--store", f"file:{folder}", code=74).says("is missing", "hapax fsck")
    expect(files(folder), before, "the files")


def test_a_damaged_store_file(cli):
    folder = fill(cli)
    (folder / "STORE").write_bytes(b"nothing")
    expect_in("damage: STORE: ", cli.run("fsck", folder, code=74).out)
    fields = cli.run("fsck", folder, "--repair", "--accept-loss").fields()
    expect((fields["verdict"], fields["salvaged"]), ("repaired", "6 keys"))
    cli.run("check", "key-5", "--store", f"file:{folder}", code=1)


def test_nothing_is_made_where_no_store_is(cli):
    folder = cli.folder / "letters"
    folder.mkdir()
    (folder / "LOCK").write_text("mine")
    cli.run("fsck", folder, code=64).says("other files")
    cli.run("check", "key", "--store", f"file:{folder}", code=None).says("other files")
    expect({path.name: path.read_text() for path in folder.iterdir()}, {"LOCK": "mine"})


def test_a_relative_directory(cli):
    folder = fill(cli)
    damage(folder, frame_of(folder, "key-2") + 200)
    result = cli.run("fsck", ".", "--repair", "--accept-loss", cwd=folder)
    expect(result.fields()["damaged one"], f"{folder}.damaged-1")
    expect(cli.run("fsck", folder).fields()["verdict"], "sound")
