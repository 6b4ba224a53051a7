"""json_documents.py - JSON texts at random, written in every way that the grammar allows.

Numbers are drawn where readers differ: around powers of two and ten, half way between two doubles,
denormals, integers beyond 64 bits and beyond what Python reads; strings from all of Unicode, escaped
in every way, some of them long; member names that agree in their first bytes.
"""

import random
import struct

NAMES = [
    "id", "name", "a", "A", "", "prefixlong_a", "prefixlong_b", "prefixlo", "prefixlong_aa", "z", "10", "9",
    "\U0001f600", "\uffff", "\ue000", "é", "e\u0301", "a\x00", "\x7f", "/",
]  # fmt: skip
SPECIAL_NUMBERS = [
    "0", "-0", "0.0", "-0.0", "1.0", "10e-1", "1E5", "1e+5", "0e5", "-0e-9", "5e-324", "3e-324", "2e-324",
    "2.4703282292062328e-324", "2.4703282292062327e-324", "1e22", "1e23", "123456789012345680.0",
    "9007199254740991", "9007199254740993", "9007199254740993.0", "1.7976931348623157e308",
    "1.7976931348623159e308", "1e400", "2.2250738585072014e-308", "2.2250738585072011e-308",
    "0.1000000000000000055511151231257827", "1e16", "1e15", "0.0001", "0.00001", "12.50",
]  # fmt: skip


class Documents:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self):
        r = self.random
        kind = r.randrange(13)
        if kind < 3:
            return str(r.randrange(-10, 10000))
        if kind == 3:
            return str(r.getrandbits(r.randrange(1, 200)) * r.choice([1, -1]))
        if kind == 4:
            return f"{r.uniform(-1e4, 1e4):.{r.randrange(0, 8)}f}"
        if kind == 5:
            value = struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0]
            if value != value or abs(value) == float("inf"):
                return "1"
            return repr(value) if r.random() < 0.5 else f"{value:.{r.randrange(0, 25)}e}"
        if kind == 6:
            return f"{r.randrange(-999, 999)}e{r.randrange(-320, 290)}"
        if kind == 7:
            return r.choice(SPECIAL_NUMBERS) if r.random() < 0.99 else "7" * r.randrange(4299, 4303)
        if kind == 8:
            return f"{2.0 ** r.randrange(-1074, 1023):.{r.randrange(15, 40)}e}"
        if kind == 9:
            return "0." + "".join(r.choice("0123456789") for _ in range(r.randrange(1, 40)))
        if kind == 10:
            return f"{r.randrange(1, 10 ** r.randrange(1, 30))}.{'0' * r.randrange(1, 5)}"
        if kind == 11:  # half way between two doubles
            odd = 2 * (r.getrandbits(53) | 1 << 52) + 1
            return f"{odd}e0" if r.random() < 0.5 else f"{odd * 2 ** r.randrange(1, 60)}.0"
        digits = "".join(r.choice("0123456789") for _ in range(r.randrange(1, 60))).lstrip("0")
        return f"{digits}1.5e-{r.randrange(0, 100)}"

    def character(self):
        r = self.random
        kind = r.randrange(12)
        if kind < 5:
            return chr(r.randrange(32, 127))
        if kind == 5:
            return chr(r.randrange(0, 32))
        if kind == 6:
            return chr(r.randrange(0x7F, 0x800))
        if kind == 7:
            code = r.randrange(0x800, 0x10000)
            return chr(code) if not 0xD800 <= code < 0xE000 else "x"
        if kind == 8:
            return chr(r.randrange(0x10000, 0x110000))
        if kind == 9:
            return r.choice('"\\/\b\f\n\r\t\x7f\u2028\ufeff\ufffe')
        return r.choice("abcXYZ019_")

    def string(self):
        r = self.random
        if r.random() < 0.001:  # one thing over and over, and something else now and then
            unit = r.choice(["\x7f", "a\x7f", "x" * 63 + "\x7f", "\n", "é", "\U0001f600", "plain "])
            return (unit * r.randrange(200) + self.character()) * r.randrange(1, 20)
        return "".join(self.character() for _ in range(r.choice([0, 1, 2, 5, 8, 9, 17])))

    def escape(self, character):
        r = self.random
        if character in '"\\/' and r.random() < 0.6:
            return "\\" + character
        if character in "\b\f\n\r\t" and r.random() < 0.6:
            return "\\" + "bfnrt"["\b\f\n\r\t".index(character)]
        code = ord(character)
        units = [code] if code < 0x10000 else [0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)]
        text = "".join(f"\\u{unit:04x}" for unit in units)
        return "".join(c.upper() if c in "abcdef" and r.random() < 0.5 else c for c in text)

    def quoted(self, value):
        r = self.random
        parts = []
        for character in value:
            must = character in '"\\' or ord(character) < 32
            parts.append(self.escape(character) if must or r.random() < 0.1 else character)
        return '"' + "".join(parts) + '"'

    def blanks(self):
        return self.random.choice(["", "", "", "", "", "", " ", "  ", "\t", "\r", " \t"])

    def value(self, depth=0):
        r = self.random
        kind = r.randrange(10 if depth < 5 else 6)
        if kind < 2 or kind == 5:
            return self.number()
        if kind < 4:
            return self.quoted(self.string())
        if kind == 4:
            return r.choice(["true", "false", "null"])
        count = r.choice([0, 1, 2, 3, 5] if depth else [1, 2, 4, 7, 30])
        comma = "," + self.blanks()
        if kind < 8:
            return "[" + self.blanks() + comma.join(self.value(depth + 1) + self.blanks() for _ in range(count)) + "]"
        names = {self.string() if r.random() < 0.5 else r.choice(NAMES) for _ in range(count)}
        names = sorted(names)
        r.shuffle(names)
        members = (
            self.quoted(name) + self.blanks() + ":" + self.blanks() + self.value(depth + 1) + self.blanks()
            for name in names
        )
        return "{" + self.blanks() + comma.join(members) + "}"
