"""AlterClientQuotas (key 49, versions 0-1): set and remove client quotas (KIP-546).

v1 is flexible.
Behaviour: each entity has one result, and its changes are applied completely or not at all (Q-19, Q-20). A changed quota applies from the next
request on, on every broker (Q-10).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.quota.entities import entity_order
from kafkaproto.broker.quota.store import AlterationResult, QuotaAlteration, QuotaOp
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)


def _failed(exchange: Exchange, request: AlterClientQuotasRequest, error_code: int) -> Reply:
    entities = [[(e.entity_type, e.entity_name) for e in entry.entity] for entry in request.entries]
    return _response([AlterationResult(entity, int(error_code)) for entity in entities])


@register(ApiKey.ALTER_CLIENT_QUOTAS, _failed)
def alter_client_quotas(exchange: Exchange, request: AlterClientQuotasRequest) -> Reply:
    alterations = [
        QuotaAlteration(
            [(e.entity_type, e.entity_name) for e in entry.entity],
            [QuotaOp(op.key, op.value, op.remove) for op in entry.ops],
        )
        for entry in request.entries
    ]
    return _response(exchange.node.cluster.quota_store.alter(alterations, request.validate_only))


def _response(results: list[AlterationResult]) -> Reply:
    entries = [
        AlterClientQuotasResponseEntryData(
            int(result.error_code),
            result.error_message,
            [AlterClientQuotasResponseEntityData(kind, name) for kind, name in entity_order(result.entity)],
        )
        for result in results
    ]
    return Reply(AlterClientQuotasResponse(entries=entries))
