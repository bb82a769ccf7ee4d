"""Listener settings: `NAME://host:port,…` as Kafka writes them, parsed and checked. Text in, addresses out."""

from __future__ import annotations

import re
from typing import NamedTuple

from kafkaproto.broker.config.values import BrokerConfig, ConfigError

_ONE = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]/]*):(?P<port>[0-9]+)\Z")
DEFAULT_NAME = "PLAINTEXT"
_OTHER_PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MAP_EXAMPLE = "for example listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"


class Listener(NamedTuple):
    """One listener. advertised_host "" and advertised_port 0 mean: as bound."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


def parse_endpoints(setting: str, text: str) -> dict[str, tuple[str, int]]:
    """name -> (host, port). Raises ConfigError for what is malformed, or named or used twice."""
    example = f"for example {setting}=INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:19092"
    found: dict[str, tuple[str, int]] = {}
    for part in text.split(","):
        match = _ONE.match(part.strip())
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{setting}={text}: {part.strip()!r} is no NAME://host:port; {example}")
        name = match["name"].upper()
        if name in found:
            raise ConfigError(f"{setting}={text}: listener {name} is named twice; {example}")
        found[name] = (match["host"].strip("[]"), int(match["port"]))
    return found


def listeners_of(config: BrokerConfig, host: str, port: int) -> list[Listener]:
    """A broker's listeners: `listeners` and `advertised.listeners` if set, else one on `host`:`port`.

    Raises ConfigError when an advertised listener does not exist.
    """
    given = _given(config, "listeners")
    bound = {DEFAULT_NAME: (host, port)} if given is None else parse_endpoints("listeners", given)
    _check_protocols(config, list(bound))
    told_text = _given(config, "advertised.listeners")
    told = {} if not told_text else parse_endpoints("advertised.listeners", told_text)
    unknown = sorted(set(told) - set(bound))
    if unknown:
        raise ConfigError(
            f"advertised.listeners={told_text}: {unknown[0]} is not among the listeners {', '.join(bound)}; "
            f"for example advertised.listeners={next(iter(bound))}://localhost:9092"
        )
    return [Listener(name, *address, *told.get(name, ("", 0))) for name, address in bound.items()]


def _check_protocols(config: BrokerConfig, names: list[str]) -> None:
    """Every listener needs a protocol in the map, as in Kafka, and here that is PLAINTEXT while there is no TLS and no SASL."""
    text = _given(config, "listener.security.protocol.map")
    protocols = {DEFAULT_NAME: "PLAINTEXT"}
    for part in (text or "").split(","):
        name, colon, protocol = part.strip().partition(":")
        if part.strip() and not (name and colon and protocol):
            raise ConfigError(
                f"listener.security.protocol.map={text}: {part.strip()!r} is no NAME:PROTOCOL; {_MAP_EXAMPLE}"
            )
        protocols[name.upper()] = protocol.strip().upper()
    for name in names:
        # A name of one's own needs no entry as long as nobody gives a map: here it can only be PLAINTEXT.
        protocol = protocols.get(name, "" if text or name in _OTHER_PROTOCOLS else "PLAINTEXT")
        if protocol != "PLAINTEXT":
            said = f"is {protocol}" if protocol else "has no protocol that is served here"
            raise ConfigError(f"listener {name} {said}; allowed is PLAINTEXT, {_MAP_EXAMPLE}")


def _given(config: BrokerConfig, name: str) -> str | None:
    layers = config.cluster.layers(config.broker_id, name)
    return None if len(layers) == 1 else str(layers[0][0])
