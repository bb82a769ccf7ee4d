"""The command `kafkaproto settings`: lists the settings of a Kafka release, and the effect of each in this broker."""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkaproto.broker.config.definitions import Definitions, Setting, definitions_of
from kafkaproto.broker.config.effects import NARROWER, NOTES
from kafkaproto.broker.config.release import DEFAULT_RELEASE, RELEASES
from kafkaproto.broker.server.options import Parser, one_of

MOST_VALUES = 8
_CHANGES = {"r": "start", "b": "broker", "c": "dynamic"}
_HEADS = ("name", "type", "changes", "effect", "default", "allowed")

DESCRIPTION = """List the settings of Kafka's brokers, topics and groups, and the effect of each in this broker.

Columns:
  changes  when a client may change the value, for example with kafka-configs:
             start    never: the value is fixed when the broker starts
             broker   while the broker runs, but only for one broker at a time
             dynamic  at any time; a broker setting for one broker or for all brokers at once
  effect   what the setting does in this broker:
             acts     works as in Kafka, with the values in the last column
             none     this broker accepts and reports the values that Kafka allows, but ignores them
             refused  this broker rejects some values that Kafka allows
  allowed  the values that this broker accepts, if it does not accept every value of the type;
           for a refused setting, also the reason; "(Kafka: ...)" if Kafka accepts more
"""
RELEASES_HELP = """Releases before 4.0 have the settings and defaults of Kafka 3.9.1, later releases those of
Kafka 4.2.0."""
EXAMPLES = [
    ("all settings of Kafka 3.9", "kafkaproto settings"),
    ('settings with "retention" in their name', "kafkaproto settings retention"),
    ("settings whose name begins with log. and ends with .ms", "kafkaproto settings 'log.*.ms'"),
    ('settings of Kafka 4.2 with "group" in their name', "kafkaproto settings --release 4.2 group"),
]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options of `kafkaproto settings`."""
    settings_parser = Parser(
        prog="kafkaproto settings",
        description=DESCRIPTION,
        epilog=RELEASES_HELP,
        examples=EXAMPLES,
    )
    settings_parser.add_argument(
        "pattern",
        nargs="?",
        default="",
        metavar="PATTERN",
        help="part of a name, or a whole name in which * stands for any text (default: all settings)",
    )
    settings_parser.add_argument(
        "--release",
        type=one_of("Kafka release", RELEASES),
        default=DEFAULT_RELEASE,
        metavar="RELEASE",
        help="Kafka release whose settings and defaults are listed, 0.9 to 4.2 (default: 3.9)",
    )
    return settings_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the settings. Returns the exit status: 0, or 1 if no setting matches the pattern, after naming the most similar one on stderr."""
    options = parser().parse_args(arguments)
    definitions = definitions_of(options.release)
    lines = list(_lines(definitions, options.pattern))
    if not lines:
        names = [*definitions.broker, *definitions.topic, *definitions.group]
        close = difflib.get_close_matches(options.pattern, names, n=1, cutoff=0.6)
        hint = f'; did you mean "{close[0]}"?' if close else "; kafkaproto settings without a pattern lists all"
        sys.stderr.write(f'kafkaproto settings: no setting matches "{options.pattern}"{hint}\n')
        return 1
    try:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; Python would complain again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _lines(definitions: Definitions, pattern: str) -> Iterator[str]:
    tables = {"Broker": definitions.broker, "Topic": definitions.topic, "Group": definitions.group}
    matching = {name: _matching(table, pattern) for name, table in tables.items()}
    for number, (name, settings) in enumerate((n, s) for n, s in matching.items() if s):
        yield from [""] if number else []
        yield f"{name} settings of Kafka {definitions.table}"
        yield from _columns([_HEADS, *map(row, settings)])


def _matching(table: Mapping[str, Setting], pattern: str) -> list[Setting]:
    glob = pattern if "*" in pattern else f"*{pattern}*"
    return [setting for name, setting in sorted(table.items()) if fnmatch.fnmatchcase(name.lower(), glob.lower())]


def row(setting: Setting) -> tuple[str, ...]:
    """Return the table cells for one setting: name, type, when it can change, effect, default, allowed values.

    If this broker rejects values that Kafka accepts, the last cell says which values it rejects and why, instead of the allowed values.
    """
    default = "(none)" if setting.default_text is None else setting.default_text or '""'
    effect = "refused" if setting.refusal else "acts" if setting.acts else "none"
    allowed = str(setting.refusal) if setting.refusal else _allowed(setting)
    change = "start" if setting.fixed_here else _CHANGES[setting.mode]
    return (setting.name, setting.kind, change, effect, default, allowed)


def _allowed(setting: Setting) -> str:
    """Return the allowed values of a setting in a few words; empty if every value of the type is allowed."""
    if setting.name in NOTES:
        return NOTES[setting.name]
    if setting.values:
        values = setting.values
        shown_values = values if len(values) <= MOST_VALUES else (*values[:2], "...", values[-1])
        return " | ".join(shown_values) + (", not empty" if setting.not_empty else "")
    if setting.items is not None:
        return "* | partition:broker,..."
    if setting.not_empty:
        return "not empty"
    special = "" if setting.special is None else f"{setting.special} or "
    if setting.low is None:
        return ""
    if setting.high is None or setting.high + 1 in (2**15, 2**31, 2**63):  # the limit of the type
        interval = f"{special}{setting.low} or more"
    else:
        interval = f"{special}{setting.low} to {setting.high}"
    return interval + (f" (Kafka: {NARROWER[setting.name]})" if setting.name in NARROWER else "")


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    """Yield the rows of a table with aligned columns. Values longer than 60 characters do not widen their column."""
    widths = [max((len(text) for text in column if len(text) <= 60), default=0) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
