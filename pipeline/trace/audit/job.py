"""The job of `kafkaproto audit`: updates the tables, evaluates every rule over them, and writes the outcomes."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.audit.rules import RULES, evaluate
from kafkaproto.pipeline.trace.audit.verdict import as_json, remarks, status, text
from kafkaproto.pipeline.trace.progress import Progress
from kafkaproto.pipeline.trace.store import Store, StoreError
from kafkaproto.pipeline.trace.tables import build, with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(out: Path, trace: Path | None, json_file: Path | None) -> int:
    """Audit the Parquet tables in the folder `out`, in a new Spark session, and return the exit status, which `command.STATUSES` explains.

    trace: path of a trace, whose new part is first added to the tables; None to audit the tables as they are. json_file: receives the outcomes
    as JSON, None for no such file. The outcomes are also printed as text. Raises StoreError if there are no tables and `trace` is None.
    """
    if trace is None and not (out.is_dir() and Store(out).manifest()):
        raise StoreError(f"folder {out} holds no tables: create them with kafkaproto tables TRACE OUT")
    with local_session("kafkaproto audit") as spark:
        return audit_folder(spark, out, trace, json_file)


def audit_folder(spark: SparkSession, out: Path, trace: Path | None, json_file: Path | None) -> int:
    """Audit the Parquet tables in the folder `out`, and return the exit status, which `command.STATUSES` explains.

    trace: path of a trace, whose new part is first added to the tables; None to audit the tables as they are. json_file: receives the outcomes
    as JSON, None for no such file. The outcomes are also printed as text. Raises StoreError if the tables are missing, damaged or
    locked by another job, and TraceError if there is no trace at the path.
    """
    progress = Progress()
    if trace is not None:
        progress.note(f"tables of {trace}")
        _, notices = build(trace, out, partial(with_spark, spark, progress=progress.note))
        for notice in notices:
            sys.stderr.write(f"kafkaproto audit: {notice.text}\n")
    store = Store(out)
    with store.locked():
        tables = Tables.of(spark, out)
        outcomes = [evaluate(rule, tables, progress.note) for rule in RULES]
        notes = remarks(store, tables)
    sys.stdout.write(text(outcomes, notes))
    if json_file is not None:
        json_file.write_text(json.dumps(as_json(outcomes, notes), indent=1) + "\n")
    return status(outcomes)
