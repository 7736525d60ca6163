"""The negative binomial GLM of one gene, evaluated at given coefficients: never fitted.

Owns the arithmetic that `glm.py`, `cooks.py` and `dispersion.py` share: means, working weights, the penalized information
matrix, the standard error and the score. Source: DESeq2's `fitBeta` (C++) and Love et al. 2014. Natural log scale inside,
log2 at the edges. Written as plain loops over precomputed index lists, since it runs once per gene.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .design import MIN_MU, RIDGE_LOG2, Design
from .numerics import factorize, solve

LN2 = math.log(2.0)
_MAX_ETA = 600.0                # exp beyond it is no count


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One gene at its coefficients. `decrement` is the length of the Newton step of the score, in standard errors."""

    error_log2: float           # standard error of the contrast
    decrement: float
    means: list[float]          # of each sample, not floored
    weights: list[float]
    factor: list[list[float]]   # LDL' of the penalized information


class Model:
    """A design and size factors, laid out for evaluation gene by gene."""

    def __init__(self, design: Design, size_factors: Sequence[float]) -> None:
        matrix, width = design.matrix, len(design.columns)
        self.size_factors = list(size_factors)
        self.width = width
        self.contrast = design.contrast
        self.ridge = RIDGE_LOG2 / LN2 ** 2
        self.cells = design.cells
        rows = {cell: matrix[sample] for sample, cell in enumerate(design.cells)}
        self.rows = [rows[cell] for cell in range(len(rows))]
        self._terms = [[(at, value) for at, value in enumerate(row) if value] for row in self.rows]
        self._columns = [[(sample, row[at]) for sample, row in enumerate(matrix) if row[at]] for at in range(width)]
        self._pairs = [(i, j, [(sample, row[i] * row[j]) for sample, row in enumerate(matrix) if row[i] * row[j]])
                       for i in range(width) for j in range(i + 1)]
        self._unit = [float(at == self.contrast) for at in range(width)]

    def log_means(self, log2_coefficients: Sequence[float]) -> list[float]:
        """ln of each cell's mean before size factors."""
        etas = []
        for terms in self._terms:
            eta = 0.0
            for at, value in terms:
                eta += log2_coefficients[at] * value
            eta *= LN2
            etas.append(eta if -_MAX_ETA < eta < _MAX_ETA else math.copysign(_MAX_ETA, eta))
        return etas

    def information(self, weights: Sequence[float], ridge: float) -> list[list[float]]:
        """X'WX + ridge, lower triangle."""
        matrix = [[0.0] * self.width for _ in range(self.width)]
        for i, j, products in self._pairs:
            value = 0.0
            for sample, product in products:
                value += weights[sample] * product
            matrix[i][j] = value + ridge if i == j else value
        return matrix

    def evaluate(self, counts: Sequence[float], log2_coefficients: Sequence[float], dispersion: float) -> Evaluated | None:
        """SE = sqrt(c' A^-1 X'WX A^-1 c), A = X'WX + ridge; None where A is singular.

        The score is that of the iteration DESeq2 stops at: with z = ln(mu/s) + (K - mu)/mu it is X'W(z - eta) - ridge beta.
        Where every mu is above the floor that is the NB score X'(K - mu)/(1 + a mu); where one is at the floor the plain
        score does not vanish and this one does (3,294 floored genes of the full airway run: at most 2.5e-3 SE), so no gene
        escapes by a fitted mean below 0.5.
        """
        etas = self.log_means(log2_coefficients)
        cell_means = [math.exp(eta) for eta in etas]
        means, weights, working = [], [], []
        for size, cell, count in zip(self.size_factors, self.cells, counts):
            mean = size * cell_means[cell]
            means.append(mean)
            if mean > MIN_MU:
                weight = mean / (1 + dispersion * mean)
                working.append(weight * (count - mean) / mean)
            else:
                weight = MIN_MU / (1 + dispersion * MIN_MU)
                shift = math.log(MIN_MU / size) - etas[cell]
                working.append(weight * (shift + (count - MIN_MU) / MIN_MU))
            weights.append(weight)
        ridge = self.ridge
        factor = factorize(self.information(weights, ridge))
        if factor is None:
            return None
        direction = solve(factor, self._unit)
        variance = direction[self.contrast]
        for value in direction:
            variance -= ridge * value * value
        score = []
        for at, column in enumerate(self._columns):
            value = -ridge * LN2 * log2_coefficients[at]
            for sample, entry in column:
                value += working[sample] * entry
            score.append(value)
        squared = 0.0
        for value, step in zip(score, solve(factor, score)):
            squared += value * step
        return Evaluated(math.sqrt(max(variance, 0.0)) / LN2, math.sqrt(max(squared, 0.0)), means, weights, factor)

    def cell_leverages(self, factor: Sequence[Sequence[float]]) -> list[float]:
        """x' A^-1 x of each cell."""
        found = []
        for row, terms in zip(self.rows, self._terms):
            step, value = solve(factor, row), 0.0
            for at, entry in terms:
                value += entry * step[at]
            found.append(value)
        return found
