"""Exact noise for smooth sensitivities: mechanisms, their weights, error bars and randomness."""

from sqlrs.noise.cauchy import Cauchy
from sqlrs.noise.error_bars import ErrorBars
from sqlrs.noise.mechanism import Mechanism
from sqlrs.noise.polylaplace import DEFAULT_SHAPE, DEFAULT_SHAPE_WITH_ERROR_BARS, PolyLaplace
from sqlrs.noise.randomness import RandomBits, SystemBits
from sqlrs.noise.weights import Weights

__all__ = [
    "DEFAULT_SHAPE",
    "DEFAULT_SHAPE_WITH_ERROR_BARS",
    "Cauchy",
    "ErrorBars",
    "Mechanism",
    "PolyLaplace",
    "RandomBits",
    "SystemBits",
    "Weights",
]
