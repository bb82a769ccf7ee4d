"""Make the trace of version 2 again, and what the code of old commits reads from the artifacts with traces.

    git worktree add --detach CHECKOUT COMMIT
    python -m tests.artifacts.make_versions record CHECKOUT             the artifact `trace-2`; COMMIT is 2b9d9549
    python -m tests.artifacts.make_versions read CHECKOUT ARTIFACT      its entry in traces.json; COMMIT is the one that made the artifact

2b9d9549 is the last commit that wrote traces of version 2. Its broker runs in a process, and kafka-python is its client. `read` runs the decoder of
the checkout in a process, so that no code of this checkout takes part.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.artifacts.checkouts import output_of, running_broker
from tests.artifacts.holding import expect, expected, pack, unpack
from tests.artifacts.make import end_of_an_entry

TRACE_PORT = 19092
RECORDS = 20
EXPECTED = "traces"
"""The name of the JSON file with what old commits read from traces."""
_READ = """
import json, sys
from collections import Counter
from pathlib import Path
try:
    from kafkaproto.trace.reading import Trace
except ImportError:  # up to version 3
    from kafkaproto.trace.format import Trace

def plain(value):
    return value.hex() if isinstance(value, bytes) else value

[path] = Path(sys.argv[1]).iterdir()
entries = list(Trace(path).entries())
exchanges = [entry for entry in entries if type(entry).__name__ == "Exchange"]
produced = next(entry for entry in exchanges if entry.request[:2] == bytes(2))
print(json.dumps({
    "version": int.from_bytes(path.read_bytes()[8:10], "big"),
    "entries": Counter(type(entry).__name__ for entry in entries),
    "requests": Counter(int.from_bytes(entry.request[:2], "big") for entry in exchanges),
    "events": Counter(entry.kind for entry in entries if type(entry).__name__ == "Event"),
    "throttled": sum(entry.throttle_ms > 0 for entry in exchanges),
    "first_produce": {name: plain(value) for name, value in produced._asdict().items()},
    "last_event": next(entry.facts for entry in reversed(entries) if type(entry).__name__ == "Event"),
}))
"""


def record(checkout: Path) -> None:
    """Record clients that write, also without a response and under a quota, and read as a group, and build tables that end before the trace."""
    from kafka import KafkaConsumer, KafkaProducer

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        options = ["--port", str(TRACE_PORT), "--topic", "t:2", "--trace", str(folder / "trace")]
        options += ["-c", "quota.producer.default=300"]
        with running_broker(checkout, options, signal.SIGTERM) as bootstrap:
            producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="writer", acks="all")
            for number in range(RECORDS):
                producer.send("t", b"x" * 100, partition=number % 2).get(30)
            producer.close()
            producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="careless", acks=0)
            producer.send("t", b"x", partition=0).get(30)
            producer.close()
            consumer = KafkaConsumer(
                "t", bootstrap_servers=bootstrap, client_id="reader", group_id="g", auto_offset_reset="earliest"
            )
            received = 0
            while received < RECORDS:
                received += sum(map(len, consumer.poll(100).values()))
            consumer.commit()
            consumer.close()
        [path] = (folder / "trace").iterdir()
        whole = path.read_bytes()
        path.write_bytes(whole[: end_of_an_entry(path, len(whole) * 2 // 3)])
        tables = ["-m", "pipeline.trace.tables", str(folder / "trace"), str(folder / "tables"), "--without-spark"]
        output_of(checkout, *tables)
        path.write_bytes(whole)
        pack("trace-2", folder)


def read(checkout: Path, artifact: str) -> None:
    """Store what the decoder of a checkout reads from the trace of an artifact."""
    with tempfile.TemporaryDirectory() as scratch:
        trace = unpack(artifact, Path(scratch)) / "trace"
        facts: dict[str, Any] = json.loads(output_of(checkout, "-c", _READ, str(trace)))
    expect(EXPECTED, expected(EXPECTED) | {artifact: facts})


if __name__ == "__main__":
    {"record": record, "read": read}[sys.argv[1]](Path(sys.argv[2]).resolve(), *sys.argv[3:])
