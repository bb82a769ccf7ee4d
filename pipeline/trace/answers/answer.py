"""The parts of the report that answer questions: `Answer` (a question with its queries), `Query` and `Result` (the rows of a query).

A result is small however large the trace is. This module does not depend on any particular answer or how answers are shown.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.pipeline.trace.audit.rule import DERIVED, NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafkaproto.pipeline.trace.audit.rule import Tables

MAX_ROWS = 1000
"""The maximum number of rows that the report shows of the result of a query. To get all rows, run the text of the query, `Query.source`."""

GIVEN_UP = "NOT has_response AND coalesce(acks, -1) <> 0"
"""SQL: true for a request that expects a response (acks is not 0) but has none in the trace.

Either the connection was closed before the response, for example by a consumer that stopped during a fetch, or a capture lacks the response.
"""
WHOLE = "has_response AND problem IS NULL"
"""SQL: true for a request whose response was decoded completely."""

FAMILY = (
    "regexp_replace(regexp_replace(coalesce(client_id, '(none)'), '[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}', '*'), "
    "'(^|-)[0-9]+(?=-|$)', '$1*')"
)
"""SQL: the client id with `*` for the parts that differ between the clients of one program.

These parts are UUIDs, and numbers between dashes or at the end. Braces are doubled, as `Tables.sql` requires.
"""


def _with_plain_names(query: str) -> str:
    """Convert a query for `Tables.sql`, with table names in braces (`{requests}`), to plain SQL that Spark can run. Returns the SQL.

    The braces around names of stored tables are removed, so the SQL needs a view for each of these tables. The name of a derived table (`DERIVED`),
    which is computed from stored tables, is replaced by the query that computes it.
    """
    used = {name for _, name, _, _ in Formatter().parse(query) if name}
    derived = {name: f"({_with_plain_names(DERIVED[name])})" for name in used & DERIVED.keys()}
    return inspect.cleandoc(query).format(**dict(zip(NAMES, NAMES, strict=True)), **derived)


class Query(NamedTuple):
    """A query of the report, whose result is shown as one table.

    name: identifies the query in its section. about: the caption of the table. make: SQL with table names in braces, for `Tables.sql`, or a function
    that returns the rows.
    """

    name: str
    about: str
    make: str | Callable[[Tables], DataFrame]

    @property
    def source(self) -> str:
        """Return the text of the query: its SQL, or the source code of the function that computes the rows.

        The SQL runs in a session that has a view for each stored table, with the name of the table.
        """
        if isinstance(self.make, str):
            return _with_plain_names(self.make)
        return f"# {self.make.__module__}\n{inspect.getsource(self.make)}"

    def frame(self, tables: Tables) -> DataFrame:
        """Return the result of the query as a lazy DataFrame. tables: the tables that the query reads. Raises any exception of Spark."""
        return tables.sql(self.make) if isinstance(self.make, str) else self.make(tables)


class Answer(NamedTuple):
    """A part of the report that answers one question about recorded traffic: the question, and the queries whose results answer it.

    name: identifies the answer's section in the report. The names of the Parquet files with the results begin with it. question: the question in the
    words of a user. queries: each gives one table of the section.
    """

    name: str
    question: str
    queries: tuple[Query, ...]


class Result(NamedTuple):
    """The computed rows of a query: at most 1,000 (`MAX_ROWS`).

    columns: names of the columns, in order. rows: each maps the name of a column to its value. more: True if the query has further rows.
    """

    query: Query
    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool


def evaluate_query(query: Query, tables: Tables) -> Result:
    frame = query.frame(tables)
    rows = [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.asDict().items()}
        for row in frame.limit(MAX_ROWS + 1).collect()
    ]
    return Result(query, frame.columns, rows[:MAX_ROWS], len(rows) > MAX_ROWS)
