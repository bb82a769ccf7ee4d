"""A check that a broker has the journal topic of a live job, and that the topic does not end before the offset at which the job continues."""

from __future__ import annotations

from pathlib import Path

from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkaproto.pipeline.ask import ask
from kafkaproto.pipeline.live.job import resume_offset

METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 6
LATEST = -1


def problem(bootstrap: str, journal: str, folder: Path) -> str | None:
    """Return what is wrong with the broker or its journal topic, and how to fix it; None if the job can start.

    bootstrap: host:port of brokers, separated by commas. journal: name of the journal topic. folder: the live job's checkpoint folder. Without
    this check, Spark would retry for minutes without saying what to do.
    """
    why: object = None
    for address in bootstrap.split(","):
        try:
            request = MetadataRequest([MetadataRequestTopic(name=journal)], allow_auto_topic_creation=False)
            metadata = ask(address, request, METADATA_VERSION)
            if metadata.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return f"{address} has no topic {journal}; start it as kafkaproto broker --journal-topic {journal}"
            end, start = _end(metadata, journal), resume_offset(folder, journal)
        except (OSError, EOFError, DecodeError) as error:
            why = error
            continue
        if end < start:
            return (
                f"{journal} of {address} ends at offset {end}, but {folder} continues at {start}: the broker was restarted without its data; "
                "give another --checkpoint, or start the broker with --data-dir"
            )
        return None
    return f"no broker responds at {bootstrap} ({why}); start one with kafkaproto broker --journal-topic {journal}"


def _end(metadata: MetadataResponse, journal: str) -> int:
    """Return the end offset of the journal topic's only partition, from its leader.

    metadata: a response that describes only this topic. journal: name of the topic. Raises OSError if the partition has no leader or the leader
    cannot be reached, and EOFError if the leader closes the connection.
    """
    leader = next((b for b in metadata.brokers if b.node_id == metadata.topics[0].partitions[0].leader_id), None)
    if leader is None:
        raise OSError(f"the partition of topic {journal} has no leader; start the broker that has its replica")
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=journal, partitions=[partition])])
    list_offsets = ask(f"{leader.host}:{leader.port}", request, LIST_OFFSETS_VERSION)
    return int(list_offsets.topics[0].partitions[0].offset)
