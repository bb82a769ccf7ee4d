"""Random instances of one version of a message, and whether Kafka's classes write and read them as we do."""

from __future__ import annotations

from kafkaproto.json_form import from_json, to_json
from tests.support.codec.catalogue import Entry
from tests.support.codec.values import Values
from tests.support.oracle.oracle import Oracle, without_records

INSTANCES = 200
"""For each version of each message, and of each release that has it."""


class Instances:
    """What is compared with every release that has the version. Every second one has unknown tags, which have no JSON."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        layout, values = entry.layout, Values(entry.id)
        self.objects = list(values.objects(layout, INSTANCES))
        self.written = [layout.encode(obj) for obj in self.objects]
        self.told = [to_json(layout, obj) for obj in self.objects]
        for obj in self.objects[1::2]:
            values.add_unknown_tags(layout, obj)
        self.sent = [layout.encode(obj) for obj in self.objects]

    def compare(self, kafka: Oracle, version: int) -> None:
        """``version`` as that release counts it."""
        layout = self.entry.layout
        answers = kafka.many(self.entry.name, version, self.told, self.sent)
        for obj, ours, fields, data, (theirs, decoded) in zip(
            self.objects, self.written, self.told, self.sent, answers, strict=True
        ):
            assert theirs == ours, obj
            shown = without_records(layout, fields)
            assert decoded == (len(data), data, shown), obj
            assert layout.decode(decoded[1]) == obj
            read = from_json(layout, decoded[2])
            if layout.has_records:  # Kafka leaves their bytes out
                assert to_json(layout, read) == shown
            else:
                assert layout.encode(read) == ours
