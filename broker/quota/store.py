"""The client quotas of the whole cluster: who has which, how they are changed and asked for (KIP-546, Q-19 to Q-21).

Quotas are configuration and the same on every broker; what was used of them is each broker's own (`client_quotas`,
Q-0). Knows no wire message and no clock. Kafka's `ClientQuotaControlManager` and `ClientQuotasImage`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.entities import (
    CONSUMER_BYTE_RATE,
    DEFAULT,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTE_RATE,
    QuotaEntity,
    check_value,
    parse_entity,
)
from kafkaproto.error_codes import ErrorCode

Component = tuple[str, str | None]
Change = tuple[QuotaEntity, str, float | None]
"""(entity, key, new value or None when it is removed)."""


class QuotaOp(NamedTuple):
    """Set `key` to `value`, or remove it."""

    key: str
    value: float
    remove: bool = False


class QuotaAlteration(NamedTuple):
    """What is to be done to one entity, given as (type, name) pairs; name None: the default entity."""

    entity: Sequence[Component]
    ops: Sequence[QuotaOp]


@dataclass(slots=True)
class AlterationResult:
    """How it went for one entity; `error_message` is None exactly if `error_code` is 0."""

    entity: Sequence[Component]
    error_code: int = 0
    error_message: str | None = None


class MatchType(IntEnum):
    """How a filter looks at a name, numbered as in DescribeClientQuotas."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class FilterComponent(NamedTuple):
    """One condition. `match`: the name for EXACT, None for the others."""

    entity_type: str
    match_type: int
    match: str | None = None


