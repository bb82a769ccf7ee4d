"""The reasons why some of Kafka's settings have no effect in this broker. Only the documentation loads this module."""

from __future__ import annotations

import re

REASONS: dict[str, str] = {
    "TLS, SASL and delegation tokens are not served.": r"""
        ssl\..* sasl\..* security\..* delegation\.token\..* password\.encoder\..* connection\.failed\.authentication\.delay\.ms
        connections\.max\.reauth\.ms
    """,
    "The cluster needs no ZooKeeper. Kafka reads these settings only in clusters with ZooKeeper, or ignores them since 3.0.": r"""
        zookeeper\..* control\.plane\.listener\.name broker\.id\.generation\.enable reserved\.broker\.max\.id inter\.broker\.protocol\.version
        (log\.)?message\.format\.version leader\.imbalance\.per\.broker\.percentage controller\.socket\.timeout\.ms
    """,
    "Tiered storage is not served.": r"remote\..* (log\.)?local\.retention\.(bytes|ms)",
    "Share groups and Streams groups are not served.": r"(group\.)?(share|streams)\..*",
    "Two-phase commit (KIP-939) is not part of Kafka 4.2.": r"transaction\.two\.phase\.commit\.enable",
    "Controller and brokers are one process: there is no quorum, no metadata log on the wire, no registration and no heartbeat of brokers.": r"""
        controller\.(quorum|performance)\..* (internal\.)?metadata\..* broker\.(heartbeat\.interval|session\.timeout)\.ms
        initial\.broker\.registration\.timeout\.ms broker\.id node\.id early\.start\.listeners server\.max\.startup\.time\.ms
        unstable\.(api|feature)\.versions\.enable
    """,
    "A stopped broker hands over its partitions at once, and an unclean election takes place as soon as it is allowed.": r"""
        controlled\.shutdown\..* unclean\.leader\.election\.interval\.ms
    """,
    "The level of the feature `eligible.leader.replicas.version` decides.": r"eligible\.leader\.replicas\.enable",
    "The broker has one thread, which handles each request at once. It has no queues and no caches of this kind.": r"""
        background\.threads num\.(io|network|replica\.alter\.log\.dirs)\.threads num\.(recovery\.threads\.per\.data\.dir|replica\.fetchers)
        queued\.max\..* .*\.purgatory\.purge\.interval\.requests group\.coordinator\.(threads|append\.linger\.ms)
        log\.cleaner\.(threads|dedupe\.buffer\.size|io\..*) (offsets|transaction\.state\.log)\.load\.buffer\.size
    """,
    "Followers fetch within the process, not over sockets.": r"""
        replica\.socket\..* socket\.connection\.setup\..* replica\.high\.watermark\.checkpoint\.interval\.ms
    """,
    "A broker has one log directory, the option `--data-dir`.": r"""
        log\.dirs? alter\.log\.dirs\..* replica\.alter\.log\.dirs\..* log\.dir\.failure\.timeout\.ms
    """,
    "The files of a data directory have no index, and a deleted file is gone at once.": r"""
        (log\.)?index\..* segment\.index\.bytes log\.index\.size\.max\.bytes (log\.)?preallocate file\.delete\.delay\.ms
        log\.segment\.delete\.delay\.ms
    """,
    "Appended records survive the end of the process without a flush; `flush.messages` flushes for power failures, too.": r"""
        flush\.ms log\.flush\.(interval\.ms|scheduler\.interval\.ms|offset\.checkpoint.*|start\.offset\.checkpoint.*)
    """,
    "A check is scheduled when a log can need it, at the earliest one interval after the change.": r"log\.initial\.task\.delay\.ms",
    "Metrics are computed when they are requested, and no Java class can be loaded.": r"""
        (kafka\.)?metrics?\..* auto\.include\.jmx\.reporter log\.cleaner\..*\.metrics
    """,
}
"""Maps a reason to patterns of the settings that it concerns, separated by spaces."""


def reason_of(name: str) -> str | None:
    """Return why a setting has no effect; None if no reason is known."""
    return next((text for text, patterns in REASONS.items() if _matches(patterns, name)), None)


def _matches(patterns: str, name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns.split())
