#!/usr/bin/env python3
"""The schema digest, a second time: written from docs/digest.md, with nothing but the standard library.

    digest.py FILE...        the result of a list each; prints `FILE ITEM SHA256 ODDITY` for each item of a
                             short list, and `FILE set SHA256 -` for all of them together
    digest.py --lines FILE   a result a line; prints the same with line numbers for names

`tests/digest.rs` holds the program against it. To write the table of digests anew:

    cd tests/digest && python3 digest.py *.json > digests.txt
"""

import codecs
import hashlib
import json
import sys

LISTS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resource_templates"}
ODDITIES = ["duplicate_key", "lone_surrogate", "not_utf8", "non_finite", "inexact_number"]
LEFT_OUT = {
    "tools": [("_meta",), ("icons",)],
    "prompts": [("_meta",), ("icons",)],
    "resources": [("_meta",), ("icons",), ("size",), ("annotations", "lastModified")],
    "resource_templates": [("_meta",), ("icons",), ("annotations", "lastModified")],
}
# Lists of more items than this have only their set's line.
SHORT = 20
MAX_EXPONENT = 1 << 62


class Number(str):
    """A number as it was written."""


class Constant(str):
    """NaN, Infinity or -Infinity."""


class Pairs(list):
    """The members of an object, in their order, duplicates and all."""


def decimal(token):
    """(negative, digits, point) of ±0.DIGITS × 10^point, no zeros at either end of the digits."""
    negative = token.startswith("-")
    mantissa, _, exponent = token.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    size = exponent.lstrip("+-").lstrip("0")
    power = MAX_EXPONENT if len(size) > 19 else min(int(size or "0"), MAX_EXPONENT)
    power = -power if exponent.startswith("-") else power
    together = whole + fraction
    leading = len(together) - len(together.lstrip("0"))
    return negative, together.strip("0"), max(-MAX_EXPONENT, min(power + len(whole) - leading, MAX_EXPONENT))


def ecmascript(double):
    """ECMA-262, Number::toString; Python's repr gives the same shortest digits."""
    negative, digits, n = decimal(repr(double))
    k = len(digits)
    sign = "-" if negative else ""
    if k <= n <= 21:
        return sign + digits + "0" * (n - k)
    if 0 < n <= 21:
        return sign + digits[:n] + "." + digits[n:]
    if -6 < n <= 0:
        return sign + "0." + "0" * -n + digits
    exponent = f"e{n - 1:+d}"
    return sign + digits[0] + ("." + digits[1:] if k > 1 else "") + exponent


def number(token, odd):
    negative, digits, point = decimal(token)
    if not digits:
        return "0"
    double = float(token)
    if double not in (0.0, float("inf"), float("-inf")):
        text = ecmascript(double)
        is_integer = not any(c in ".eE" for c in token)
        if decimal(text) == (negative, digits, point) if is_integer else len(digits) <= 17:
            return text
    odd.add("inexact_number")
    sign = "-" if negative else ""
    if len(digits) <= point <= 400:
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}0.{digits}e{point}"


SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def string(text, odd):
    out = []
    for c in text:
        if c in SHORT_ESCAPES:
            out.append(SHORT_ESCAPES[c])
        elif c < " ":
            out.append(f"\\u{ord(c):04x}")
        elif "\ud800" <= c <= "\udfff":
            odd.add("lone_surrogate")
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def sort_key(member):
    return member[0].encode("utf-16-be", "surrogatepass")


def canonical(value, odd, left_out=()):
    if isinstance(value, Number):
        return number(value, odd)
    if isinstance(value, Constant):
        odd.add("non_finite")
        return str(value)
    if isinstance(value, Pairs):
        members = []
        for key, member in sorted(value, key=sort_key):
            within = [(path[1],) for path in left_out if path[0] == key and len(path) == 2]
            if (key,) in left_out:
                continue
            if within and isinstance(member, Pairs) and all((inner,) in within for inner, _ in member):
                continue
            members.append((key, string(key, odd) + ":" + canonical(member, odd, within)))
        if len({key for key, _ in members}) < len(members):
            odd.add("duplicate_key")
        return "{" + ",".join(text for _, text in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(element, odd) for element in value) + "]"
    if isinstance(value, str):
        return string(value, odd)
    return {None: "null", True: "true", False: "false"}[value]


def each_byte(error):
    """U+FFFD for each byte that is no UTF-8."""
    each_byte.count += error.end - error.start
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("each_byte", each_byte)


def read(raw):
    return json.loads(raw, parse_int=Number, parse_float=Number, parse_constant=Constant, object_pairs_hook=Pairs, strict=True)


def lines_of(name, raw):
    each_byte.count = 0
    result = read(raw.decode("utf-8", "each_byte"))
    # Which item the bytes stood in is not known here; the tables have one item in such a file.
    invalid = each_byte.count > 0
    lines, hashes = [], []
    for key, items in dict(result).items():
        if key not in LISTS:
            continue
        kind = LISTS[key]
        for n, item in enumerate(items):
            odd = {"not_utf8"} if invalid else set()
            text = canonical(item, odd, LEFT_OUT[kind])
            digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
            hashes.append(f"{kind} {digest}\n")
            lines.append(f"{name} {n} {digest} {next((o for o in ODDITIES if o in odd), '-')}")
    together = hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()
    return (lines if len(lines) <= SHORT else []) + [f"{name} set {together} -"]


def main(arguments):
    sys.setrecursionlimit(100_000)
    if arguments[:1] == ["--lines"]:
        with open(arguments[1], "rb") as file:
            documents = [(str(n), raw) for n, raw in enumerate(file.read().split(b"\n")) if raw]
    else:
        documents = [(path.rsplit("/", 1)[-1], open(path, "rb").read()) for path in arguments]
    for name, raw in documents:
        print("\n".join(lines_of(name, raw)))


if __name__ == "__main__":
    main(sys.argv[1:])
