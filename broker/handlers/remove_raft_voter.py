"""RemoveRaftVoter (key 81, version 0): remove a controller from the quorum (KIP-853).

Behaviour: the broker checks the cluster id, the voter, and then the quorum, in Kafka's order. No request succeeds. In a static quorum
(`kraft.version` 0), which every new cluster has, a valid request gets error UNSUPPORTED_VERSION (35). In a dynamic quorum, it gets error
VOTER_NOT_FOUND (127), even if it names the cluster's only controller, which cannot be removed (AD-27).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.quorum import Voter, check_voter, has_dynamic_quorum, own_voter, static_quorum
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def _failed(exchange: Exchange, request: RemoveRaftVoterRequest, error_code: int) -> Reply:
    return Reply(RemoveRaftVoterResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.REMOVE_RAFT_VOTER, _failed)
def remove_raft_voter(exchange: Exchange, request: RemoveRaftVoterRequest) -> Reply:
    own_cluster_id = exchange.node.image.cluster_id
    try:
        check_voter(own_cluster_id, request.cluster_id, request.voter_id, request.voter_directory_id, "Remove")
        if not has_dynamic_quorum(exchange.node):
            raise static_quorum("removing")
        voter, own = Voter(request.voter_id, request.voter_directory_id), own_voter(exchange.node)
        raise KafkaError(ErrorCode.VOTER_NOT_FOUND, f"Cannot remove voter {voter} from the set of voters [{own}]")
    except KafkaError as error:
        return Reply(RemoveRaftVoterResponse(error_code=int(error.error_code), error_message=error.message))
