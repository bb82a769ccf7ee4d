"""The reasons why some of Kafka's settings have no effect in this broker. A running broker does not import this module."""

from __future__ import annotations

import re

REASONS: dict[str, str] = {
    "TLS, SASL and delegation tokens are not served.": r"""
        ssl\..* sasl\..* delegation\.token\..* connection\.failed\.authentication\.delay\.ms connections\.max\.reauth\.ms
    """,
    "The cluster has no ZooKeeper. Kafka 3.9.1 uses these settings only in clusters with ZooKeeper; 4.2.0 does not have them.": r"""
        zookeeper\..* password\.encoder\..* control\.plane\.listener\.name broker\.id\.generation\.enable reserved\.broker\.max\.id
        leader\.imbalance\.per\.broker\.percentage controlled\.shutdown\.(max\.retries|retry\.backoff\.ms)
    """,
    "The cluster has no ZooKeeper. A KRaft cluster of Kafka 3.9.1 takes its version from the feature `metadata.version`.": (
        r"inter\.broker\.protocol\.version"
    ),
    "Kafka 3.9.1 ignores it, too, unless `inter.broker.protocol.version` is below 3.0.": r"(log\.)?message\.format\.version",
    "Tiered storage is not served.": r"remote\..* (log\.)?local\.retention\.(bytes|ms)",
    "Share groups and streams groups are not served.": r"(group\.)?(share|streams)\..*",
    "Two-phase commit (KIP-939) needs InitProducerId 6, which Kafka 4.2.0 offers only with `unstable.api.versions.enable=true`.": (
        r"transaction\.two\.phase\.commit\.enable"
    ),
    "There is one controller, which is a part of the process. It needs no quorum and has no queue of events to measure.": (
        r"controller\.(quorum|performance)\..*"
    ),
    "The metadata log is one file of the data directory, in its own format. It has no replicas, segments or retention.": (
        r"internal\.metadata\..* metadata\.log\.(dir|segment\..*) metadata\.max\.retention\..*"
    ),
    "The controller knows without requests whether a broker runs.": r"""
        initial\.broker\.registration\.timeout\.ms server\.max\.startup\.time\.ms controller\.socket\.timeout\.ms
    """,
    "There is no authorizer, so no listener waits for it.": r"early\.start\.listeners",
    "It has no effect in Kafka 3.9.1, either: no production level of its `metadata.version` supports eligible leader replicas.": (
        r"eligible\.leader\.replicas\.enable"
    ),
    "The broker has one thread.": r"""
        background\.threads num\.(io|network|recovery)\.threads(\.per\.data\.dir)? num\.replica\.fetchers group\.coordinator\.threads
        log\.cleaner\.threads
    """,
    "Received requests do not wait in a queue for a thread.": r"queued\.max\..*",
    "A request leaves purgatory as soon as it is completed.": r".*\.purgatory\.purge\.interval\.requests",
    "Compaction reads and writes a log in one step, without buffers of a fixed size.": (
        r"log\.cleaner\.(dedupe\.buffer\.size|io\.buffer\..*)"
    ),
    "A coordinator reads a partition without a buffer of a fixed size.": (
        r"(offsets|transaction\.state\.log)\.load\.buffer\.size"
    ),
    "All brokers are in one process. They do not connect to each other.": (
        r"replica\.socket\..* socket\.connection\.setup\..*"
    ),
    "The brokers share one log directory, the option `--data-dir`.": r"""
        log\.dirs? alter\.log\.dirs\..* replica\.alter\.log\.dirs\..* num\.replica\.alter\.log\.dirs\.threads log\.dir\.failure\.timeout\.ms
    """,
    "A file of a segment grows with its records.": r"(log\.)?preallocate",
    "There are no checkpoint files. After a restart the broker reads all batches in the segment files, and all records count as committed.": r"""
        replica\.high\.watermark\.checkpoint\.interval\.ms log\.flush\.offset\.checkpoint\.interval\.ms
    """,
    "There are no checkpoint files. Each change of a log start offset is written to the metadata log at once.": (
        r"log\.flush\.start\.offset\.checkpoint\.interval\.ms"
    ),
    "This broker cannot load a Java class.": r"""
        metric\.reporters kafka\.metrics\..* auto\.include\.jmx\.reporter security\.providers
    """,
    "Each metric of the broker is recorded at every level.": r"metrics\.recording\.level",
}
"""Maps each reason to the names of the settings that have no effect for this reason: regular expressions, separated by spaces."""


def reason_of(name: str) -> str | None:
    """Return why a setting has no effect; None if no reason is known."""
    return next((text for text, patterns in REASONS.items() if _matches(patterns, name)), None)


def _matches(patterns: str, name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns.split())
