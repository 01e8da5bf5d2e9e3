"""Residuals -> how to evaluate them: plain, factorised or pruned, with one and the same value."""

from sqlrs.planning.choose import choose
from sqlrs.planning.evaluate import Evaluation, evaluate
from sqlrs.planning.hints import index_hints
from sqlrs.planning.plan import HOW, Plan

__all__ = ["HOW", "Evaluation", "Plan", "choose", "evaluate", "index_hints"]
