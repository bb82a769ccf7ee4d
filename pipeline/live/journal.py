"""Whether a broker has the journal that a live job is to read, from the offset at which the job goes on."""

from __future__ import annotations

from pathlib import Path

from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkaproto.pipeline.ask import ask
from kafkaproto.pipeline.live.job import goes_on_at

METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 6
LATEST = -1


def problem(bootstrap: str, journal: str, folder: Path) -> str | None:
    """Return what is wrong with the broker or its journal and how to fix it, or None. Spark would retry for minutes and not say what to do."""
    why: object = None
    for address in bootstrap.split(","):
        try:
            request = MetadataRequest([MetadataRequestTopic(name=journal)], allow_auto_topic_creation=False)
            answer = ask(address, request, METADATA_VERSION)
            if answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return f"{address} has no topic {journal}; start it as kafkaproto broker --journal-topic {journal}"
            end, begin = _end(answer, journal), goes_on_at(folder, journal)
        except (OSError, EOFError, DecodeError) as error:
            why = error
            continue
        if end < begin:
            return (
                f"{journal} of {address} ends at offset {end}, and {folder} goes on at {begin}: the broker was started anew; "
                "give another --checkpoint, or the broker a --data-dir"
            )
        return None
    return f"no broker answers at {bootstrap} ({why}); start one with kafkaproto broker --journal-topic {journal}"


def _end(answer: MetadataResponse, journal: str) -> int:
    """Return the end offset of the journal's one partition on its leader. Raises OSError, EOFError."""
    leader = next((b for b in answer.brokers if b.node_id == answer.topics[0].partitions[0].leader_id), None)
    if leader is None:
        raise OSError(f"nobody leads {journal}")
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=journal, partitions=[wanted])])
    told = ask(f"{leader.host}:{leader.port}", request, LIST_OFFSETS_VERSION)
    return int(told.topics[0].partitions[0].offset)
