"""Selects the quota of a client, and the clients that are measured together against this quota (Q-8, Q-9; KIP-55, `DefaultQuotaCallback`).

The functions depend only on the configured values, not on sensors or time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag
from typing import Literal, NamedTuple

from kafkaproto.broker.quota.entities import DEFAULT, QuotaEntity

Semantics = Literal["kip", "kafka"]
"""How quotas apply to a client with an empty client id (D9).

"kip": the quotas of the default client id apply, as KIP-55 says. "kafka": no quota for client ids applies, only quotas for users, as in Kafka.
"""
Lookup = Callable[[QuotaEntity], "float | None"]


class Levels(IntFlag):
    """Flags for the levels (user, client id, or both) on which quotas of one type have been configured since the broker started.

    The flag of a level stays set after all quotas on this level have been removed.
    """

    NONE = 0
    CLIENT_ID = 1
    USER = 2
    USER_AND_CLIENT_ID = 4


class Binding(NamedTuple):
    """The quota that applies to one client, and the tags of the measurement that the client shares with other clients.

    user, client_id: the tags. All clients with the same tags are measured together. The tag "" stands for any user or client id. bound: the quota per
    second, None for no limit. entity: the entity for which the quota is configured, None for no limit.
    """

    user: str
    client_id: str
    bound: float | None = None
    entity: QuotaEntity | None = None


def level_of(entity: QuotaEntity) -> Levels:
    if entity.user is None:
        return Levels.NONE if entity.client_id is None else Levels.CLIENT_ID
    return Levels.USER if entity.client_id is None else Levels.USER_AND_CLIENT_ID


def resolve(lookup: Lookup, levels: Levels, user: str, client_id: str, semantics: Semantics) -> Binding:
    """Return the quota that applies to a client, and the tags of the clients that are measured together with this client.

    lookup: a function that returns the configured quota of an entity, None if there is none. levels: the levels (user, client id, or both) on which
    quotas have been configured. client_id: "" for a client without one. semantics: for such a client, "kip" applies the quotas of the
    default client id, and "kafka" applies no quota for client ids.
    """
    if semantics == "kafka" and not client_id:
        return _resolve_unnamed_as_kafka(lookup, levels, user)
    several = levels & (levels - 1)
    if several:
        return _resolve_mixed(lookup, user, client_id)
    if Levels.USER_AND_CLIENT_ID in levels:
        return _first(lookup, user, client_id, _of_pair(user, client_id))
    if Levels.USER in levels:
        return _first(lookup, user, "", _of_user(user))
    return _first(lookup, "", client_id, _of_client(client_id))


def of_tags(lookup: Lookup, user_tag: str, client_tag: str) -> Binding:
    """Return the quota of all clients that share a measurement, which has the tags `user_tag` and `client_tag` (Q-9).

    lookup: a function that returns the configured quota of an entity, None if there is none. user_tag, client_tag: a user name and a client id; ""
    stands for any. Returns no limit for the tags ("", ""): with the semantics "kafka", clients with an empty client id and without a quota for their
    user have these tags.
    """
    if user_tag and client_tag:
        return _first(lookup, user_tag, client_tag, _of_pair(user_tag, client_tag))
    if user_tag:
        return _first(lookup, user_tag, "", _of_user(user_tag))
    return _first(lookup, "", client_tag, _of_client(client_tag) if client_tag else ())


def _resolve_mixed(lookup: Lookup, user: str, client_id: str) -> Binding:
    # KIP-55's order: note that (default user, client) stands above the default user, but below the user.
    of_own_pair, of_default_pair = _of_pair(user, client_id)[:2], _of_pair(user, client_id)[2:]
    own, default = _of_user(user)
    for entities, tags in (
        (of_own_pair, (user, client_id)),
        ((own,), (user, "")),
        (of_default_pair, (user, client_id)),
        ((default,), (user, "")),
    ):
        binding = _first(lookup, *tags, entities)
        if binding.entity is not None:
            return binding
    return _first(lookup, "", client_id, _of_client(client_id))


def _resolve_unnamed_as_kafka(lookup: Lookup, levels: Levels, user: str) -> Binding:
    # D9: the shipped broker looks the bound up again from the tags, and there an empty client-id means "no client-id":
    # the client escapes default client-id quotas, and where it has a user tag the user's own quotas hold.
    tags = resolve(lookup, levels, user, "", "kip")
    return of_tags(lookup, tags.user, "")


def _first(lookup: Lookup, user_tag: str, client_tag: str, entities: tuple[QuotaEntity, ...]) -> Binding:
    for entity in entities:
        bound = lookup(entity)
        if bound is not None:
            return Binding(user_tag, client_tag, bound, entity)
    return Binding(user_tag, client_tag)


def _of_client(client_id: str) -> tuple[QuotaEntity, ...]:
    # For an unnamed client both are the default entity, which is what it shares (D9, kip).
    return QuotaEntity(client_id=client_id), QuotaEntity(client_id=DEFAULT)


def _of_user(user: str) -> tuple[QuotaEntity, QuotaEntity]:
    return QuotaEntity(user=user), QuotaEntity(user=DEFAULT)


def _of_pair(user: str, client_id: str) -> tuple[QuotaEntity, ...]:
    return (
        QuotaEntity(user=user, client_id=client_id),
        QuotaEntity(user=user, client_id=DEFAULT),
        QuotaEntity(user=DEFAULT, client_id=client_id),
        QuotaEntity(user=DEFAULT, client_id=DEFAULT),
    )
