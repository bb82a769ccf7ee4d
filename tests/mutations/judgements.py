"""What a person says of each mutation that survived, kept by hand. The key is `results.key_of` of its result."""

from __future__ import annotations

JUDGEMENTS: dict[str, str] = {
    "broker/log/store.py: self._fd = -1 -> pass": (
        "Gap, closed: an append that failed before its file was open would have raised AttributeError. "
        "`test_a_named_file_that_cannot_be_created_is_a_storage_error_and_then_can` catches it."
    ),
    "broker/log/store.py: if dropped: -> if not (dropped):": (
        "Gap, closed: the index would have kept the entries of dropped segments. "
        "`test_dropped_segments_leave_no_entries_in_the_index` catches it."
    ),
    "broker/log/replica_log.py: if epoch != self.epochs.latest and epoch >= 0: -> if epoch != self.epochs.latest or epoch >= 0:": (
        "Equivalent: `EpochCache.assign` ignores the latest epoch at a later offset, and every batch of a leader has an epoch of at least 0."
    ),
    "broker/server/main.py: gc.freeze() -> pass": (
        "Equivalent but for speed: full garbage collections would visit the modules that were loaded before the first request."
    ),
    "broker/group/settings.py: offset_metadata_max_bytes: int = 4_096 -> offset_metadata_max_bytes: int = 4097": (
        "Gap, closed: the cluster passes every value, so that no default was tested. "
        "`test_the_defaults_are_those_of_the_broker_settings` catches it."
    ),
    (
        "broker/fetch/fetch_condition.py: return self._params.replica_id >= 0 and self._reader.throttles(self._params, partitio…"
        " -> return self._params.replica_id >= 1 and self._reader.throttles(self._params, partitio…"
    ): (
        "Gap, closed: no throttled follower that waited had the id 0. "
        "`test_a_parked_fetch_of_any_throttled_follower_waits_to_its_end` catches it."
    ),
    "broker/log/segments.py: self._open_to_append(end - self.base) -> self._open_to_append(end + self.base)": (
        "Gap, closed: what a failed append had left was never removed by sealing a segment that is not the first. "
        "`test_a_leftover_is_removed_before_anything_follows_it` catches it."
    ),
    (
        "broker/replication/replica_manager.py: …r = self._timers.at(max(due, self._actions.now_ms + 1), self._shrink)"
        " -> …r = self._timers.at(max(due, self._actions.now_ms - 1), self._shrink)"
    ): (
        "Equivalent but for one millisecond: a follower that is late already when the timer is set is looked at in the same turn. "
        "No rule says which."
    ),
    (
        'broker/config/dynamic.py: …(self._cluster.config.get(self._broker_id, name)) or ""'
        ' -> …(self._cluster.config.get(self._broker_id, name)) and ""'
    ): (
        "Gap, closed: APPEND and SUBTRACT were tested for the lists of topics only. "
        "`test_a_list_of_a_broker_is_appended_to_as_it_is_in_force` catches it."
    ),
}
