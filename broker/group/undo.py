"""Undoes the changes that a request made to a consumer group of the new protocol (KIP-848), if the request fails afterwards (GN-47).

Kafka keeps the group as it was before the request, with all its timers; loading the group again from its records would restart the timers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from kafkaproto.broker.group.consumer_group import TIMERS, ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.broker.runtime.timers import Timers

UNCHANGED = frozenset({"group_id", "offsets", "staged", "pending_offsets"})
"""The fields of a consumer group that an undo need not restore: a member's request changes them only after its records are stored."""
GROUP_FIELDS = [field.name for field in fields(ConsumerGroup) if field.name not in UNCHANGED]
MEMBER_FIELDS = [field.name for field in fields(ConsumerMember)]


def remember(group: ConsumerGroup, timers: Timers) -> Callable[[], None]:
    """Return a function that restores the present state of a group and its members.

    If a timer of a member is cancelled before the returned function is called, the function starts the timer again, for the same time. timers: starts
    the timers.
    """
    group_values = {name: _copied(getattr(group, name)) for name in GROUP_FIELDS}
    member_values = [
        (member, {name: getattr(member, name) for name in MEMBER_FIELDS}) for member in group.members.values()
    ]
    callbacks = {
        (member.member_id, name): timer.callback
        for member in group.members.values()
        for name in TIMERS
        if (timer := getattr(member, name)) is not None
    }

    def undo() -> None:
        if group.regex_timer is not group_values["regex_timer"]:
            cancel(group.regex_timer)
        for name, value in group_values.items():
            setattr(group, name, value)
        for member, values in member_values:
            for name in TIMERS:
                timer, callback = values[name], callbacks.get((member.member_id, name))
                if timer is not None and timer.callback is None and callback is not None:
                    values[name] = timers.at(timer.at_ms, callback)
            for name, value in values.items():
                setattr(member, name, value)

    return undo


def _copied(value: object) -> object:
    return value.copy() if isinstance(value, dict | set) else value
