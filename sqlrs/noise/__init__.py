"""Exact noise for smooth sensitivities: mechanisms, their weights, error bars and randomness."""

from sqlrs.noise.cauchy import Cauchy
from sqlrs.noise.error_bars import ErrorBars
from sqlrs.noise.laplace import Laplace
from sqlrs.noise.law import Noise
from sqlrs.noise.polylaplace import DEFAULT_SHAPE, PolyLaplace, shape_with_error_bars
from sqlrs.noise.randomness import RandomBits, SystemBits
from sqlrs.sensitivity.weights import Weights

__all__ = [
    "DEFAULT_SHAPE",
    "Cauchy",
    "ErrorBars",
    "Laplace",
    "Noise",
    "PolyLaplace",
    "RandomBits",
    "SystemBits",
    "Weights",
    "shape_with_error_bars",
]
