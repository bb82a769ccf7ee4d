"""AddRaftVoter (key 80, versions 0-1): add a controller to the quorum (KIP-853).

v1 adds a flag that allows a response before the change is committed.
Behaviour: the broker checks the cluster id, the voter, the address of its controller listener, and then the quorum, in Kafka's order. In a new
cluster the quorum is static (`kraft.version` 0), so a valid request gets error UNSUPPORTED_VERSION (35). In a dynamic quorum, a request to add the
existing controller gets error DUPLICATE_VOTER (126). A request for any other voter gets REQUEST_TIMED_OUT (7), because this cluster has only one
controller (AD-27).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.quorum import Voter, check_voter, has_dynamic_quorum, own_voter, static_quorum
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

USUAL_LISTENER = "CONTROLLER"


def _failed(exchange: Exchange, request: AddRaftVoterRequest, error_code: int) -> Reply:
    return Reply(AddRaftVoterResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.ADD_RAFT_VOTER, _failed)
def add_raft_voter(exchange: Exchange, request: AddRaftVoterRequest) -> Reply:
    own_cluster_id = exchange.node.image.cluster_id
    try:
        check_voter(own_cluster_id, request.cluster_id, request.voter_id, request.voter_directory_id, "Add")
        _check_listeners(exchange, request)
        if not has_dynamic_quorum(exchange.node):
            raise static_quorum("adding")
        raise _not_added(exchange, request)
    except KafkaError as error:
        return Reply(AddRaftVoterResponse(error_code=int(error.error_code), error_message=error.message))


def _check_listeners(exchange: Exchange, request: AddRaftVoterRequest) -> None:
    """Check that the voter has an endpoint for the first listener in `controller.listener.names`, or for `CONTROLLER` if that is not set.

    Raises KafkaError INVALID_REQUEST (42) if the voter has no such endpoint.
    """
    names = exchange.node.config["controller.listener.names"] or ""
    listener_name = str(names).split(",")[0].strip().upper() or USUAL_LISTENER
    if listener_name not in {listener.name.upper() for listener in request.listeners}:
        endpoints = ", ".join(f"ListenerName({v.name})={v.host}/<unresolved>:{v.port}" for v in request.listeners)
        sent, default = f"Endpoints(endpoints={{{endpoints}}})", f"ListenerName({listener_name})"
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({sent}) for the default listener {default}",
        )


def _not_added(exchange: Exchange, request: AddRaftVoterRequest) -> KafkaError:
    """Return the error for a valid request to add a voter in a cluster with a dynamic quorum: this broker can never add one.

    It is DUPLICATE_VOTER (126) for the cluster's only controller, and REQUEST_TIMED_OUT (7) for any other controller, because the broker cannot reach
    it.
    """
    own = own_voter(exchange.node)
    if request.voter_id == own.voter_id:
        voter = Voter(request.voter_id, request.voter_directory_id)
        message = f"The voter id for {voter} is already part of the set of voters [{own}]."
        return KafkaError(ErrorCode.DUPLICATE_VOTER, message)
    message = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
