"""The five mute states of a connection and the events between them, as a table (KIP-219; `KafkaChannel.ChannelMuteState`).

No request of a muted connection is handled. A connection is unmuted when its response has been written *and* its throttle time is over (T-6).
"""

from __future__ import annotations

from enum import IntEnum, auto


class MuteState(IntEnum):
    NOT_MUTED = auto()
    MUTED = auto()
    MUTED_AND_RESPONSE_PENDING = auto()
    MUTED_AND_THROTTLED = auto()
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = auto()


class MuteEvent(IntEnum):
    REQUEST_RECEIVED = auto()
    THROTTLE_STARTED = auto()
    RESPONSE_SENT = auto()
    """The event that the whole response was written, or that a request without a response (acks=0) was handled."""
    THROTTLE_ENDED = auto()


_S, _E = MuteState, MuteEvent

TRANSITIONS: dict[tuple[MuteState, MuteEvent], MuteState] = {
    (_S.NOT_MUTED, _E.REQUEST_RECEIVED): _S.MUTED_AND_RESPONSE_PENDING,
    (_S.MUTED_AND_RESPONSE_PENDING, _E.THROTTLE_STARTED): _S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
    (_S.MUTED_AND_RESPONSE_PENDING, _E.RESPONSE_SENT): _S.MUTED,
    (_S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _E.RESPONSE_SENT): _S.MUTED_AND_THROTTLED,
    (_S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _E.THROTTLE_ENDED): _S.MUTED_AND_RESPONSE_PENDING,
    (_S.MUTED_AND_THROTTLED, _E.THROTTLE_ENDED): _S.MUTED,
}


def next_state(state: MuteState, event: MuteEvent) -> MuteState:
    """Return the state of a connection after an event. Raises ValueError for an event that is impossible in `state`.

    Kafka's connection enters the state MUTED before it is unmuted. This broker skips that state: the function returns NOT_MUTED instead.
    """
    next_state = TRANSITIONS.get((state, event))
    if next_state is None:
        raise ValueError(
            f"the event {event.name} cannot happen to a connection in the state {state.name}; please report this bug"
        )
    return _S.NOT_MUTED if next_state is _S.MUTED else next_state
