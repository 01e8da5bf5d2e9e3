"""Exact noise for smooth sensitivities: mechanisms, their weights, error bars and randomness."""

from sqlrs.noise.cauchy import Cauchy
from sqlrs.noise.error_bars import ErrorBars
from sqlrs.noise.law import Noise
from sqlrs.noise.polylaplace import DEFAULT_SHAPE, DEFAULT_SHAPE_WITH_ERROR_BARS, PolyLaplace
from sqlrs.noise.randomness import RandomBits, SystemBits
from sqlrs.sensitivity.weights import Weights

__all__ = [
    "DEFAULT_SHAPE",
    "DEFAULT_SHAPE_WITH_ERROR_BARS",
    "Cauchy",
    "ErrorBars",
    "Noise",
    "PolyLaplace",
    "RandomBits",
    "SystemBits",
    "Weights",
]
