"""Files of settings: parsing of a `server.properties` as by `java.util.Properties.load`, and checks of each setting."""

from __future__ import annotations

import codecs
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kafkaproto.arguments import did_you_mean
from kafkaproto.broker.config.definitions import Definitions, Setting
from kafkaproto.broker.config.values import ConfigError, broker_setting, parse, split_broker

logger = logging.getLogger("kafkaproto")

_MARKS = {
    codecs.BOM_UTF8: "in UTF-8 with a byte order mark",
    codecs.BOM_UTF16_LE: "in UTF-16",
    codecs.BOM_UTF16_BE: "in UTF-16",
}
"""Maps the byte order mark at the start of a file to words for the encoding in an error message, such as "in UTF-16"."""
_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = "0123456789abcdefABCDEF"


class Property(NamedTuple):
    """One setting in a properties file. line: the number of the line on which it begins, counted from 1."""

    name: str
    value: str
    line: int


def settings_of_file(
    path: str | os.PathLike[str], definitions: Definitions, warn: Callable[[str], None] = logger.warning
) -> dict[str, str]:
    """Return the settings in a file as a dict of names to values. The name `2.broker.rack` stands for `broker.rack` of broker 2.

    definitions: the known settings. If two lines have the same name, the later one wins. A setting that is not known is left out, as Kafka ignores
    it. warn: called once for each such setting, with a text that contains the file, the line and a similar known name, if any.

    Raises ConfigError if the file cannot be read or is encoded in UTF-16 or with a byte order mark. Also raises it for a malformed escape and for an
    invalid value; these messages contain the line number.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ConfigError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None
    _check_encoding(content, path)
    settings: dict[str, str] = {}
    unknown: set[str] = set()
    try:
        for entry in properties(content.decode("latin-1")):  # as Java reads such a file
            name = split_broker(entry.name)[1]
            setting = _definition_of(name, definitions)
            if setting is not None:
                _check(entry, setting)
                settings[entry.name] = entry.value
            elif name not in unknown:
                unknown.add(name)
                hint = did_you_mean(name, definitions.broker)
                warn(f'{os.fspath(path)}:{entry.line}: the unknown broker setting "{name}" is ignored{hint}')
    except _InvalidLine as error:
        raise ConfigError(f"{os.fspath(path)}:{error.line}: {error}") from None
    return settings


def _check_encoding(content: bytes, path: str | os.PathLike[str]) -> None:
    """Raise ConfigError if a file starts with a byte order mark or contains zero bytes, as a file in UTF-16 does. path: the file, for the error."""
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    if encoding is None and b"\0" in content:
        encoding = "with zero bytes, as UTF-16 has them"
    if encoding is not None:
        raise ConfigError(
            f"{os.fspath(path)}: the file is encoded {encoding}; save it as ASCII or ISO-8859-1, or as UTF-8 without a byte order mark"
        )


def _definition_of(name: str, definitions: Definitions) -> Setting | None:
    try:
        return broker_setting(name, definitions)
    except ConfigError:
        return None


def _check(entry: Property, setting: Setting) -> None:
    """Raise _InvalidLine if a line of a file sets an invalid value. entry: the line. setting: the definition of the setting."""
    try:
        parse(setting, entry.value)
    except ConfigError as error:
        raise _InvalidLine(entry.line, str(error)) from None


def combined(*layers: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of several sources in one dict. If two sources have the same setting, the later source wins.

    layers: the sources, each mapping "name" or "<broker id>.name" to a value. A setting for all brokers in a later source also replaces the setting
    for a single broker in an earlier source.
    """
    settings: dict[str, str] = {}
    for layer in layers:
        for_all = {name for name in layer if split_broker(name)[0] is None}
        settings = {key: value for key, value in settings.items() if split_broker(key)[1] not in for_all}
        settings |= layer
    return settings


class _InvalidLine(ValueError):
    """Raised for a line of a properties file with a malformed escape or an invalid value."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def properties(text: str) -> Iterator[Property]:
    r"""Yield the entries of a properties file.

    A line whose first non-blank character is `#` or `!` is a comment. The name ends at the first `=`, `:` or blank without a backslash before it. The
    value begins after this separator and the blanks around it; blanks at the end of the value are part of it. A line that ends with an odd number of
    backslashes continues on the next line, whose leading blanks are skipped. In names and values, `\t`, `\n`, `\r`, `\f` and `\uXXXX` are escapes as
    in Java; before any other character, a backslash is dropped.
    """
    for number, line in _logical_lines(text):
        end = 0
        while end < len(line) and line[end] not in "=:" + _BLANKS:
            end += 2 if line[end] == "\\" else 1
        value_text = line[end:].lstrip(_BLANKS)
        if value_text[:1] in ("=", ":"):
            value_text = value_text[1:].lstrip(_BLANKS)
        yield Property(_unescaped(line[:end], number), _unescaped(value_text, number), number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry of a properties file as (number of its first line, text); the lines of an entry are joined to one.

    Comments and blank lines are skipped, and the blanks at the start of every line are removed.
    """
    entry, first = "", 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        line = line.lstrip(_BLANKS)
        if not entry:
            if not line or line[0] in "#!":
                continue
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        entry += line[: len(line) - backslashes % 2]
        if not backslashes % 2 or number == len(lines):
            yield first, entry
            entry = ""


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    characters = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                if len(digits) < 4 or any(digit not in _HEX_DIGITS for digit in digits):
                    raise _InvalidLine(
                        line,
                        f"malformed escape \\u{digits}: \\u must be followed by four hexadecimal digits, as in \\u00e9",
                    )
                character = chr(int(digits, 16))
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        characters.append(character)
    return "".join(characters)
