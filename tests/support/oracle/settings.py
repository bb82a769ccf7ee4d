"""Write the tables of Kafka's settings in broker/config/tables/ from the jars of two releases.

`Settings.java` prints the settings of a release. A table has one setting per line and these
columns, separated by tabs:
- `table`: `broker`, `dynamic` (broker settings that act only when set on a running broker), `topic`
  or `group`
- `name`: the name of the setting
- `type`: its type, as DescribeConfigs names it
- `default`: its default as text; `(null)` if it has none
- `range`: the allowed values, or the allowed items of a list; empty if every value of the type is
  allowed. A `|` separates alternatives. An alternative is one of these:
    a value
    `LOW..HIGH`: a number from LOW to HIGH, both included; LOW or HIGH may be missing
    `TEXT+`: TEXT, followed by any text that is not empty
    `replicas`: a list of replicas, in the form `partition:broker,...`
  A `~` at the start says that upper and lower case are the same. A `+` at the start says that the
  text or the list must not be empty; alternatives, if there are any, follow it.
- `mode`: when the value may change: `r`: never, it is fixed when the broker starts; `b`: while the
  broker runs, for one broker at a time; `c`: the same, for one broker or for all of them. An `i`
  after this letter says that the setting is internal: DescribeConfigs returns it only if it is set.
- `place`: where the value stands in the order in which Kafka checks the values of a change, from 0;
  `broker` and `dynamic` have one order together. Empty if the value cannot change at run time.
- `fallbacks`: broker settings that replace this one if it is not set; the first of them that is set
  applies
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
