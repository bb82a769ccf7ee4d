"""The mute states of a connection: all transitions, and events that cannot happen in a state (T-6)."""

from __future__ import annotations

from itertools import product

import pytest

from kafkaproto.broker.network.mute import TRANSITIONS, MuteEvent, MuteState, next_state

S, E = MuteState, MuteEvent


def walk(*events: MuteEvent) -> MuteState:
    state = S.NOT_MUTED
    for event in events:
        state = next_state(state, event)
    return state


@pytest.mark.rule("T-6")
def test_request_without_throttle_mutes_the_connection_until_the_response_is_sent() -> None:
    assert walk(E.REQUEST_RECEIVED) is S.MUTED_AND_RESPONSE_PENDING
    assert walk(E.REQUEST_RECEIVED, E.RESPONSE_SENT) is S.NOT_MUTED


@pytest.mark.rule("T-6")
def test_connection_stays_muted_after_the_response_until_the_throttle_ends() -> None:
    started = (E.REQUEST_RECEIVED, E.THROTTLE_STARTED)
    assert walk(*started) is S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
    assert walk(*started, E.RESPONSE_SENT) is S.MUTED_AND_THROTTLED
    assert walk(*started, E.RESPONSE_SENT, E.THROTTLE_ENDED) is S.NOT_MUTED


@pytest.mark.rule("T-6")
def test_connection_stays_muted_after_a_throttle_until_the_response_is_sent() -> None:
    started = (E.REQUEST_RECEIVED, E.THROTTLE_STARTED)
    assert walk(*started, E.THROTTLE_ENDED) is S.MUTED_AND_RESPONSE_PENDING
    assert walk(*started, E.THROTTLE_ENDED, E.RESPONSE_SENT) is S.NOT_MUTED


@pytest.mark.rule("T-6")
@pytest.mark.parametrize(("state", "event"), [pair for pair in product(S, E) if pair not in TRANSITIONS])
def test_undefined_transition_of_the_connection_mute_state_raises_value_error(
    state: MuteState, event: MuteEvent
) -> None:
    with pytest.raises(ValueError, match=f"{event.name} cannot happen to a connection in the state {state.name}"):
        next_state(state, event)


@pytest.mark.rule("T-6")
def test_connection_is_unmuted_after_response_and_end_of_throttle_in_any_order() -> None:
    reached = {S.NOT_MUTED}
    ends = set()
    while True:
        reachable = {next_state(s, e) for s, e in TRANSITIONS if s in reached} | reached
        if reachable == reached:
            break
        reached = reachable
    for state in reached - {S.NOT_MUTED}:
        for order in ((E.RESPONSE_SENT, E.THROTTLE_ENDED), (E.THROTTLE_ENDED, E.RESPONSE_SENT)):
            now = state
            for event in order:
                if (now, event) in TRANSITIONS:
                    now = next_state(now, event)
            ends.add(now)
    assert reached == set(S) - {S.MUTED}  # MUTED is left at once
    assert ends == {S.NOT_MUTED}
