"""The entities and keys of client quotas, and which combinations are valid (KIP-13, KIP-55, KIP-546; Q-19, Q-20).

This module does not depend on sensors, brokers or wire messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.addresses import parse_address
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import hash_order

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

DEFAULT = ""
"""The name of the default entity inside the broker; Kafka's tools call it "<default>". Names of other entities are never empty."""

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_CLIENT_KEYS = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_IP_KEYS = {CONNECTION_CREATION_RATE: 2**31 - 1}
"""The quotas of IP addresses: maps the key of each quota to its largest allowed value (Kafka's `QuotaConfigs`)."""

_INTEGER_TYPES = {2**63 - 1: "a LONG", 2**31 - 1: "an INT"}
"""Maps the largest allowed value of a quota to Kafka's name for its integer type, for the error about a larger value."""

_FRACTION_TOLERANCE = 1e-6


class QuotaEntity(NamedTuple):
    """The entity that a quota is configured for, such as a user, a client id, or both.

    Each field is a user name, a client id or an IP address, DEFAULT ("") for the default entity of this type, or None if the entity has no component
    of this type.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def components(self) -> list[tuple[str, str | None]]:
        """Return (type, name) of the components of this entity, as in KIP-546; the name is None for the default entity."""
        names = zip(ENTITY_TYPES, self, strict=True)
        return [(entity_type, name or None) for entity_type, name in names if name is not None]

    def __str__(self) -> str:
        return ", ".join(kind + (" <default>" if name is None else f" {name!r}") for kind, name in self.components())


def entity_order(components: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Return the (type, name) components of an entity in the order in which Kafka sends them: that of a Java `HashMap` from types to names.

    A repeated type is returned once, with its last name.
    """
    names = dict(components)
    return [(entity_type, names[entity_type]) for entity_type in hash_map_order([kind for kind, _ in components])]


def hash_map_order(keys: Sequence[str]) -> list[str]:
    """Return keys in the order of a Java `HashMap` that was created for this number of keys."""
    return hash_order(keys, 1 << max(len(keys) - 1, 0).bit_length())


def parse_entity(components: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity that consists of `components`: (type, name) pairs with type "user", "client-id" or "ip".

    The name None stands for the default entity of the type. Raises KafkaError INVALID_REQUEST (42) for an unknown type, an empty or invalid name, no
    component at all, or a combination that Kafka does not allow (Q-20).
    """
    names_by_type = dict(components)
    if not names_by_type:
        raise _invalid("Invalid empty client quota entity")
    for entity_type, name in names_by_type.items():
        if entity_type not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _invalid(f"Empty {entity_type} not supported")
    if IP in names_by_type:
        if len(names_by_type) > 1:
            raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
        _check_address(names_by_type[IP])
    return QuotaEntity(*(_stored_name(names_by_type, entity_type) for entity_type in ENTITY_TYPES))


def check_value(entity: QuotaEntity, quota_name: str, value: float) -> None:
    """Raise KafkaError INVALID_REQUEST (42) if `entity` cannot have the quota `quota_name`, or if `value` is not valid for this quota (Q-20).

    As in Kafka, NaN is valid for every quota, and infinity for quotas that are not integers (Q-22).
    """
    keys: Mapping[str, int | None] = _IP_KEYS if entity.ip is not None else _CLIENT_KEYS
    if quota_name not in keys:
        raise _invalid(f"Invalid configuration key {quota_name}")
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, int) and value > 2**1023):
        raise _invalid(f"Quota {quota_name} is {str(value)[:40]!r}, but must be a number.")
    if value <= 0:
        raise _invalid(f"Quota {quota_name} must be greater than 0")
    largest_integer = keys[quota_name]
    if largest_integer is None:
        return
    if value > float(largest_integer):  # as a double, which 2**63 - 1 is not: 2**63 passes
        raise _invalid(f"Proposed value for {quota_name} is too large for {_INTEGER_TYPES[largest_integer]}.")
    if math.fmod(value, 1.0) > _FRACTION_TOLERANCE:
        raise _invalid(f"{quota_name} cannot be a fractional value.")


def _stored_name(named: Mapping[str, str | None], entity_type: str) -> str | None:
    if entity_type not in named:
        return None
    name = named[entity_type]
    return DEFAULT if name is None else name


def _check_address(address: str | None) -> None:
    # Kafka resolves host names; this broker must not wait for the network, so a name other than localhost counts as
    # unresolvable.
    if address is not None and address != "localhost" and parse_address(address) is None:
        raise _invalid(f"{address} is not a valid IP or resolvable host.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
