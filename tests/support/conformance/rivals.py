"""kfake (franz-go's) and the mock cluster inside librdkafka, each as one broker that a conformance test can talk to.

They take no settings and offer no control, so a test that needs more than one broker or another profile is not prepared.
Must never know what is tested.
"""

from __future__ import annotations

import subprocess
from typing import Any

from benchmarks.rivals.kfake import built
from kafkaproto.conformance.foreign import Foreign


class Kfake(Foreign):
    """kfake in a process of its own; it ends when we close its input. Where a test brought it down, the next has a new one."""

    assigns = takes_settings = False

    def __init__(self, profile: str) -> None:
        super().__init__(self._start(), "kafka", "kfake")

    def _start(self) -> list[tuple[str, int]]:
        self._process = subprocess.Popen(
            [built()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        host, _, port = self._process.stdout.readline().strip().rpartition(":")
        return [(host, int(port))]

    def restore(self) -> None:
        if self._process.poll() is not None:
            self.bootstrap = self._start()

    def stop(self) -> None:
        self._process.communicate(timeout=10)


class LibrdkafkaMock(Foreign):
    """The mock cluster that a confluent-kafka client carries inside; it lives as long as the client. Its broker is number 1."""

    creates = assigns = takes_settings = False
    first_id = 1
    metadata_version = 7  # its flexible answers have bytes too many

    def __init__(self, profile: str) -> None:
        from confluent_kafka.admin import AdminClient

        self._client: Any = AdminClient({"test.mock.num.brokers": "1"})
        [broker] = self._client.list_topics(timeout=10).brokers.values()
        super().__init__([(str(broker.host), broker.port)] * 2, "kafka", "librdkafka-mock")
        assert broker.id == self.first_id

    def stop(self) -> None:
        self._client = None
