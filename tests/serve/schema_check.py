"""schema_check.py - does a document keep to a JSON Schema? As much of it as /openapi.json uses; the rest is an error."""

import re

KNOWN = {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "oneOf", "anyOf", "allOf"}
KNOWN |= {"$ref", "minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern", "format", "description"}
KNOWN |= {"contentEncoding"}

TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def faults(schema, value, root, path="$"):
    """What is wrong with value, as sentences; none: nothing."""
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{path}: the schema has {unknown}, which is not known here"]
    if "$ref" in schema:
        return faults(resolve(schema["$ref"], root), value, root, path)
    found = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[name](value) for name in types):
        return [f"{path}: {value!r} is no {' or '.join(types)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: {value!r} is not {schema['const']!r}")
    for name in ("oneOf", "anyOf", "allOf"):
        if name in schema:
            found += combined(name, schema[name], value, root, path)
    if isinstance(value, str):
        found += text_faults(schema, value, path)
    elif isinstance(value, dict):
        found += object_faults(schema, value, root, path)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            found.append(f"{path}: {len(value)} items")
        for index, item in enumerate(value):
            found += faults(schema.get("items", {}), item, root, f"{path}[{index}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(f"{path}: {value} is out of range")
    return found


def resolve(ref, root):
    node = root
    for part in ref.removeprefix("#/").split("/"):
        node = node[part]
    return node


def combined(name, schemas, value, root, path):
    counts = [not faults(schema, value, root, path) for schema in schemas]
    good = {"oneOf": sum(counts) == 1, "anyOf": any(counts), "allOf": all(counts)}[name]
    return [] if good else [f"{path}: {sum(counts)} of {len(counts)} of {name} fit {value!r}"]


def text_faults(schema, value, path):
    found = []
    if not schema.get("minLength", 0) <= len(value.encode()) <= schema.get("maxLength", len(value.encode())):
        found.append(f"{path}: {len(value)} characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} does not match {schema['pattern']}")
    if schema.get("format") == "date-time" and not TIME.fullmatch(value):
        found.append(f"{path}: {value!r} is not a time")
    return found


def object_faults(schema, value, root, path):
    found = [f"{path}: {name!r} is missing" for name in schema.get("required", []) if name not in value]
    properties = schema.get("properties", {})
    for name, member in value.items():
        if name in properties:
            found += faults(properties[name], member, root, f"{path}.{name}")
        elif schema.get("additionalProperties", True) is False:
            found.append(f"{path}: {name!r} is not in the schema")
    return found
