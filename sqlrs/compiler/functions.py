"""Which functions an analyst may call: our own list for each engine, by the name as written.

A function is on the list because it is deterministic, has no side effect, and neither waits nor
makes large values from small ones, and because the engine's own catalog says so: the tests compare
every name with PostgreSQL's pg_proc, DuckDB's duckdb_functions() and Spark's SHOW FUNCTIONS, and
what the tree makes of a call with the call as written. What a parser knows besides is not on it.
"""

from __future__ import annotations

import re

from sqlglot import exp

ANY_NUMBER = 100
"""The largest number of arguments of a function that takes any number of them."""


def _each(names: str, least: int, most: int) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(names.split(), (least, most))


_BOTH: dict[str, tuple[int, int]] = {
    # Numbers.
    **_each("abs ceil ceiling floor sign sqrt cbrt exp ln", 1, 1),
    **_each("sin cos tan asin acos atan degrees radians", 1, 1),
    **_each("power pow mod atan2 gcd lcm", 2, 2),
    "pi": (0, 0),
    "round": (1, 2),
    "trunc": (1, 1),
    "greatest": (1, ANY_NUMBER),
    "least": (1, ANY_NUMBER),
    # Text.
    **_each("lower upper length char_length reverse ascii", 1, 1),
    **_each("left right starts_with strpos", 2, 2),
    **_each("trim ltrim rtrim", 1, 2),
    **_each("substring substr", 2, 3),
    **_each("replace split_part", 3, 3),
    "concat": (1, ANY_NUMBER),
    # Nulls and choices.
    "coalesce": (1, ANY_NUMBER),
    "nullif": (2, 2),
    # Dates and times.
    "date_trunc": (2, 2),
    "make_date": (3, 3),
    "isfinite": (1, 1),
    "age": (2, 2),
}

# Spark has no such function, or one that means something else.
_NOT_OF_SPARK = frozenset({"gcd", "lcm", "trunc", "starts_with", "strpos", "isfinite", "age"})

FUNCTIONS: dict[str, dict[str, tuple[int, int]]] = {
    "duckdb": {
        **_BOTH,
        **_each("len lcase ucase", 1, 1),
        **_each("ends_with prefix suffix contains instr ifnull", 2, 2),
        **_each("year month day hour minute quarter", 1, 1),
        **_each("dayofweek dayofyear", 1, 1),
        "date_part": (2, 2),
        "date_diff": (3, 3),
        "datediff": (3, 3),
        "regexp_matches": (2, 2),
        "if": (3, 3),
    },
    "postgres": {**_BOTH, "btrim": (1, 2), "character_length": (1, 1)},
    "spark": {
        **{name: _BOTH[name] for name in _BOTH if name not in _NOT_OF_SPARK},
        **_each("trim ltrim rtrim", 1, 1),
        **_each("greatest least", 2, ANY_NUMBER),
        **_each("lcase ucase year month day hour minute quarter dayofweek dayofyear", 1, 1),
        **_each("startswith endswith contains instr ifnull datediff", 2, 2),
        "if": (3, 3),
    },
}
"""By dialect, every function with the least and the largest number of its arguments.

date_part is not PostgreSQL's here: the tree holds it as EXTRACT, whose type is another one.
"""

ABOVE: dict[str, frozenset[str]] = {
    "spark": frozenset(
        """
        abs ceil ceiling floor sign sqrt exp ln power pow round greatest least lower upper length
        coalesce nullif ifnull year month day quarter if
        """.split()  # noqa: SIM905
    )
}
"""By dialect, the functions that DuckDB, which runs what stands above the cuts, has alike.

Of a dialect that is not named here, all on its list are, or are written in DuckDB's words.
"""

LISTED = frozenset[str]().union(*FUNCTIONS.values())
"""The names on the lists of all dialects: no owner can give them another meaning."""


