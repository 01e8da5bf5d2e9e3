"""Names that may reach the shadow database: settings, catalog relations, functions."""

from __future__ import annotations

EPSILON = "sqlrs.epsilon"
ERROR_BARS = "sqlrs.error_bars"
ERROR = "sqlrs.error"
ERROR_COLUMNS = "sqlrs.error_columns"
BUDGET = "sqlrs.budget"
HISTORY = "sqlrs.history"
ANALYST = "sqlrs.analyst"
RELEASE_SETTINGS = frozenset({EPSILON, ERROR_BARS, ERROR, ERROR_COLUMNS})

SETTABLE = frozenset(
    {
        *RELEASE_SETTINGS,
        "application_name",
        "bytea_output",
        "client_encoding",
        "client_min_messages",
        "datestyle",
        "default_transaction_deferrable",
        "default_transaction_isolation",
        "default_transaction_read_only",
        "escape_string_warning",
        "extra_float_digits",
        "idle_in_transaction_session_timeout",
        "intervalstyle",
        "jit",
        "lock_timeout",
        "plan_cache_mode",
        "search_path",
        "standard_conforming_strings",
        "statement_timeout",
        "timezone",
        "transaction_isolation",
        "transaction_read_only",
    }
)

SHOWN = SETTABLE | {
    BUDGET,
    "block_size",
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "lc_collate",
    "lc_ctype",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "max_identifier_length",
    "max_index_keys",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
}

# The proxy reads SQL as UTF-8 with standard strings; any other reading would differ from its own.
FIXED = {
    "client_encoding": frozenset({"utf8", "utf-8", "unicode", "default"}),
    "standard_conforming_strings": frozenset({"on", "true", "1", "yes", "default"}),
}

# System relations that describe data, activity or credentials rather than the schema.
HIDDEN_RELATIONS = frozenset(
    {
        "pg_authid",
        "pg_backend_memory_contexts",
        "pg_file_settings",
        "pg_hba_file_rules",
        "pg_ident_file_mappings",
        "pg_largeobject",
        "pg_locks",
        "pg_shadow",
        "pg_shmem_allocations",
        "pg_statistic",
        "pg_statistic_ext_data",
        "pg_stats",
        "pg_stats_ext",
        "pg_stats_ext_exprs",
        "pg_subscription",
        "pg_user_mapping",
        "pg_user_mappings",
    }
)
HIDDEN_PREFIXES = ("pg_stat_", "pg_statio_", "pg_replication", "pg_aios")

# First words of statements that change or administer something: never for analysts.
FORBIDDEN = frozenset(
    [
        "alter",
        "analyze",
        "call",
        "checkpoint",
        "cluster",
        "comment",
        "create",
        "delete",
        "do",
        "drop",
        "grant",
        "import",
        "insert",
        "load",
        "lock",
        "merge",
        "reassign",
        "refresh",
        "reindex",
        "revoke",
        "security",
        "truncate",
        "update",
        "vacuum",
    ]
)

# First words of statements that only read or talk, but by ways that are not offered.
UNSUPPORTED = {
    "copy": "counts are answered by SELECT count(*)",
    "declare": "counts have one row: no cursor is needed",
    "execute": "use your driver's prepared statements",
    "explain": "write EXPLAIN and a SELECT over the exposed tables, without options",
    "fetch": "counts have one row: no cursor is needed",
    "listen": None,
    "move": "counts have one row: no cursor is needed",
    "notify": None,
    "prepare": "use your driver's prepared statements",
}
