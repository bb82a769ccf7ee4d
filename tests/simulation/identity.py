"""Who shares a quota with whom, and which bound holds: Q-8 and Q-9 rung by rung, to judge `kafkaproto.broker.quota.precedence`.

Imports nothing of what it judges; knows names and values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

DEFAULT = "<default>"
Entity = tuple[str | None, str | None]
"""(user, client-id); None: the entity says nothing of it."""
Tags = tuple[str, str]
"""Of a sensor: (user, client-id); "": does not matter."""
USER, CLIENT_ID, PAIR = "user", "client-id", "user and client-id"


class Identity(NamedTuple):
    """bound: per second, None if nothing limits; entity: whose it is."""

    tags: Tags
    bound: float | None
    entity: Entity | None


def kind_of(entity: Entity) -> str:
    user, client_id = entity
    if user is not None and client_id is not None:
        return PAIR
    return CLIENT_ID if user is None else USER


def identity(values: Mapping[Entity, float], ever: Set[str], user: str, client_id: str, semantics: str) -> Identity:
    """values: what is configured now. ever: the kinds of which something was configured since the start (cumulative)."""
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
    """What holds for everybody who shares a sensor; ("", "") is nobody (Q-9)."""
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
