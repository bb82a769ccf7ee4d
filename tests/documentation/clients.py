"""The page of what client libraries do with each release, made from the outcomes that the tests compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tests.support.by_release import expected
from tests.support.by_release.programs.tasks import MISSING, WAITS, WORKS
from tests.support.by_release.real import VERSIONS
from tests.support.by_release.running import TASKS

MOST_CHARACTERS = 100
"""Longest text of an error in the table."""
TASK_TEXTS = {
    "connect": "get the partitions of a topic",
    "produce": "write a record with `acks=all`, without idempotence",
    "idempotent produce": "write a record with an idempotent producer",
    "consume": "read a topic without a group",
    "group": "read as a member of a group, commit an offset, leave; the next member resumes at this offset",
    "new group": "the same as *group*, with the group protocol of KIP-848 (`group.protocol=consumer`)",
    "transaction": "write a record in a transaction, commit it, and read it with `read_committed`",
    "offsets in a transaction": "the same as *transaction*, and commit an offset of a group in it",
    "describe cluster": "get the addresses of the brokers from the admin client",
    "list topics": "list the topics with the admin client",
    "create topic": "create a topic with the admin client",
    "add partitions": "increase the number of partitions with the admin client",
    "describe configs": "get the settings of a topic from the admin client",
}
NAMES = {"java": "Java client"}
"""Names of clients in the table that are not their names in the tests."""
SHOWN_APIS = ("ApiVersions", "Metadata", "Produce", "Fetch", "JoinGroup", "OffsetCommit", "InitProducerId", "EndTxn")

NEW_GROUP, NEW_GROUP_API = "new group", "ConsumerGroupHeartbeat"
"""A task, and the API without which a client that does it has used another protocol."""

Table = Callable[[Iterable[str], Iterable[Iterable[str]]], str]


def page(table: Table) -> Iterator[str]:
    """Yield the parts of the page. table: makes a Markdown table."""
    outcomes = expected.load()
    *older, newest = VERSIONS.values()
    yield "# Clients by release"
    yield (
        "These client libraries do the same tasks with brokers of five releases (`--release`). Each task ends as it does with a real Kafka of that\n"
        f"release ({', '.join(older)} or {newest}), down to the text of an error. `make test-all` checks that this broker gives the\n"
        "results below in every release, and the real Kafka of the last two. The part *clients-by-release* of [the long run](../long-run.md) checks\n"
        "all five releases of Kafka (`python -m tests.support.by_release --real`).\n\n"
        "The tasks:\n"
    )
    for task in TASKS:
        yield f"- *{task}*: {TASK_TEXTS[task]}."
    yield (
        "\nA cell names the tasks that do not work, with the beginning of what the client says. *Waits* means that the client reports no error\n"
        "within 12 s. *Not in the client* means that the client has no such function. *Uses the classic protocol*: the task works, because the\n"
        "client falls back to the protocol that the brokers have.\n"
    )
    yield table(("client", *expected.RELEASES), _rows(outcomes, _cell))
    yield "## Versions of APIs\n"
    yield (
        "The highest version of these APIs that each client uses with a release. kafka-python also logs the release that it infers from them:\n"
        f"{_inferred(outcomes)}.\n"
    )
    yield table(("client", *expected.RELEASES), _rows(outcomes, _versions))


def _rows(outcomes: Mapping[str, expected.Expected], cell: Callable[[expected.Expected], str]) -> Iterator[list[str]]:
    versions = expected.versions_of_clients()
    for client, entry in outcomes.items():
        yield [f"{NAMES.get(client, client)} {versions[client]}", *map(cell, entry["releases"].values())]


def _cell(expectation: expected.Expected) -> str:
    parts = [f"*{task}*: {_shown(outcome)}" for task, outcome in expectation["tasks"].items() if outcome != WORKS]
    cell = ["all but", *parts] if parts else ["all tasks"]
    if expectation["tasks"][NEW_GROUP] == WORKS and NEW_GROUP_API not in expectation["versions"]:
        cell.append(f"*{NEW_GROUP}*: uses the classic protocol")
    return "<br>".join(cell)


def _shown(outcome: str) -> str:
    return {MISSING: "not in the client", WAITS: "waits"}.get(outcome) or f"`{shortened(outcome)}`"


def shortened(text: str) -> str:
    """Return the first sentence of an error, cut at a word if it is long."""
    sentence = text.partition(" <- ")[0].partition(". ")[0].rstrip(".")
    if len(sentence) <= MOST_CHARACTERS:
        return sentence
    return sentence[: MOST_CHARACTERS + 1].rpartition(" ")[0] + " …"


def _versions(expectation: expected.Expected) -> str:
    versions = expectation["versions"]
    return "<br>".join(f"{api} {versions[api]}" for api in SHOWN_APIS)


def _inferred(outcomes: Mapping[str, expected.Expected]) -> str:
    notes = [expectation["note"] for expectation in outcomes["kafka-python"]["releases"].values()]
    return ", ".join(f'"{note}"' for note in notes)
