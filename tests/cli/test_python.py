"""`hapax key` beside Python's own json, on documents at random. C1.

--canonical python must make the very keys of document C; --canonical lossless those of an oracle
that is written here, with decimal.Decimal for numbers.
"""

import decimal
import hashlib
import json
import subprocess
import time

from harness import PROGRAM, scaled
from json_documents import Documents

CHUNK = 5000
decimal.getcontext().prec = 5000
decimal.getcontext().Emax = decimal.MAX_EMAX
decimal.getcontext().Emin = decimal.MIN_EMIN


def keys_of(cli, documents, canonical):
    done = subprocess.run(
        [str(PROGRAM), "key", "--strategy", "content", "--canonical", canonical, "--lines"],
        env=cli.env(), input="\n".join(documents).encode() + b"\n", capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 65):
        raise AssertionError(f"exit {done.returncode}: {done.stderr[-2000:]!r}")
    return done.stdout.decode().split("\n")[:-1]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Refused(Exception):
    pass


def refuse(text):
    raise Refused(text)


def python_key(text):
    """Document C's key; empty where Python refuses."""
    try:
        return digest(json.dumps(json.loads(text, parse_constant=refuse), sort_keys=True))
    except (ValueError, Refused):
        return ""


def plain_number(text):
    sign, digits, exponent = decimal.Decimal(text).normalize().as_tuple()
    digits = "".join(map(str, digits))
    if digits == "0":
        return "0"
    point = len(digits) + exponent
    if exponent == 0 or (exponent > 0 and point <= 21):
        body = digits + "0" * exponent
    elif exponent < 0 < point:
        body = digits[:point] + "." + digits[point:]
    elif exponent < 0 and point >= -5:
        body = "0." + "0" * -point + digits
    else:
        body = f"{digits}e{exponent}"
    return ("-" if sign else "") + body


class Number(str):
    """A number as its one text."""


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def lossless(value):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(lossless, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(lossless(name) + ":" + lossless(value[name]) for name in sorted(value)) + "}"
    return json.dumps(value)


def lossless_key(text):
    number = lambda lexeme: Number(plain_number(lexeme))  # noqa: E731
    return digest(lossless(json.loads(text, parse_int=number, parse_float=number)))


def compare(cli, canonical, expected_key, count, seed):
    source = Documents(seed)
    empty = 0
    for begin in range(0, count, CHUNK):
        documents = [source.value() for _ in range(min(CHUNK, count - begin))]
        found = keys_of(cli, documents, canonical)
        if len(found) != len(documents):
            raise AssertionError(f"{len(found)} keys of {len(documents)} documents, seed {seed}")
        for document, key in zip(documents, found):
            expected = expected_key(document)
            if key != expected:
                raise AssertionError(f"seed {seed}: {document!r}: expected {expected}, got {key}")
            empty += not key
    return empty


def test_python_keys_are_those_of_python(cli):
    count = scaled(proof=1_000_000, usual=10_000)
    begin = time.monotonic()
    empty = compare(cli, "python", python_key, count, seed=20261115)
    if not 0 < empty < count / 50:
        raise AssertionError(f"{empty} of {count} documents had no key")
    print(f"# proof: documents, keys as Python makes them {count} {time.monotonic() - begin:.1f}s ok", flush=True)


def test_lossless_keys_are_those_of_the_oracle(cli):
    count = scaled(proof=200_000, usual=5_000)
    begin = time.monotonic()
    empty = compare(cli, "lossless", lossless_key, count, seed=8259)
    if empty:
        raise AssertionError(f"{empty} of {count} documents had no key")
    print(f"# proof: documents, lossless keys against Decimal {count} {time.monotonic() - begin:.1f}s ok", flush=True)


def rewritten(value, source):
    """The same value in another text."""
    if isinstance(value, Number):
        number = decimal.Decimal(value)
        sign, digits, exponent = number.as_tuple()
        longer = f"{'-' if sign else ''}{''.join(map(str, digits))}00e{exponent - 2}"
        return source.random.choice([str(value), f"{number:E}", f"{number}", longer if any(digits) else "-0.0"])
    if isinstance(value, str):
        return source.quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(source.blanks() + rewritten(item, source) for item in value) + "]"
    if isinstance(value, dict):
        names = list(value)
        source.random.shuffle(names)
        return "{" + ",".join(f"{source.quoted(n)}:{rewritten(value[n], source)}" for n in names) + source.blanks() + "}"
    return json.dumps(value)


def test_other_texts_of_a_value_have_its_key(cli):
    source = Documents(7)
    number = lambda lexeme: Number(plain_number(lexeme))  # noqa: E731
    documents = [source.value() for _ in range(scaled(proof=50_000, usual=3_000))]
    again = [rewritten(json.loads(text, parse_int=number, parse_float=number), source) for text in documents]
    for first, second, text, other in zip(
        keys_of(cli, documents, "lossless"), keys_of(cli, again, "lossless"), documents, again
    ):
        if first != second or not first:
            raise AssertionError(f"{text!r} and {other!r}: {first} and {second}")
