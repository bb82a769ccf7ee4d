"""The client quotas of the whole cluster, and the rules for altering and describing them (KIP-546, Q-19 to Q-21).

The quotas are the same on every broker. Each broker measures separately what clients use (`client_quotas`, Q-0). This module does not depend on
wire messages or on a clock. It corresponds to Kafka's `ClientQuotaControlManager` and `ClientQuotasImage`.
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
    hash_map_order,
    parse_entity,
)
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import hash_order

Component = tuple[str, str | None]
Change = tuple[QuotaEntity, str, float | None]
"""A changed quota: (entity, key, new value, or None if the quota is removed)."""


class QuotaOp(NamedTuple):
    """One operation of AlterClientQuotas: sets the quota `key` to `value`. If `remove` is true, it removes the quota and ignores `value`."""

    key: str
    value: float
    remove: bool = False


class QuotaAlteration(NamedTuple):
    """The requested changes to the quotas of one entity. The entity is given as (type, name) pairs; the name None stands for the default entity."""

    entity: Sequence[Component]
    ops: Sequence[QuotaOp]


@dataclass(slots=True)
class AlterationResult:
    """The result of the changes to one entity. `error_message` is None if and only if `error_code` is 0."""

    entity: Sequence[Component]
    error_code: int = 0
    error_message: str | None = None


class MatchType(IntEnum):
    """Which entities of a type a filter component of DescribeClientQuotas matches, with Kafka's numbers.

    EXACT: the entity with a given name. DEFAULT: the default entity. ANY: all entities of the type, including the default entity.
    """

    EXACT = 0
    DEFAULT = 1
    ANY = 2


_NAMES_OF_TYPES: Mapping[int, str] = {
    MatchType.EXACT: "MATCH_TYPE_EXACT",
    MatchType.DEFAULT: "MATCH_TYPE_DEFAULT",
    MatchType.ANY: "MATCH_TYPE_SPECIFIED",
}
"""Maps match types to the names that Kafka's error messages contain."""


class FilterComponent(NamedTuple):
    """One condition of a filter over entities.

    entity_type: "user", "client-id" or "ip". match_type: a number of `MatchType`. match: the name of the entity if `match_type` is EXACT,
    otherwise None.
    """

    entity_type: str
    match_type: int
    match: str | None = None


class ClientQuotaStore:
    """The client quotas of a cluster. When the last quota of an entity is removed, the entity no longer exists.

    remember: a function that is called before each change to persist it; it raises KafkaError to reject the change. take_over: a function
    that is called after each change to apply it to the measurements.
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
        """Return all quota values, by (entity, key)."""
        return {(entity, key): value for entity, values in self._values.items() for key, value in values.items()}

    def get(self, entity: QuotaEntity, key: str) -> float | None:
        values = self._values.get(entity)
        return None if values is None else values.get(key)

    def set(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Set the quota `key` of an entity, or remove this quota if `value` is None.

        Raises KafkaError INVALID_REQUEST (42) if `entity` cannot have the quota `key`, or if the value is not valid for this quota (Q-20). The
        removal of a quota is not checked.
        """
        if value is not None:
            check_value(entity, key, value)
        self._change([(entity, key, value)])

    def clear(self) -> None:
        for entity, values in list(self._values.items()):
            for key in list(values):
                self._apply(entity, key, None)

    def alter(self, alterations: Sequence[QuotaAlteration], validate_only: bool) -> list[AlterationResult]:
        """Apply each alteration completely or not at all, independently of the others. Returns one result for each entity (Q-20).

        validate_only: whether to check the alterations without applying them.
        """
        results: dict[frozenset[Component], AlterationResult] = {}
        for alteration in alterations:
            identity = frozenset(dict(alteration.entity).items())  # the last value of a repeated type counts
            keys = [op.key for op in alteration.ops]
            if identity in results or len(set(keys)) != len(keys):  # Kafka uses this message for a repeated key, too
                message = f"Ignoring duplicate entity {_java_text(alteration.entity)}"
                results[identity] = AlterationResult(alteration.entity, ErrorCode.INVALID_REQUEST, message)
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
        """Return (entity, its quota values by key) for each entity that matches all `components` of the filter (Q-21).

        strict: whether to leave out entities that also have components of types that the filter does not name.

        Raises KafkaError: UNSUPPORTED_VERSION for an unknown entity type, INVALID_REQUEST for a contradictory filter.
        """
        by_type = _checked_filter(components)
        return [(entity, dict(values)) for entity, values in self._values.items() if _fits(entity, by_type, strict)]

    def _alter_one(self, alteration: QuotaAlteration, validate_only: bool) -> None:
        entity = parse_entity(alteration.entity)
        places = {key: place for place, key in enumerate(hash_map_order([op.key for op in alteration.ops]))}
        for op in sorted(alteration.ops, key=lambda op: places[op.key]):
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
    """Set client-id quotas from the broker settings of KIP-13; the APIs can change these quotas later (D9b).

    settings: `quota.producer.default` and `quota.consumer.default`, in bytes a second, such as "2M" (K, M and G are powers of 1024);
    `quota.producer.override` and `quota.consumer.override`, such as "clientA:4M,clientB:10M". Missing, None and empty values set nothing.
    Raises ValueError for an invalid value; the message names the setting and gives an example.
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
                    f'{name} must be a list of client-id:rate, for example clientA:4M,clientB:10M (got "{settings[name]}")'
                )
            store.set(QuotaEntity(client_id=client_id.strip()), key, _parse_rate(name, rate))


_UNLIMITED = str(2**63 - 1)
"""Kafka's default of the settings `quota.producer.default` and `quota.consumer.default`."""

