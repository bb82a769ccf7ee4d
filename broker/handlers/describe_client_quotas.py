"""DescribeClientQuotas (key 48, versions 0-1): the client quotas that match a filter over entities (KIP-546).

v1 is flexible.
Behaviour: the response contains every entity with quotas that matches all components of the filter (Q-21).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.entities import entity_order
from kafkaproto.broker.quota.store import FilterComponent
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


def _failed(
    exchange: Exchange, request: DescribeClientQuotasRequest, error_code: int, message: str | None = None
) -> Reply:
    return Reply(DescribeClientQuotasResponse(error_code=int(error_code), error_message=message, entries=None))


@register(ApiKey.DESCRIBE_CLIENT_QUOTAS, _failed)
def describe_client_quotas(exchange: Exchange, request: DescribeClientQuotasRequest) -> Reply:
    components = [FilterComponent(c.entity_type, c.match_type, c.match) for c in request.components]
    try:
        quotas_of_entities = exchange.node.cluster.quota_store.describe(components, request.strict)
    except KafkaError as error:
        return _failed(exchange, request, error.error_code, error.message)
    entries = [
        EntryData(
            [EntityData(kind, name) for kind, name in entity_order(entity.components())],
            [ValueData(key, float(value)) for key, value in values.items()],
        )
        for entity, values in quotas_of_entities
    ]
    return Reply(DescribeClientQuotasResponse(entries=entries))
