"""AlterUserScramCredentials (key 51, version 0): create, replace and delete the SCRAM credentials of users (KIP-554).

v0 is flexible.
Behaviour: each user has one result. Deletions are checked before upsertions, and a user with two changes gets error DUPLICATE_RESOURCE (92). The
credentials are metadata of the cluster, although no listener uses SASL (AD-29 to AD-31).
"""

from __future__ import annotations

from dataclasses import replace

from kafkaproto.api import ApiKey
from kafkaproto.broker.metadata import scram
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def _failed(exchange: Exchange, request: AlterUserScramCredentialsRequest, error_code: int) -> Reply:
    users = dict.fromkeys([*(d.name for d in request.deletions), *(u.name for u in request.upsertions)])
    results = [AlterUserScramCredentialsResult(user, int(error_code), None) for user in users]
    return Reply(AlterUserScramCredentialsResponse(results=results))


@register(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _failed)
def alter_user_scram_credentials(exchange: Exchange, request: AlterUserScramCredentialsRequest) -> Reply:
    image = exchange.node.image
    deletions = [scram.Deletion(d.name, d.mechanism) for d in request.deletions]
    upsertions = [
        scram.Upsertion(u.name, u.mechanism, u.iterations, u.salt, u.salted_password) for u in request.upsertions
    ]
    credentials, errors = scram.altered(image.scram, deletions, upsertions)
    if credentials != image.scram:
        exchange.node.cluster.controller.publish(replace(image, scram=credentials), ())
    results = [
        AlterUserScramCredentialsResult(user, 0, None)
        if error is None
        else AlterUserScramCredentialsResult(user, error.error_code, error.message)
        for user, error in errors.items()
    ]
    return Reply(AlterUserScramCredentialsResponse(results=results))
