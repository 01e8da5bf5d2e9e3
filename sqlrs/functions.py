"""Which functions are known: deterministic and free of side effects, or volatile."""

from __future__ import annotations

from sqlglot import exp

PURE_NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        # Numbers.
        exp.Abs,
        exp.Ceil,
        exp.Floor,
        exp.Round,
        exp.Trunc,
        exp.Sign,
        exp.Sqrt,
        exp.Cbrt,
        exp.Exp,
        exp.Ln,
        exp.Pow,
        exp.Pi,
        exp.Sin,
        exp.Cos,
        exp.Tan,
        exp.Asin,
        exp.Acos,
        exp.Atan,
        exp.Atan2,
        exp.Degrees,
        exp.Radians,
        exp.Greatest,
        exp.Least,
        # Text.
        exp.Lower,
        exp.Upper,
        exp.Length,
        exp.Concat,
        exp.Substring,
        exp.Left,
        exp.Right,
        exp.Trim,
        exp.Replace,
        exp.Reverse,
        exp.StartsWith,
        exp.EndsWith,
        exp.Contains,
        exp.StrPosition,
        exp.Ascii,
        exp.SplitPart,
        exp.RegexpLike,
        # Nulls and choices.
        exp.Coalesce,
        exp.Nullif,
        exp.Case,
        exp.If,
        # Dates and times.
        exp.Extract,
        exp.Year,
        exp.Month,
        exp.Day,
        exp.Hour,
        exp.Minute,
        exp.Quarter,
        exp.DayOfWeek,
        exp.DayOfYear,
        exp.TimestampTrunc,
        exp.DateFromParts,
        exp.DateDiff,
    }
)
"""Functions that sqlglot knows by a class of their own."""

# Not bit_count: of -1 it depends on the width of the type, and equal columns may differ in that.
PURE_NAMES: frozenset[str] = frozenset(
    {
        "char_length",
        "contains",
        "date_part",
        "ends_with",
        "gcd",
        "isfinite",
        "lcm",
        "make_date",
        "prefix",
        "starts_with",
        "suffix",
    }
)
"""Functions that sqlglot keeps by name."""

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

MOMENT_WORDS: frozenset[str] = frozenset({"now", "today", "tomorrow", "yesterday"})
"""Texts that PostgreSQL reads as a date or time of the moment."""
