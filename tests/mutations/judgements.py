"""Judgements of the mutations that survived, written by hand. The key is `results.key_of` of the result."""

from __future__ import annotations

JUDGEMENTS: dict[str, str] = {
    "broker/log/store.py: self._fd = -1 -> pass": (
        "Gap, closed: an append that failed before its file was open would have raised AttributeError. "
        "`test_append_can_be_retried_after_creation_of_its_segment_file_has_failed` catches it."
    ),
    "broker/log/store.py: if dropped: -> if not (dropped):": (
        "Gap, closed: the index would have kept the entries of dropped segments. "
        "`test_dropping_log_segments_also_removes_the_index_entries_of_these_segments` catches it."
    ),
    "broker/log/replica_log.py: if epoch != self.epochs.latest and epoch >= 0: -> if epoch != self.epochs.latest or epoch >= 0:": (
        "Equivalent: `EpochCache.assign` ignores the latest epoch at a later offset, and every batch of a leader has an epoch of at least 0."
    ),
    "broker/server/main.py: gc.freeze() -> pass": (
        "Equivalent except for speed: full garbage collections would visit the modules that were loaded before the first request."
    ),
    "broker/group/settings.py: offset_metadata_max_bytes: int = 4_096 -> offset_metadata_max_bytes: int = 4097": (
        "Gap, closed: the cluster passes every value, so that no default was tested. "
        "`test_default_values_of_group_settings_equal_the_broker_defaults_of_kafka_3_9` catches it."
    ),
    (
        "broker/fetch/fetch_condition.py: return self._params.replica_id >= 0 and self._reader.throttles(self._params, partitio…"
        " -> return self._params.replica_id >= 1 and self._reader.throttles(self._params, partitio…"
    ): (
        "Gap, closed: no throttled follower that waited had the id 0. "
        "`test_parked_fetch_of_a_throttled_follower_waits_its_full_max_wait` catches it."
    ),
    "broker/log/segments.py: self._open_to_append(end - self.base) -> self._open_to_append(end + self.base)": (
        "Gap, closed: no test sealed a segment other than the first after a failed append left bytes in it. "
        "`test_next_append_or_segment_roll_removes_the_bytes_that_a_failed_append_left` catches it."
    ),
    (
        "broker/replication/replica_manager.py: …r = self._timers.at(max(due, self._actions.now_ms + 1), self._shrink)"
        " -> …r = self._timers.at(max(due, self._actions.now_ms - 1), self._shrink)"
    ): (
        "Equivalent except for one millisecond: a follower that is already late when the timer is set is checked in the same turn. "
        "No rule requires either."
    ),
    (
        'broker/config/dynamic.py: …(self._cluster.config.get(self._broker_id, name)) or ""'
        ' -> …(self._cluster.config.get(self._broker_id, name)) and ""'
    ): (
        "Gap, closed: APPEND and SUBTRACT were tested for the lists of topics only. "
        "`test_appending_compact_to_the_broker_cleanup_policy_delete_sets_both_policies` catches it."
    ),
}
