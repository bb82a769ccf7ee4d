"""The quota identity of a client and its limit: Q-8 and Q-9 level by level, to check `kafkaproto.broker.quota.precedence`.

It imports nothing of the code under test and knows only names and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

DEFAULT = "<default>"
Entity = tuple[str | None, str | None]
"""(user, client-id); None if the entity does not include it."""
Tags = tuple[str, str]
"""The tags of a sensor: (user, client-id); "" if the sensor does not depend on it."""
USER, CLIENT_ID, PAIR = "user", "client-id", "user and client-id"


class Identity(NamedTuple):
    """A quota identity. bound: per second, None if unlimited. entity: the entity with the quota."""

    tags: Tags
    bound: float | None
    entity: Entity | None


def kind_of(entity: Entity) -> str:
    user, client_id = entity
    if user is not None and client_id is not None:
        return PAIR
    return CLIENT_ID if user is None else USER


def identity(values: Mapping[Entity, float], ever: Set[str], user: str, client_id: str, semantics: str) -> Identity:
    """Return the identity of a client. values: current quotas. ever: kinds of quotas configured since the start (cumulative)."""
    ladder: list[tuple[Entity, Tags]] = [
        ((user, client_id), (user, client_id)),
        ((user, DEFAULT), (user, client_id)),
        ((user, None), (user, "")),
        ((DEFAULT, client_id), (user, client_id)),
        ((DEFAULT, DEFAULT), (user, client_id)),
        ((DEFAULT, None), (user, "")),
        ((None, client_id), ("", client_id)),
        ((None, DEFAULT), ("", client_id)),
    ]
    if len(ever) == 1:
        ladder = [(entity, tags) for entity, tags in ladder if kind_of(entity) in ever]
    entity, tags = next((rung for rung in ladder if rung[0] in values), (None, ladder[-1][1]))
    if semantics == "kafka" and not client_id:  # D9
        return of_tags(values, tags)
    return Identity(tags, None if entity is None else values[entity], entity)


def of_tags(values: Mapping[Entity, float], tags: Tags) -> Identity:
    """Return the identity for the tags of a sensor; ("", "") has no quota (Q-9)."""
    user, client_id = tags
    entities: Iterable[Entity] = ()
    if user and client_id:
        entities = (user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT)
    elif user:
        entities = (user, None), (DEFAULT, None)
    elif client_id:
        entities = (None, client_id), (None, DEFAULT)
    entity = next((entity for entity in entities if entity in values), None)
    return Identity(tags, None if entity is None else values[entity], entity)
