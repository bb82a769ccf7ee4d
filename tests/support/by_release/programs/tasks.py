"""The tasks of the programs that try a client library with a broker; `Tasks.java` and `go/main.go` run the same.

A program gets the addresses of the brokers and a name as arguments. It runs all tasks side by side, because a refused one often waits for a
timeout. For each it prints one line, a JSON object with `task`, `outcome` and `note`. `outcome` is "works", "missing" if the client has no such
function, "waits" if it reports nothing, or else the name and the text of its error. `note` is what the client says about the broker's version,
or null. The cluster has the topic `given` with the values 0 to 9 in partition 0, and an empty topic `NAME-TASK` for each task that writes.

- connect: get the partitions of `given`
- produce: write a value with acks=all, without idempotence, into the task's topic
- idempotent produce: the same with an idempotent producer
- consume: read the ten values of `given` without a group
- group: as the only member of a group, read `given` and commit offset 4; the next member must begin to read there
- new group: the same with the group protocol of KIP-848
- transaction: write a value into the task's topic in a transaction, commit it, and read it with read_committed
- offsets in a transaction: the same, and commit offset 7 of `given` for the group `NAME-offsets` in the transaction
- describe cluster: get the addresses of the brokers
- list topics: find `given` among the names of all topics
- create topic: create the topic `NAME-created` with two partitions
- add partitions: increase the partitions of `NAME-partitions` to two
- describe configs: get the settings of `given`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

PATIENCE_SECONDS = 12.0
"""How long a task waits for anything that the client does."""
BROKERS = 3
GIVEN = "given"
VALUES = [str(number) for number in range(10)]
RESUME_AT = 4
OFFSET_IN_TRANSACTION = 7
WORKS, MISSING, WAITS = "works", "missing", "waits"


class Missing(Exception):
    """Raised for a task that the client has no function for."""


class Waits(Exception):
    """Raised if the client neither does the task nor reports an error."""


def check(values: list[str], expected: list[str]) -> None:
    """Raise AssertionError if the values that a client read are wrong."""
    assert values == expected, f"read {values}"


def arguments() -> tuple[str, str]:
    """Return the addresses of the brokers and the name of the program's topics and groups."""
    bootstrap, name = sys.argv[1:]
    return bootstrap, name


def report(task: str, outcome: str, note: str | None = None) -> None:
    """Print the outcome of a task."""
    sys.stdout.write(json.dumps({"task": task, "outcome": outcome, "note": note}) + "\n")
    sys.stdout.flush()


def text_of(error: Exception) -> str:
    """Return the outcome of a task that raised this error. The name of the error is not repeated if its text begins with it."""
    if isinstance(error, Missing | Waits):
        return MISSING if isinstance(error, Missing) else WAITS
    name, text = type(error).__name__, str(error)
    return text if text.startswith(name) else f"{name}: {text}"


def carry_out(tasks: dict[str, Callable[[], str | None]], text: Callable[[Exception], str] = text_of) -> None:
    """Run each task in a thread and report its outcome. A task returns its note. text: returns the outcome for an error."""

    def attempt(task: str) -> None:
        try:
            note = tasks[task]()
        except Exception as error:  # noqa: BLE001  whatever the client raises is the outcome
            report(task, text(error))
        else:
            report(task, WORKS, note)

    with ThreadPoolExecutor(len(tasks)) as threads:
        list(threads.map(attempt, tasks))
