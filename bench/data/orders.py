# SPDX-License-Identifier: Apache-2.0
"""orders.py > orders.ndjson - 64 order events of exactly 1,024 bytes, as a shop would send them.

Members in the order in which a program writes them, not sorted; no blanks; strings, amounts with
cents, integers, true, false and null; accents, one escape; three levels. No two are alike, so that a
processor cannot learn one by heart.
"""

import json
import random

COUNT, SIZE = 64, 1024
NAMES = ["Amélie Durand", "Jürgen Groß", "Ann Lee", "José García", "Olga Petrova", "Bo Ek", "Mary O'Neill"]
STREETS = ["12 rue de la République", "Hauptstraße 5", "1 Infinite Loop", "Calle Mayor 101", "Storgata 3"]
CITIES = [("Lyon", "69002", "FR"), ("Köln", "50667", "DE"), ("Oslo", "0155", "NO"), ("Madrid", "28013", "ES")]
ITEMS = ["Mechanical keyboard, ISO-FR", '27" monitor, 1440p', "USB-C cable 2 m", "Desk lamp", "Notebook A5, ruled"]
WORDS = "please ring twice the dog is friendly leave it with the neighbour on the second floor thank you".split()


def order(r, number):
    name = r.choice(NAMES)
    city, code, country = r.choice(CITIES)
    return {
        "orderId": f"ORD-2026-{number:09}",
        "customer": {
            "id": r.randrange(10**6),
            "name": name,
            "email": f"{name.split()[0].lower()}@example.com".encode("ascii", "ignore").decode(),
            "address": {"street": r.choice(STREETS), "city": city, "zip": code, "country": country},
        },
        "placedAt": f"2026-11-{r.randrange(1, 31):02}T{r.randrange(24):02}:{r.randrange(60):02}:15.{r.randrange(1000):03}Z",
        "currency": "EUR",
        "total": r.randrange(1000, 500000) / 100,
        "discount": r.choice([0, 0.05, 0.1]),
        "paid": r.random() < 0.8,
        "coupon": r.choice([None, f"WELCOME{r.randrange(100)}"]),
        "items": [
            {"sku": f"{r.choice('KMCDN')}{r.choice('BNLP')}-{r.randrange(10000):04}", "title": r.choice(ITEMS),
             "quantity": r.randrange(1, 5), "price": r.randrange(500, 40000) / 100, "tax": r.randrange(100, 7000) / 100}
            for _ in range(r.choice([2, 3]))
        ],
        "shipping": {"method": "express", "carrier": "DHL", "price": 19.95, "trackable": True},
        "tags": r.sample(["web", "returning", "gift", "mobile", "b2b"], 3),
        "source": "checkout-service",
        "version": r.randrange(1, 20),
        "trace": {"id": f"{r.getrandbits(128):032x}", "parent": f"{r.getrandbits(64):016x}", "attempt": 1},
        "notes": "",
    }  # fmt: skip


def text(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def main():
    r = random.Random(1)
    made = 0
    while made < COUNT:
        document = order(r, made)
        room = SIZE - len(text(document).encode())
        if room < 8:
            continue
        words = " ".join(r.choice(WORDS) for _ in range(room))
        document["notes"] = words[:room].strip().ljust(room, ".")
        assert len(text(document).encode()) == SIZE
        print(text(document))
        made += 1


main()
