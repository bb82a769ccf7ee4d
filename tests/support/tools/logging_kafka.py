"""A logging library for a real Kafka: without this library, Kafka rejects changes of its loggers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.rivals.jars import tools_jars

_OF_3_9 = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.SimpleLayout
log4j.logger.tests.logger=INFO
"""
_OF_4 = """rootLogger.level=INFO
logger.tests.name=tests.logger
logger.tests.level=INFO
"""


def logging_classes(version: str, folder: Path) -> Path:
    """Return what `KafkaCluster` takes as `classes` so that Kafka has the loggers `root` and `tests.logger`. folder: for their settings."""
    (folder / "log4j.properties").write_text(_OF_3_9)
    (folder / "log4j2.properties").write_text(_OF_4)
    jars = [str(path) for path in tools_jars(version).glob("reload4j-*.jar")]
    return Path(":".join([str(folder), *jars]))
