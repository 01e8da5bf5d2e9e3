"""What every installation has beside its queries: steps to its tables, functions, an edition."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

from sqlrs.templates import template

# The steps to the newest version of the tables, in sql_templates/procedures/migrations. A new
# version is one more file of statements in PL/pgSQL; a file that was released is never changed.
MIGRATIONS = ("1_tables", "2_counters", "3_version", "4_released_rows", "5_units")

# In an order in which each object finds those it needs.
OBJECTS = (
    "recorded_units",
    "spent_units",
    "balances",
    "counter",
    "grant_budget",
    "restore_spent",
    "budget",
    "history",
    "check_call",
    "spend",
    "await_durable",
    "random_word",
    "whole_power",
    "smoothness_ratio",
    "grow",
    "can_change",
    "weights",
    "turning_point",
    "coefficients",
    "horizon",
    "fold",
    "within",
    "settled",
    "noise",
    "integer_below",
    "exponential_coin",
    "laplace",
    "negative_exponential",
    "choose_threshold",
    "clipped_numbers",
    "log_series",
    "minus_logarithm",
    "growth",
    "lomax_pull",
    "lomax",
    "check_work",
)
# Further texts that functions are made of.
_OTHERS = (
    "procedures/table_facts",
    "postgres/columns",
    "postgres/keys",
    "procedures/changed",
    "procedures/check_arguments",
    "procedures/smooth_noise",
    "procedures/ratio",
    "procedures/staged_measure",
    "procedures/staged_round",
    "procedures/constant_noise",
    "procedures/table_noise",
    "procedures/vector_check",
    "procedures/vector_noise",
    "procedures/vector_smooth",
    "procedures/vector_term",
    "procedures/table_rows",
    "procedures/table_above",
    "procedures/clipped_noise",
    "procedures/clipped_measure",
    "procedures/tell_clippings",
)


@cache
def edition() -> str:
    """The version of the tables and a digest of all functions: a function answers beside its own.

    It changes with every text of SQL. Where Python alone has changed and older functions must stop,
    a new version says so: a migration without statements.
    """
    names = [
        *(f"procedures/{name}" for name in OBJECTS),
        *_OTHERS,
        "procedures/count",
        "procedures/table",
    ]
    texts = "\0".join(template(f"{name}.sql") for name in names)
    return f"{len(MIGRATIONS)}-{sha256(texts.encode()).hexdigest()[:16]}"
