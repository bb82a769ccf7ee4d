"""`kafkaproto trace cut`: chosen exchanges of a trace as a capture file, for Wireshark.

The frames are those of the trace, so records are missing and their lengths say so. What the trace does not know is made up: ports,
packets, handshakes. Must never know who recorded it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import BinaryIO

from kafkaproto.frame import frame
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Event, Exchange
from kafkaproto.trace.pcap import Address, End, Talk, file_header
from kafkaproto.trace.reading import Trace, files_of

KAFKA_PORT = 9092
FIRST_CLIENT_PORT, PORTS = 32_768, 32_768
NS_PER_MS = 1_000_000

Conversation = tuple[str, int, int]
"""(run, broker, connection)"""


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1 for a trace that ends in the middle of an entry; 2 when nothing was chosen. Raises TraceError and OSError."""
    chosen: list[tuple[int, int, Conversation, Exchange]] = []
    peers: dict[Conversation, Address] = {}
    status = 0
    for path in files_of(options.path):
        trace = Trace(path)
        name = trace.run
        zero_ns = int(trace.meta.get("wall_ms", 0)) * NS_PER_MS - int(trace.meta.get("at_ns", 0))
        for entry in trace.entries():
            if isinstance(entry, Event):
                _note_peer(entry, name, peers)
            elif isinstance(entry, Exchange) and _is_chosen(entry, options):
                chosen.append(
                    (
                        zero_ns + entry.received_ns,
                        zero_ns + entry.ready_ns,
                        (name, entry.broker, entry.connection),
                        entry,
                    )
                )
        if trace.torn:
            sys.stderr.write(f"kafkaproto trace: {trace.torn}\n")
            status = 1
    if not chosen:
        sys.stderr.write(f"kafkaproto trace: no exchange of {options.path} is as asked; nothing is written\n")
        return 2
    with options.out.open("wb") as file:
        _write(file, chosen, peers)
    sys.stdout.write(f"{len(chosen)} exchanges in {options.out}\n")
    return status


def _is_chosen(one: Exchange, options: argparse.Namespace) -> bool:
    if options.seq and one.seq not in options.seq:
        return False
    if options.connection is not None and one.connection != options.connection:
        return False
    if options.api is None and options.client is None:
        return True
    seen = Decoded(one)
    return (options.api is None or seen.api == options.api) and (
        options.client is None or seen.client == options.client
    )


def _note_peer(entry: Event, name: str, peers: dict[Conversation, Address]) -> None:
    facts = entry.facts
    if entry.kind == "opened":
        try:
            peers[name, facts["broker"], facts["connection"]] = ip_address(facts["peer"])
        except (KeyError, ValueError):
            return  # an address that nobody knows is made up


def _write(
    file: BinaryIO, chosen: list[tuple[int, int, Conversation, Exchange]], peers: dict[Conversation, Address]
) -> None:
    file.write(file_header())
    talks: dict[Conversation, Talk] = {}
    last_ns: dict[Conversation, int] = {}
    for at_ns, of, answers, data in sorted(_frames(chosen), key=lambda one: one[0]):
        if of not in talks:
            talks[of] = Talk(file, *_ends(peers.get(of), len(talks)))
            talks[of].open(at_ns)
        last_ns[of] = at_ns
        (talks[of].server_sends if answers else talks[of].client_sends)(at_ns, data)
    for of, talk in talks.items():
        talk.close(last_ns[of])


def _frames(chosen: list[tuple[int, int, Conversation, Exchange]]) -> Iterator[tuple[int, Conversation, bool, bytes]]:
    """(when, of which connection, whether it is an answer, frame with its length); of one exchange in this order."""
    for received_ns, ready_ns, of, one in sorted(chosen, key=lambda chosen: chosen[3].seq):
        yield received_ns, of, False, frame(one.request)
        if one.answered:
            yield max(received_ns, ready_ns), of, True, frame(one.response)


def _ends(peer: Address | None, number: int) -> tuple[End, End]:
    """The client's end, at its address where that is known, and the broker's, on this machine."""
    client = peer or IPv4Address("127.0.0.1")
    server: Address = IPv4Address("127.0.0.1") if client.version == 4 else IPv6Address("::1")
    return End(client, FIRST_CLIENT_PORT + number % PORTS), End(server, KAFKA_PORT)
