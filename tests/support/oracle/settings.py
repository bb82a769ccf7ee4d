"""Write the tables of Kafka's settings in broker/config/tables/ from the jars of two releases.

The command writes one file for Kafka 3.9.1 and one for Kafka 4.2.0. Each line of a file describes
one setting of the release, as Kafka's classes define it, in these columns, which are separated by
tabs:
- `table`: `broker`, `topic`, `group`, or `dynamic` for a broker setting that has an effect only
  when it is changed while the broker runs
- `name`: the name of the setting
- `type`: the name of its type, such as `int`, `list` or `string`
- `default`: its default as text; `(null)` if it has none
- `range`: the values that Kafka accepts; for a list, its allowed items. Empty: every value of the
  type. `|` separates alternatives, each of which is one of these:
    a value
    `LOW..HIGH`: a number from LOW to HIGH, both included; LOW or HIGH may be missing
    `TEXT+`: TEXT, followed by any text that is not empty
    `replicas`: a list of replicas, in the form `partition:broker,...`
  The range begins with `~` if upper and lower case are the same, and with `+` if a text or list
  must not be empty.
- `mode`: one of these letters:
    `r`: a broker setting that is fixed when the broker starts
    `b`: a broker setting that can be changed while the broker runs, but only for one broker at a
         time
    `c`: a broker setting that can be changed while the broker runs, for one broker or for all at
         once; or a setting of a topic or group, which can always be changed
  An `i` after the letter: an internal setting, which DescribeConfigs returns only if it is set.
- `place`: Kafka checks changed settings in a fixed order; this is the number of the setting in it,
  from 0. `broker` and `dynamic` share one order. Empty for mode `r`.
- `fallbacks`: the broker settings, separated by commas, from which this one takes its value if it
  is not set itself. The first of them that is set counts.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars

PROGRAM = Path(__file__).with_name("Settings.java")
TABLES = Path(__file__).resolve().parents[3] / "broker" / "config" / "tables"
COLUMNS = ("table", "name", "type", "default", "range", "mode", "place", "fallbacks")

_INTERVAL = re.compile(r"\[(-?[\d.]*?),?\.\.\.,?(-?[\d.]*)\]")
_VALUES = re.compile(r"(\(case insensitive\) )?\[(.*)\]")
_NOT_EMPTY = "(not empty) "
_IN_WORDS = {
    "(any)": "",
    "": "",  # an unrestricted list
    "non-null string": "",
    "non-empty list": "",
    "non-empty string": "+",
    "[1,...,9] or -1": "-1|1..9",
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...": "replicas",
    "[latest, earliest, by_duration:PnDTnHnMn.nS]": "latest|earliest|by_duration:+",
}


def range_of(validator: str) -> str:
    """Return the `range` column for the text of a Kafka validator. Raises ValueError if there is no translation."""
    if validator.startswith(_NOT_EMPTY):
        return "+" + range_of(validator.removeprefix(_NOT_EMPTY))
    if validator in _IN_WORDS:
        return _IN_WORDS[validator]
    if validator.startswith("The default value of -1 means"):  # LambdaValidator, in words: -1 or at least 1
        return "-1|1.."
    interval = _INTERVAL.fullmatch(validator)
    if interval is not None:
        return f"{interval[1]}..{interval[2]}"
    values = _VALUES.fullmatch(validator)
    if values is None or "..." in validator:
        raise ValueError(f"validator {validator!r} has no translation")
    return ("~" if values[1] else "") + "|".join(values[2].split(", "))


def table(version: str) -> str:
    """Return the table of a release as it is committed. Raises JarsMissing, ValueError."""
    command = ["java", "-cp", f"{kafka_jars(version)}/*", str(PROGRAM)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [
        f"# The settings of Apache Kafka {version}. Made by `python -m tests.support.oracle.settings`; do not edit.",
        "\t".join(COLUMNS),
    ]
    for line in output.splitlines():
        kind, name, type_name, default, validator, mode, place, fallbacks = line.split("\t")
        default = default.replace("(required)", "(null)")
        lines.append(
            "\t".join((kind, name, type_name.lower(), default, range_of(validator), mode, place, fallbacks)).rstrip(
                "\t"
            )
        )
    return "\n".join(lines) + "\n"


def path_of(version: str) -> Path:
    return TABLES / f"kafka-{version}.tsv"


def main(arguments: list[str] | None = None) -> int:
    """Write both tables. With `--check`, write nothing and return 1 if one is not current."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.oracle.settings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with status 1 if a table differs from the jars"
    )
    options = parser.parse_args(arguments)
    stale = []
    for version in (KAFKA_VERSION, NEWER_VERSION):
        path, text = path_of(version), table(version)
        if options.check:
            stale += [] if path.is_file() and path.read_text() == text else [path.name]
        else:
            path.write_text(text)
    if stale:
        sys.stderr.write(f"not current: {', '.join(stale)}; run python -m tests.support.oracle.settings\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
