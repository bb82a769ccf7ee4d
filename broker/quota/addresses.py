"""The IP addresses that name entities of quotas, in the spellings that Java's `InetAddress` accepts as literals (Q-22).

This module does not look up host names, because the broker must not wait for the network.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

LONGEST_IPV4 = 15
_IPV4 = re.compile(r"[0-9]+(?:\.[0-9]+){0,3}")
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an IPv4 or IPv6 address as Java does, without a name server. Returns None if `text` is not an address.

    An IPv4 address has one to four decimal numbers; the last number fills the remaining bytes: "1.2.3" is 1.2.0.3. Leading zeros do not make a
    number octal. An IPv6 address may be in brackets and have a zone; the zone is ignored. For an IPv4-mapped IPv6 address (`::ffff:1.2.3.4`), the
    IPv4 address is returned.
    """
    if _IPV4.fullmatch(text):
        return _parse_ipv4(text)
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    literal, percent, zone = text.partition("%")
    if percent and not zone:
        return None
    try:
        ipv6_address = IPv6Address(_LEADING_ZEROS.sub("", literal))
    except ValueError:
        return None
    return ipv6_address.ipv4_mapped or ipv6_address


def _parse_ipv4(text: str) -> IPv4Address | None:
    if len(text) > LONGEST_IPV4:
        return None
    *leading, last = (int(part) for part in text.split("."))
    free_bytes = 4 - len(leading)
    if any(part > 255 for part in leading) or last >= 256**free_bytes:
        return None
    return IPv4Address(bytes(leading) + last.to_bytes(free_bytes, "big"))


@lru_cache(maxsize=1024)
def canonical(address: str) -> str:
    """Return one spelling for all spellings of an IP address: 127.0.0.1 for `localhost` and for `::ffff:127.0.0.1`.

    Text that is neither `localhost` nor an address is returned unchanged.
    """
    if address == "localhost":
        return "127.0.0.1"
    ip_address = parse_address(address)
    return address if ip_address is None else str(ip_address)
