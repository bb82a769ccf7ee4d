"""Compare random instances of one message version with the output of Kafka's classes."""

from __future__ import annotations

from kafkaproto.json_form import from_json, to_json
from tests.support.codec.catalogue import Entry
from tests.support.codec.values import Values
from tests.support.oracle.oracle import Oracle, without_records

INSTANCES = 200
"""Number of instances for each version of each message and each release that has it."""


class Instances:
    """Random instances for every release that has the version. Every second one has unknown tags, which JSON cannot express."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        layout, values = entry.layout, Values(entry.id)
        self.objects = list(values.objects(layout, INSTANCES))
        self.written = [layout.encode(obj) for obj in self.objects]
        self.as_json = [to_json(layout, obj) for obj in self.objects]
        for obj in self.objects[1::2]:
            values.add_unknown_tags(layout, obj)
        self.sent = [layout.encode(obj) for obj in self.objects]

    def compare(self, kafka: Oracle, version: int) -> None:
        """Compare the instances with one release. `version` uses that release's numbering."""
        layout = self.entry.layout
        results = kafka.many(self.entry.name, version, self.as_json, self.sent)
        for obj, ours, fields, data, (theirs, decoded) in zip(
            self.objects, self.written, self.as_json, self.sent, results, strict=True
        ):
            assert theirs == ours, obj
            shown = without_records(layout, fields)
            assert decoded == (len(data), data, shown), obj
            assert layout.decode(decoded[1]) == obj
            read = from_json(layout, decoded[2])
            if layout.has_records:  # Kafka's JSON omits record bytes
                assert to_json(layout, read) == shown
            else:
                assert layout.encode(read) == ours
