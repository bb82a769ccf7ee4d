"""Values of settings: parsing and checks of their text, and the text that Kafka writes for them."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from typing import Any

from kafkaproto.broker.config.definitions import Definitions, Setting, definitions_of
from kafkaproto.broker.config.java_text import java_double, java_items, java_trim
from kafkaproto.broker.config.release import DEFAULT_RELEASE

_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,20}\Z")
"""Matches a whole number of up to 20 decimal digits, also non-ASCII ones, as Java's `Long.parseLong` does. The range is not checked."""
LISTENER_PREFIX = "listener.name."
_SECURITY = ("ssl.", "sasl.", "principal.builder.class", "connections.max.reauth.ms")
_HOST = re.compile(r"[0-9A-Za-z\-%._:]+\Z")
_DURATION = re.compile(
    r"P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{1,9})?S)?)?", re.IGNORECASE
)
_BITS = {"short": 16, "int": 32, "long": 64}


class ConfigError(ValueError):
    """Raised for an invalid setting. The message is one line with the setting, the allowed values and the invalid value."""


def parse(setting: Setting, text: str, strict_kip: bool = True) -> Any:
    """Return the typed value of `text`. If `text` is invalid, raises ConfigError, which names the setting, the allowed values and `text`.

    strict_kip: whether to follow the KIPs and documentation where they differ from Kafka's code (D10).
    """
    value = _convert(setting, text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        too_low = setting.low is not None and value < setting.low
        too_high = setting.high is not None and value > setting.high
        if (too_low or too_high) and value != setting.special:
            raise _invalid_value_error(setting, text)
    elif not isinstance(value, bool):
        _check_text(setting, value, strict_kip)
    if setting.refusal is not None and setting.refusal.refuses(java_trim(text)):
        refusal = setting.refusal
        raise ConfigError(f'{setting.name} must be {refusal.accepted_in_words} (got "{text}"): {refusal.reason}')
    return value


def _check_text(setting: Setting, value: str, strict_kip: bool) -> None:
    """Raise ConfigError if the text of a setting of type string, list, password or class is not allowed. In a list, each item must be allowed.

    strict_kip: whether to follow the KIPs and documentation where they differ from Kafka's code (D10).
    """
    if setting.not_empty and not value:
        raise _invalid_value_error(setting, value)
    if setting.distinct and value and not all(java_items(value)):
        raise _invalid_value_error(setting, value)
    if setting.values and not (setting.kind == "list" and value == ""):  # a list may be empty
        items = java_items(value) if setting.kind == "list" else [value]
        if setting.any_case:
            items = [item.upper() for item in items]
        if not all(_is_among(item, setting) for item in items):
            raise _invalid_value_error(setting, value)
    if setting.items is not None and value != "*":
        form = setting.items[0 if strict_kip else 1]
        if not all(re.fullmatch(form, java_trim(item)) for item in java_items(value)):
            raise _invalid_value_error(setting, value)


def _is_among(item: str, setting: Setting) -> bool:
    """Return whether an item is one of the setting's allowed values.

    An allowed value with the form `prefix:+` stands for the prefix, a colon and any duration.
    """
    values = setting.values
    if setting.versions:
        parts = item.split(".")
        number = 3 if item.startswith("0.") else 2
        release = ".".join(parts[:number]) if len(parts) > number else item
        return any(value == release or value.startswith(f"{release}-IV") for value in values)
    prefix, colon, duration = item.partition(":")
    return item in values or (bool(colon) and f"{prefix}:+" in values and _DURATION.fullmatch(duration) is not None)


def _convert(setting: Setting, text: str) -> Any:
    text = java_trim(text)
    if setting.kind in _BITS:
        limit = 1 << (_BITS[setting.kind] - 1)
        if _WHOLE_NUMBER.match(text) is None or not -limit <= int(text) < limit:
            raise _invalid_value_error(setting, text)
        return int(text)
    if setting.kind == "double":
        value = java_double(text)
        if value is None:
            raise _invalid_value_error(setting, text)
        return value
    if setting.kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise _invalid_value_error(setting, text)
        return text.lower() == "true"
    return text


def _invalid_value_error(setting: Setting, text: str) -> ConfigError:
    return ConfigError(f'{setting.name} must be {setting.allowed} (got "{text}")')


def broker_setting(name: str, definitions: Definitions | None = None) -> Setting:
    """Return the definition of a broker setting, or of a listener's own setting such as `listener.name.internal.max.connections`.

    definitions: the settings of the emulated Kafka release; None for the settings of the default release. If only another release has the setting,
    the result has `foreign=True`, which marks a setting unknown to the emulated release; it accepts any text, because Kafka does not check settings
    that it does not know. Raises ConfigError if no release has it.
    """
    known = definitions or definitions_of(DEFAULT_RELEASE)
    setting = known_broker_setting(name, known)
    if setting is None:
        raise _unknown(known.broker, name, "broker setting")
    return setting


def known_broker_setting(name: str, definitions: Definitions) -> Setting | None:
    """Return the definition of a broker setting as `broker_setting` does, but None if no release has it.

    definitions: the definitions of the settings of the emulated Kafka release.
    """
    setting = definitions.broker.get(name) or _of_listener(name, definitions)
    if setting is not None:
        return setting
    setting = definitions.of_other_release.broker.get(name)
    if setting is not None:
        return Setting(name, "string", foreign=True)
    return None


def custom_setting(name: str, known: Definitions) -> Setting:
    """Return a definition for a broker setting that Kafka does not know. Clients may set such a setting on a running broker, to any text.

    known: the settings of the emulated release. `listener.name.<listener>.<setting>` gets the definition of <setting> if `known` contains <setting>.
    """
    if not name.startswith(LISTENER_PREFIX):
        return Setting(name, "string", foreign=True)
    base = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    setting = known.broker.get(base)
    if setting is None:
        return Setting(name, "string", foreign=True, fallbacks=(base,))
    return setting._replace(name=name, mode="b", acts=False, fixed_here=False, refusal=None, fallbacks=(base,))


def _of_listener(name: str, known: Definitions) -> Setting | None:
    """Return the definition for `listener.name.<listener>.<setting>`; None for another name, or if <setting> cannot be set for a listener.

    known: the definitions in which <setting> is looked up. A SASL mechanism may precede the setting (`ListenerConfigRegex`).
    """
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, _, base = name.removeprefix(LISTENER_PREFIX).partition(".")
    while listener and base:
        setting = known.broker.get(base)
        if setting is not None and (setting.per_listener or base.startswith(_SECURITY)):
            return setting._replace(name=name, fallbacks=(base,))
        base = base.partition(".")[2]
    return None


def topic_setting(name: str, definitions: Definitions | None = None) -> Setting:
    """Return the definition of a topic setting. Raises ConfigError for an unknown name.

    definitions: the settings of the emulated Kafka release; None for the settings of the default release.
    """
    known = definitions or definitions_of(DEFAULT_RELEASE)
    setting = known.topic.get(name)
    if setting is not None:
        return setting
    other = known.of_other_release
    if name in other.topic:
        raise ConfigError(
            f'unknown topic setting "{name}": it exists in Kafka {other.table}, but not in Kafka {known.table}, which this broker emulates; '
            f"remove the setting, or emulate Kafka {other.table}"
        )
    raise _unknown(known.topic, name, "topic setting")


def _unknown(table: Mapping[str, Setting], name: str, what: str) -> ConfigError:
    close = difflib.get_close_matches(name, table, n=1, cutoff=0.6)
    hint = f'did you mean "{close[0]}"?' if close else "`kafkaproto settings` lists the known ones"
    return ConfigError(f'unknown {what} "{name}"; {hint}')


def as_text(value: object) -> str | None:
    """Return the value of a setting as text, as Kafka writes it (`ConfigDef.convertToString`); None if the setting has no value."""
    if value is None:
        return None
    if isinstance(value, float):
        return _double_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _double_text(value: float) -> str:
    """Return a number as Java's `Double.toString` writes it: very large and very small numbers in the form `1.0E-4`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for text in (f"{value:.{digits}e}" for digits in range(1, 18)) if float(text) == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa}E{int(exponent)}"


def split_broker(key: str) -> tuple[int | None, str]:
    """Split the optional broker id off a setting's name: (2, "broker.rack") for `2.broker.rack`, (None, "broker.rack") for `broker.rack`."""
    head, dot, name = key.partition(".")
    return (int(head), name) if dot and head.isdecimal() else (None, key)


def check_topic_settings(
    overrides: Mapping[str, str], strict_kip: bool = True, definitions: Definitions | None = None
) -> None:
    """Raise ConfigError for the first unknown name or invalid value of a topic's settings.

    overrides: maps names to values. strict_kip: whether to follow the KIPs and documentation where they differ from Kafka's code (D10). definitions:
    the settings of the emulated Kafka release; None for the settings of the default release.
    """
    for name, text in overrides.items():
        parse(topic_setting(name, definitions), text, strict_kip)


def connection_overrides(text: str) -> dict[str, int]:
    """Return the maximum number of connections for each client address, parsed from `max.connections.per.ip.overrides`.

    Raises ConfigError if an entry is not `address:connections`.
    """
    overrides = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        host, _, count = item.rpartition(":")
        if not _HOST.match(host) or _WHOLE_NUMBER.match(count) is None or int(count) < 0:
            raise ConfigError(
                "max.connections.per.ip.overrides must be a list of address:connections, for example 127.0.0.1:10,::1:5 "
                f'(got "{text}")'
            )
        overrides[host] = int(count)
    return overrides
