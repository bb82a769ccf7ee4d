"""Command `kafkaproto trace cut`: writes selected requests and responses of a trace to a capture file for Wireshark.

The frames are those of the trace: they contain no records, and their lengths are adjusted. A trace does not contain ports, packets and handshakes, so
this module makes them up. This module does not depend on the recorder.
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
"""Identifies a connection in a trace: (id of the recording, broker id, number of the connection)."""


def run(options: argparse.Namespace) -> int:
    """Write the requests that the options select, with their responses, to a capture file (`kafkaproto trace cut`).

    Returns the exit status: 2 if no request was selected, else 1 if the last entry of a file of the trace is incomplete, else 0. Raises TraceError if
    a file is not a valid trace or there is none, and OSError if a file cannot be read or written.
    """
    chosen_requests: list[tuple[int, int, Conversation, Exchange]] = []
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
                chosen_requests.append(
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
    if not chosen_requests:
        sys.stderr.write(
            f"kafkaproto trace: no request in {options.path} matches the options; {options.out} is not written\n"
        )
        return 2
    with options.out.open("wb") as file:
        _write(file, chosen_requests, peers)
    sys.stdout.write(f"wrote {len(chosen_requests)} requests to {options.out}\n")
    return status


def _is_chosen(exchange: Exchange, options: argparse.Namespace) -> bool:
    if options.seq and exchange.seq not in options.seq:
        return False
    if options.connection is not None and exchange.connection != options.connection:
        return False
    if options.api is None and options.client is None:
        return True
    decoded_exchange = Decoded(exchange)
    return (options.api is None or decoded_exchange.api == options.api) and (
        options.client is None or decoded_exchange.client == options.client
    )


def _note_peer(entry: Event, name: str, peers: dict[Conversation, Address]) -> None:
    facts = entry.facts
    if entry.kind == "opened":
        try:
            peers[name, facts["broker"], facts["connection"]] = ip_address(facts["peer"])
        except (KeyError, ValueError):
            return  # an unknown address is replaced by the loopback address


def _write(
    file: BinaryIO, chosen: list[tuple[int, int, Conversation, Exchange]], peers: dict[Conversation, Address]
) -> None:
    file.write(file_header())
    connections: dict[Conversation, Talk] = {}
    last_ns: dict[Conversation, int] = {}
    for at_ns, connection, is_response, data in sorted(_frames(chosen), key=lambda timed: timed[0]):
        if connection not in connections:
            connections[connection] = Talk(file, *_ends(peers.get(connection), len(connections)))
            connections[connection].open(at_ns)
        last_ns[connection] = at_ns
        talk = connections[connection]
        (talk.server_sends if is_response else talk.client_sends)(at_ns, data)
    for connection, talk in connections.items():
        talk.close(last_ns[connection])


def _frames(chosen: list[tuple[int, int, Conversation, Exchange]]) -> Iterator[tuple[int, Conversation, bool, bytes]]:
    """Yield (time in ns since the epoch, connection, True for a response, frame with its length prefix), each request before its response.

    chosen: (time of the request, time of the response, connection, recorded request and response), both times in ns since the epoch.
    """
    for received_ns, ready_ns, connection, exchange in sorted(chosen, key=lambda entry: entry[3].seq):
        yield received_ns, connection, False, frame(exchange.request)
        if exchange.answered:
            yield max(received_ns, ready_ns), connection, True, frame(exchange.response)


def _ends(peer: Address | None, number: int) -> tuple[End, End]:
    """Return (address of the client, address of the broker) for the packets of a connection. The broker gets a loopback address.

    peer: the recorded address of the client. If `peer` is None, the client gets a loopback address, too. number: the number of the connection, which
    determines the client's port.
    """
    client = peer or IPv4Address("127.0.0.1")
    server: Address = IPv4Address("127.0.0.1") if client.version == 4 else IPv6Address("::1")
    return End(client, FIRST_CLIENT_PORT + number % PORTS), End(server, KAFKA_PORT)
