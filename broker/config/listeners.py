"""Listener settings: parsing and checks of `NAME://host:port,…`, as Kafka writes them."""

from __future__ import annotations

import re
from typing import NamedTuple

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.config.java_text import java_items, java_split
from kafkaproto.broker.config.values import ConfigError

_LISTENER = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]/]*):(?P<port>[0-9]+)\Z")
DEFAULT_NAME = PLAINTEXT = "PLAINTEXT"
_PROTOCOLS = "listener.security.protocol.map"
_OTHER_PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MAP_EXAMPLE = "for example listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"


class Listener(NamedTuple):
    """One listener of a broker: the address that it is bound to, and the address that the broker advertises for it.

    An empty advertised_host, or an advertised_port of 0, stands for the host or port that the listener is bound to.
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


def address_text(host: str, port: int) -> str:
    """Return host:port, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_endpoints(setting: str, text: str) -> dict[str, tuple[str, int]]:
    """Return a dict of listener names to (host, port). Raises ConfigError for malformed text and for a repeated name.

    setting: the name of the setting, for the error message.
    """
    example = f"for example {setting}=INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:19092"
    endpoints: dict[str, tuple[str, int]] = {}
    for part in _items(text) or [text]:
        match = _LISTENER.match(part.strip())
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(
                f"{setting}={text}: {part.strip()!r} is not NAME://host:port with a port up to 65535; {example}"
            )
        name = match["name"].upper()
        if name in endpoints:
            raise ConfigError(f"{setting}={text}: listener {name} is named twice; give each name once, {example}")
        endpoints[name] = (match["host"].strip("[]"), int(match["port"]))
    return endpoints


def listeners_of(config: BrokerConfig, host: str, port: int) -> list[Listener]:
    """Return a broker's listeners: those in the setting `listeners`, or a single listener on `host`:`port` if it is not set.

    Their advertised addresses come from `advertised.listeners`. Listeners of controllers (`controller.listener.names`) are left out, because the
    broker does not open them. Raises ConfigError if no listener is left, or if another setting names a listener that does not exist (CF-18).
    """
    of_controllers = {
        name.strip().upper() for name in (_text_if_given(config, "controller.listener.names") or "").split(",")
    }
    text = _text_if_given(config, "listeners")
    endpoints = {DEFAULT_NAME: (host, port)} if text is None else parse_endpoints("listeners", text)
    bound = {name: address for name, address in endpoints.items() if name not in of_controllers}
    if not bound:
        raise ConfigError(
            f"listeners={text}: all of these listeners belong to controllers (controller.listener.names); add one for the broker, "
            f"for example listeners=PLAINTEXT://:9092,{text}"
        )
    _check_protocols(config, list(bound))
    advertised_text = _text_if_given(config, "advertised.listeners")
    advertised = {} if advertised_text is None else parse_endpoints("advertised.listeners", advertised_text)
    advertised = {name: address for name, address in advertised.items() if name not in of_controllers}
    if advertised_text is not None and not advertised:
        raise ConfigError(
            f"advertised.listeners={advertised_text}: all of these listeners belong to controllers (controller.listener.names); add one for "
            f"the broker, for example advertised.listeners={next(iter(bound))}://localhost:9092,{advertised_text}"
        )
    unknown = sorted(set(advertised) - set(bound))
    if unknown:
        raise ConfigError(
            f"advertised.listeners={advertised_text}: {unknown[0]} is not among the listeners {', '.join(bound)}; "
            f"for example advertised.listeners={next(iter(bound))}://localhost:9092"
        )
    _check_inter_broker_listener(config, list(bound if advertised_text is None else advertised))
    _check_early_start(config, list(endpoints))
    return [Listener(name, *address, *advertised.get(name, ("", 0))) for name, address in bound.items()]


def _check_protocols(config: BrokerConfig, names: list[str]) -> None:
    """Raise ConfigError unless each listener in `names` has the protocol PLAINTEXT, because this broker does not support TLS and SASL.

    The protocols are those in `listener.security.protocol.map`.
    """
    text = _text_if_given(config, _PROTOCOLS)
    protocols = {DEFAULT_NAME: PLAINTEXT} if text is None else {}
    for part in java_split(text or ""):
        name, colon, protocol = (piece.strip() for piece in part.rpartition(":"))
        if text and not (name and colon and protocol):
            raise ConfigError(f"{_PROTOCOLS}={text}: {part.strip()!r} is not NAME:PROTOCOL; {_MAP_EXAMPLE}")
        if text and protocol.upper() not in (PLAINTEXT, *_OTHER_PROTOCOLS):
            known = ", ".join((PLAINTEXT, *_OTHER_PROTOCOLS))
            raise ConfigError(f"{_PROTOCOLS}={text}: {protocol} is not a protocol of Kafka ({known}); {_MAP_EXAMPLE}")
        protocols[name.upper()] = protocol.upper()
    for name in names:
        # Without a map, a name that is no protocol needs no entry, because its protocol can only be PLAINTEXT.
        protocol = protocols.get(name, "" if text is not None or name in _OTHER_PROTOCOLS else PLAINTEXT)
        if protocol != PLAINTEXT:
            given_protocol = protocol or "none"
            raise ConfigError(
                f"listener {name} must have the protocol PLAINTEXT (got {given_protocol}): TLS and SASL are not served; {_MAP_EXAMPLE}"
            )


def _check_inter_broker_listener(config: BrokerConfig, advertised: list[str]) -> None:
    """Raise ConfigError if `inter.broker.listener.name` is set and is not an advertised listener, or is set with `security.inter.broker.protocol`."""
    setting, other = "inter.broker.listener.name", "security.inter.broker.protocol"
    text, protocol = _text_if_given(config, setting), _text_if_given(config, other)
    if text is None:
        return
    if protocol is not None:
        raise ConfigError(f"{setting}={text} and {other}={protocol} must not be set together; remove {other}")
    if text.upper() not in advertised:
        raise ConfigError(
            f"{setting}={text}: {text.upper() or 'an empty name'} is not among the advertised listeners {', '.join(advertised)}; "
            f"for example {setting}={advertised[0]}"
        )


def _check_early_start(config: BrokerConfig, names: list[str]) -> None:
    """Raise ConfigError unless all items of `early.start.listeners` are in `names`, the listeners of the broker and its controller."""
    setting = "early.start.listeners"
    text = _text_if_given(config, setting) or ""
    unknown = [item for item in _items(text) if item not in names]
    if unknown:
        raise ConfigError(
            f"{setting}={text}: {unknown[0]} is not among the listeners {', '.join(names)} (in upper case); for example {setting}={names[0]}"
        )


def _items(text: str) -> list[str]:
    """Return the items of a list of listeners without empty ones, which Kafka ignores before 4.0 (CF-23)."""
    return [item for item in java_items(text) if item]


def _text_if_given(config: BrokerConfig, name: str) -> str | None:
    return str(config[name]) if config.is_given(name) else None
