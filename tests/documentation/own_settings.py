"""The section of the settings page about the settings that exist only in this broker: a sentence about the effect of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafkaproto.broker.config.definitions import Definitions
from kafkaproto.broker.config.effects import OWN
from kafkaproto.broker.server.settings_command import row
from tests.documentation.markdown import table

NAMES = tuple(name for name, *_ in OWN)
EFFECTS = {
    "kafkaproto.client.telemetry.enable": (
        "The broker advertises client telemetry (KIP-714) and keeps the metrics that clients push; "
        "`telemetry()` of the test API returns them ([AD-10, AD-37](../rules/admin.md))."
    ),
    "kafkaproto.group.load.ms": (
        "For this time after a broker becomes the leader of a partition of `__consumer_offsets`, it is "
        "loading the groups of this partition: most requests about them get COORDINATOR_LOAD_IN_PROGRESS "
        "([GC-9](../rules/groups.md))."
    ),
    "kafkaproto.producer.id.block.ms": (
        "A broker waits this long for each block of 1,000 producer ids. Without an id left, it rejects "
        "InitProducerId with COORDINATOR_LOAD_IN_PROGRESS until the block arrives "
        "([TX-11](../rules/transactions.md))."
    ),
    "kafkaproto.replica.delay.ms": (
        "A follower fetches new records this long after the leader appended them, so that a produce request "
        "with `acks=all` takes at least this long. `slow()` of a follower in the test API replaces it for one"
        " replica."
    ),
    "kafkaproto.transaction.completion.ms": (
        "The coordinator waits this long after its decision to commit or abort before it writes the markers "
        "([TX-39](../rules/transactions.md))."
    ),
    "kafkaproto.transaction.load.ms": (
        "For this time after a broker becomes the leader of a partition of `__transaction_state`, it is "
        "loading the transactions of this partition: requests about them get COORDINATOR_LOAD_IN_PROGRESS "
        "([TX-3](../rules/transactions.md))."
    ),
}
"""Maps each setting of `OWN` to what it does."""


def section(definitions: Definitions) -> Iterator[str]:
    """Yield the section. definitions: of any release, because every release has the same own settings."""
    yield "## Settings of this broker\n"
    yield (
        "Kafka does not have these settings; this broker has them in every release, and no API describes them. They are fixed when the broker\n"
        "starts, like those with *start* in the other tables. Times are in milliseconds, on the broker's clock.\n"
    )
    yield table(("name", "type", "default", "allowed", "effect"), rows(definitions, NAMES, EFFECTS))


def rows(definitions: Definitions, names: Iterable[str], effects: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Return the rows of the table. Raises ValueError if a name has no effect in `effects`, or an effect no name."""
    names = list(names)
    if set(names) != effects.keys():
        raise ValueError(f"own settings without an effect, or the other way round: {set(names) ^ effects.keys()}")
    cells = ((name, row(definitions.broker[name])) for name in names)
    return ((f"`{name}`", kind, default, allowed, effects[name]) for name, (_, kind, _, _, default, allowed) in cells)