def is_declared(node: exp.Expr) -> bool:
    """Whether a node of a tree that the grammar let pass calls a function of the owner's."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() not in LISTED


SETTINGS_DEPENDENT: frozenset[str] = frozenset({"concat", "date_trunc", "extract"})
"""Functions that PostgreSQL calls stable: of some types they depend on TimeZone or DateStyle.

Those are settings of the session that the owner gives, and no statement of an analyst changes them.
"""

_FORMS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Ceil: frozenset({"this"}),
    exp.Floor: frozenset({"this"}),
    exp.Extract: frozenset({"this", "expression"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.StrPosition: frozenset({"this", "substr"}),
}

SPECIAL_FORMS: dict[str, dict[type[exp.Expr], frozenset[str]]] = {
    "duckdb": _FORMS,
    "postgres": {**_FORMS, exp.RegexpLike: frozenset({"this", "expression"})},
    "spark": _FORMS,
}
"""By dialect, nodes that the tree keeps no name of, and their arguments: CASE and its like.

DuckDB's ~ matches a part of the text in one version and the whole in another, so it is left out.
"""

_FORM_WORDS = frozenset(
    {"cast", "ceil", "ceiling", "extract", "floor", "position", "substring", "trim"}
)
FORM_WORDS: dict[str, frozenset[str]] = {
    "duckdb": _FORM_WORDS | {"if", "try_cast"},
    "postgres": _FORM_WORDS,
    "spark": _FORM_WORDS | {"if", "try_cast"},
}
"""The words of these forms, and of casts."""

TEMPORAL_NODES: tuple[type[exp.Expr], ...] = (
    exp.DateDiff,
    exp.DateFromParts,
    exp.Extract,
    exp.TimestampTrunc,
    exp.Interval,
)
TEMPORAL_NAMES: frozenset[str] = frozenset({"age", "isfinite", "make_date"})
"""Functions of dates and times: a plain text among their arguments may be read as one."""

VOLATILE_NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.CurrentDate,
        exp.CurrentDatetime,
        exp.CurrentTime,
        exp.CurrentTimestamp,
        exp.CurrentUser,
        exp.CurrentSchema,
        exp.CurrentCatalog,
        exp.CurrentDatabase,
        exp.Localtime,
        exp.Localtimestamp,
        exp.SessionUser,
        exp.Rand,
        exp.Randn,
        exp.Uuid,
        exp.NextValueFor,
        exp.Version,
    }
)
"""Functions whose value depends on the moment, the session or chance."""

VOLATILE_NAMES: frozenset[str] = frozenset(
    {
        "clock_timestamp",
        "current_setting",
        "currval",
        "current_query",
        "dblink",
        "gen_random_uuid",
        "get_current_time",
        "getenv",
        "getvariable",
        "inet_client_addr",
        "lastval",
        "lo_export",
        "lo_import",
        "nextval",
        "now",
        "pg_advisory_lock",
        "pg_backend_pid",
        "pg_cancel_backend",
        "pg_notify",
        "pg_read_binary_file",
        "pg_read_file",
        "pg_sleep",
        "pg_terminate_backend",
        "query_to_xml",
        "random",
        "read_blob",
        "read_text",
        "set_config",
        "setseed",
        "setval",
        "sleep_ms",
        "statement_timestamp",
        "timeofday",
        "today",
        "transaction_timestamp",
        "txid_current",
        "uuid",
        "uuid_generate_v4",
        "uuidv4",
        "uuidv7",
    }
)
"""Volatile functions and functions with side effects that have no class of their own."""

_MOMENT = re.compile(r"(?<![a-z])(now|today|tomorrow|yesterday)(?![a-z])", re.IGNORECASE | re.ASCII)


def names_the_moment(text: str) -> bool:
    """Whether PostgreSQL may read the text as a date or time of the moment.

    It takes a text apart into runs of letters, so 'now,', ' NOW ' and '12:00 today' do. The other
    words, epoch, infinity and allballs, are the same at every moment.
    """
    return _MOMENT.search(text) is not None