_RATE = re.compile(r"(\d+)([KMG]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def _parse_rate(name: str, text: str) -> float:
    match = _RATE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(
            f'{name} must be a number of bytes a second above 0, optionally followed by K, M or G, for example 2M (got "{text}")'
        )
    return float(int(match[1]) * _UNITS[match[2].upper()])


def _java_text(entity: Sequence[Component]) -> str:
    """Return an entity as Kafka's messages contain it, such as "ClientQuotaEntity(entries={client-id=null, user=a})"."""
    names = dict(entity)
    table = 1 << max(0, len(entity) - 1).bit_length()
    entries = (f"{kind}={'null' if names[kind] is None else names[kind]}" for kind in hash_order(names, table))
    return f"ClientQuotaEntity(entries={{{', '.join(entries)}}})"


def _checked_filter(components: Sequence[FilterComponent]) -> dict[str, FilterComponent]:
    by_type: dict[str, FilterComponent] = {}
    for component in components:
        entity_type = component.entity_type
        if not entity_type:
            raise _invalid("Invalid empty entity type.")
        if entity_type in by_type:
            raise _invalid(f"Entity type {entity_type} cannot appear more than once in the filter.")
        if entity_type not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")
        if component.match_type not in _NAMES_OF_TYPES:
            raise _invalid(f"Unknown match type {component.match_type}")
        is_exact = component.match_type == MatchType.EXACT
        match_type_name = _NAMES_OF_TYPES[component.match_type]
        if is_exact and component.match is None:
            raise _invalid(f"Request specified {match_type_name}, but set match string to null.")
        if not is_exact and component.match is not None:
            raise _invalid(f"Request specified {match_type_name}, but also specified a match string.")
        by_type[entity_type] = component
    if IP in by_type and len(by_type) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    return by_type


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _fits(entity: QuotaEntity, components: Mapping[str, FilterComponent], strict: bool) -> bool:
    names = dict(entity.components())
    # A strict filter without components matches the entity without components, which does not exist.
    if strict and names.keys() != components.keys():
        return False
    return all(
        entity_type in names and _name_fits(names[entity_type], components[entity_type]) for entity_type in components
    )


def _name_fits(name: str | None, component: FilterComponent) -> bool:
    if component.match_type == MatchType.ANY:
        return True
    return name == component.match