class ClientQuotaStore:
    """Entities with their values. An entity without values does not exist.

    take_over: called after each change, to have those who measure take it over.
    remember: called before the changes of an entity; raises KafkaError if they must not happen because they would be forgotten.
    """

    def __init__(
        self,
        take_over: Callable[[QuotaEntity, str, float | None], None] | None = None,
        remember: Callable[[Sequence[Change]], None] | None = None,
    ) -> None:
        self._take_over = take_over
        self._remember = remember
        self._values: dict[QuotaEntity, dict[str, float]] = {}

    def all(self) -> dict[tuple[QuotaEntity, str], float]:
        """Every value that there is."""
        return {(entity, key): value for entity, values in self._values.items() for key, value in values.items()}

    def get(self, entity: QuotaEntity, key: str) -> float | None:
        values = self._values.get(entity)
        return None if values is None else values.get(key)

    def set(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Set or (None) remove one value. Raises KafkaError INVALID_REQUEST for what Q-20 forbids."""
        if value is not None:
            check_value(entity, key, value)
        self._change([(entity, key, value)])

    def clear(self) -> None:
        for entity, values in list(self._values.items()):
            for key in list(values):
                self._apply(entity, key, None)

    def alter(self, alterations: Sequence[QuotaAlteration], validate_only: bool) -> list[AlterationResult]:
        """Apply each alteration wholly or not at all; one does not harm another. One result per entity (Q-20)."""
        results: dict[frozenset[Component], AlterationResult] = {}
        for alteration in alterations:
            identity = frozenset(
                dict(alteration.entity).items()
            )  # a type that is given twice counts as it is given last
            if identity in results:
                results[identity] = _refused(alteration, "The same entity is given twice; only the first was applied.")
                continue
            try:
                self._alter_one(alteration, validate_only)
                results[identity] = AlterationResult(alteration.entity)
            except KafkaError as error:
                results[identity] = AlterationResult(alteration.entity, error.error_code, str(error))
        return list(results.values())

    def describe(
        self, components: Sequence[FilterComponent], strict: bool
    ) -> list[tuple[QuotaEntity, Mapping[str, float]]]:
        """Entities that fit every component; `strict`: and have no other types (Q-21).

        Raises KafkaError: UNSUPPORTED_VERSION for an unknown entity type, INVALID_REQUEST for a filter that makes no
        sense.
        """
        wanted = _checked_filter(components)
        return [(entity, dict(values)) for entity, values in self._values.items() if _fits(entity, wanted, strict)]

    def _alter_one(self, alteration: QuotaAlteration, validate_only: bool) -> None:
        entity = parse_entity(alteration.entity)
        keys = [op.key for op in alteration.ops]
        if len(set(keys)) != len(keys):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"A quota is given twice for {entity}.")
        for op in alteration.ops:
            if not op.remove:
                check_value(entity, op.key, op.value)
        if not validate_only:
            self._change([(entity, op.key, None if op.remove else op.value) for op in alteration.ops])

    def _change(self, changes: Sequence[Change]) -> None:
        if self._remember is not None:
            self._remember(changes)
        for change in changes:
            self._apply(*change)

    def _apply(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        if self.get(entity, key) == value:
            return
        values = self._values.setdefault(entity, {})
        if value is None:
            del values[key]
            if not values:
                del self._values[entity]
        else:
            values[key] = value
        if self._take_over is not None:
            self._take_over(entity, key, value)


def apply_static_quotas(store: ClientQuotaStore, settings: Mapping[str, str | None]) -> None:
    """Enter KIP-13's start-up settings as client-id quotas, which the APIs can change later (D9b).

    settings: `quota.producer.default`, `quota.consumer.default` ("2M": bytes a second, K, M, G times 1024),
    `quota.producer.override`, `quota.consumer.override` ("clientA:4M,clientB:10M"); missing, None and empty: none.
    Raises ValueError naming the setting and an example.
    """
    for role, key in (("producer", PRODUCER_BYTE_RATE), ("consumer", CONSUMER_BYTE_RATE)):
        name = f"quota.{role}.default"
        text = settings.get(name)
        if text and text.strip() != _UNLIMITED:
            store.set(QuotaEntity(client_id=DEFAULT), key, _parse_rate(name, text))
        name = f"quota.{role}.override"
        for item in filter(None, (settings.get(name) or "").split(",")):
            client_id, colon, rate = item.rpartition(":")
            if not colon or not client_id.strip():
                raise ValueError(
                    f"{name}={settings[name]}: allowed is a list of client-id:rate, as clientA:4M,clientB:10M"
                )
            store.set(QuotaEntity(client_id=client_id.strip()), key, _parse_rate(name, rate))


_UNLIMITED = str(2**63 - 1)
"""What Kafka had as the default of these settings."""

_RATE = re.compile(r"(\d+)([KMG]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def _parse_rate(name: str, text: str) -> float:
    found = _RATE.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{name}={text}: allowed is bytes a second above 0, with K, M or G if wanted, as 2M")
    return float(int(found[1]) * _UNITS[found[2].upper()])


def _refused(alteration: QuotaAlteration, message: str) -> AlterationResult:
    return AlterationResult(alteration.entity, ErrorCode.INVALID_REQUEST, message)


def _checked_filter(components: Sequence[FilterComponent]) -> dict[str, FilterComponent]:
    wanted: dict[str, FilterComponent] = {}
    for component in components:
        entity_type = component.entity_type
        if not entity_type:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The entity type of a filter must not be empty.")
        if entity_type in wanted:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The filter names {entity_type} twice.")
        if entity_type not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown entity type {entity_type!r}.")
        if component.match_type not in tuple(MatchType):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}.")
        if (component.match_type == MatchType.EXACT) != (component.match is not None):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"A name goes with an exact match only, and must ({entity_type})."
            )
        wanted[entity_type] = component
    if IP in wanted and len(wanted) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A filter for ip cannot be combined with user or client-id.")
    return wanted


def _fits(entity: QuotaEntity, wanted: Mapping[str, FilterComponent], strict: bool) -> bool:
    names = dict(entity.components())
    # With no condition at all, strict means the entity of no types, which cannot be.
    if strict and names.keys() != wanted.keys():
        return False
    return all(entity_type in names and _name_fits(names[entity_type], wanted[entity_type]) for entity_type in wanted)


def _name_fits(name: str | None, component: FilterComponent) -> bool:
    if component.match_type == MatchType.ANY:
        return True
    return name == component.match
