"""Residuals -> how to evaluate them: plain, factorised or pruned, with one and the same value."""

from sqlrs.planning.choose import choose
from sqlrs.planning.evaluate import Evaluation, Evaluator
from sqlrs.planning.hints import index_hints
from sqlrs.planning.limits import limit
from sqlrs.planning.plan import HOW, Plan

__all__ = ["HOW", "Evaluation", "Evaluator", "Plan", "choose", "index_hints", "limit"]
