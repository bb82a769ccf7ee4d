"""Subscriptions by regular expression: when the expressions are matched with the existing topics, and how the result changes the group (KIP-848).

The broker responds to a heartbeat before it matches the regular expressions of the group (GN-51, GN-52). Corresponds to
`maybeUpdateRegularExpressions` and `handleRegularExpressionsResult` in Kafka's `GroupMetadataManager` (Java), and to `TopicRegexResolver`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember, ResolvedRegex
from kafkaproto.broker.group.consumer_members import Changes
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.topic_patterns import compile_topic_pattern
from kafkaproto.broker.group.transitions import Transitions
from kafkaproto.broker.runtime.timers import Timers

logger = logging.getLogger("kafkaproto.groups")

LEAST_INTERVAL_MS = 10_000
"""The minimum time in ms between two matches of a group's regular expressions (`REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`)."""


class RegexSubscriptions:
    """Matches the regular expressions in the subscriptions of consumer groups with the topics that exist."""

    def __init__(self, groups: Registry, transitions: Transitions, timers: Timers) -> None:
        self._groups = groups
        self._transitions = transitions
        self._timers = timers

    def update(
        self, group: ConsumerGroup, member: ConsumerMember, changes: Changes, entries: list[Entry], now_ms: int
    ) -> bool:
        """Update the regular expressions of a group after a request, and return whether a new epoch must start at once.

        a. If the request replaced an expression that no other member uses, the expression is removed, and its tombstone is added to the list
           `entries`.
        b. If the expressions must be matched again, for example because one is new, a timer is set that fires after this method has returned. The
           timer matches all expressions with the topics, and starts a new epoch if the result or the subscribed topics changed.
        c. The result is True if the request changed the member's expression, and the member now has none or one that has been matched before.

        changes: what the request changed about `member`.
        """
        is_resolved, regex_before, resolved_count = False, changes.regex_before, len(group.regexes)
        if regex_before is not None:
            self._transitions.drop_regexes(group, [regex_before], entries)
            is_resolved = not member.topic_regex or member.topic_regex in group.regexes
        if group.regex_timer is None and self._is_due(group, resolved_count, now_ms):
            regexes = frozenset(group.regex_subscribers)
            group.regex_timer = self._timers.at(now_ms, lambda at_ms: self._resolve(group, regexes, at_ms))
        return is_resolved

    def _is_due(self, group: ConsumerGroup, resolved_count: int, now_ms: int) -> bool:
        """Return whether the group's regular expressions must be matched with the topics now.

        They are matched at once if none has been matched before. Later they are matched again if an expression is new or was removed, if topics were
        created, or if the last match is too old, but never within `LEAST_INTERVAL_MS` after the last match.

        resolved_count: the number of expressions that had been matched with the topics before the current request. As in Kafka, an expression that
        the request removed is included in this number.
        """
        if not group.regex_subscribers:
            return False
        if group.regexes_resolved_ms is None or not resolved_count:
            return True
        age_ms = now_ms - group.regexes_resolved_ms
        if age_ms <= LEAST_INTERVAL_MS:
            return False
        has_unresolved = (
            len(group.regex_subscribers) != resolved_count or not group.regex_subscribers.keys() <= group.regexes.keys()
        )
        has_new_topics = group.regexes_saw is None or not group.regexes_saw >= self._transitions.topics.image().keys()
        return has_unresolved or has_new_topics or age_ms > self._transitions.settings.regex_refresh_ms

    def _resolve(self, group: ConsumerGroup, regexes: Iterable[str], now_ms: int) -> None:
        """Match regular expressions of a group with the existing topics.

        A new epoch starts if an expression matches other topics than before, or if the topics of the whole group have changed since the last epoch,
        for example because a member has replaced its expression (GN-51).
        """
        group.regex_timer = None
        if self._groups.get_consumer(group.group_id) is not group:
            return
        topics = frozenset(self._transitions.topics.image())
        entries: list[Entry] = []
        bumps = False
        for regex in regexes:
            if regex not in group.regex_subscribers:
                continue
            resolved = ResolvedRegex(_matching(regex, topics, group.group_id), now_ms)
            resolved_before = group.regexes.get(regex)
            bumps = bumps or resolved.topics != (frozenset() if resolved_before is None else resolved_before.topics)
            group.regexes[regex] = resolved
            entries.append(stored_as.regex_entry(group.group_id, regex, resolved))
        group.regexes_resolved_ms, group.regexes_saw = now_ms, topics
        bumps = self._transitions.update_topics(group, entries) or bumps
        self._transitions.advance_epoch(group, entries, bumps=bumps)
        self._transitions.store(group.group_id, entries, now_ms)


def _matching(regex: str, topics: Iterable[str], group_id: str) -> frozenset[str]:
    """Return the topics that a regular expression matches; none if the expression is invalid, which is possible if another broker stored it.

    group_id: the group that subscribes by this expression, for the warning about an invalid one.
    """
    try:
        pattern = compile_topic_pattern(regex)
    except KafkaError as error:
        logger.warning(
            "group %s: a stored regular expression is invalid and matches no topic, "
            "so let the members of the group subscribe with a valid one: %s",
            group_id,
            error.message,
        )
        return frozenset()
    return frozenset(name for name in topics if pattern.matches(name))
