"""A small simulator: counts drawn from a negative binomial, analysed as DESeq2 does, so that every relation holds.

Written apart from the checker (own GLM fit, own dispersion estimates, own Cook's distances); only the choice of theta and
BH are taken from it, which the real DESeq2 output verifies. Slow and plain, for a few hundred genes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

LN2 = math.log(2)
RIDGE = 1e-6 / LN2**2
FLOOR = 0.5


def inverse(matrix: Sequence[Sequence[float]]) -> tuple[list[list[float]], float]:
    """The inverse and ln of the determinant, by Gauss-Jordan."""
    size, log_det = len(matrix), 0.0
    work = [[*row, *(float(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for i in range(size):
        log_det += math.log(work[i][i])
        work[i] = [value / work[i][i] for value in work[i]]
        for k in range(size):
            if k != i:
                factor = work[k][i]
                work[k] = [a - factor * b for a, b in zip(work[k], work[i])]
    return [row[size:] for row in work], log_det


@dataclass
class Gene:
    name: str
    counts: list[int]
    mean: float = 0.0
    gene_est: float = math.nan
    fit: float = math.nan
    map: float = math.nan
    outlier: bool = False
    used: float = math.nan
    beta: list[float] = field(default_factory=list)     # natural log
    error: float = math.nan                             # of the last column, log2
    cooks: list[float] = field(default_factory=list)

    @property
    def expressed(self) -> bool:
        return any(self.counts)


@dataclass
class Study:
    """A whole analysis in numbers. The contrast is the last column of the model matrix."""

    design: str
    samples: list[str]
    factors: dict[str, list[str]]
    columns: list[str]
    matrix: list[list[float]]
    size_factors: list[float] = field(default_factory=list)
    genes: list[Gene] = field(default_factory=list)
    trend: tuple[float, float] = (0.0, 0.0)
    log_variance: float = 0.0
    prior_variance: float = 0.0


def xtwx(matrix: Sequence[Sequence[float]], weights: Sequence[float], ridge: float) -> list[list[float]]:
    width = range(len(matrix[0]))
    return [[sum(w * row[i] * row[j] for w, row in zip(weights, matrix)) + (ridge if i == j else 0.0) for j in width] for i in width]


def fit_glm(study: Study, counts: Sequence[int], alpha: float) -> list[float] | None:
    """DESeq2's ridge IRLS with means floored at 0.5, to its fixed point; None where it does not settle."""
    sizes, matrix = study.size_factors, study.matrix
    eta = [math.log(count / size + 0.5) for count, size in zip(counts, sizes)]
    beta = [0.0] * len(matrix[0])
    for step in range(200):
        mu = [max(FLOOR, size * math.exp(min(one, 50.0))) for size, one in zip(sizes, eta)]
        w = [m / (1 + alpha * m) for m in mu]
        z = [math.log(m / size) + (count - m) / m for m, size, count in zip(mu, sizes, counts)]
        middle, _ = inverse(xtwx(matrix, w, RIDGE))
        right = [sum(row[i] * one * value for row, one, value in zip(matrix, w, z)) for i in range(len(beta))]
        new = [sum(a * b for a, b in zip(line, right)) for line in middle]
        moved = max(abs(a - b) for a, b in zip(new, beta))
        beta = new
        if moved < 1e-12 and step:
            return beta
        eta = [sum(x * b for x, b in zip(row, beta)) for row in matrix]
    return None


def adjusted_likelihood(study: Study, counts: Sequence[int], mu: Sequence[float], log_alpha: float) -> float:
    """NB log likelihood in the dispersion with the Cox-Reid term."""
    alpha = math.exp(log_alpha)
    size, total = 1 / alpha, 0.0
    for count, m in zip(counts, mu):
        total += math.lgamma(count + size) - math.lgamma(size) - count * math.log(m + size) - size * math.log1p(m * alpha)
    return total - 0.5 * inverse(xtwx(study.matrix, [m / (1 + alpha * m) for m in mu], 0.0))[1]


def maximize(function, low: float, high: float) -> float:
    """Coarse grid, then golden section."""
    grid = [low + (high - low) * at / 20 for at in range(21)]
    best = max(range(21), key=lambda at: function(grid[at]))
    a, b = grid[max(best - 1, 0)], grid[min(best + 1, 20)]
    ratio = (math.sqrt(5) - 1) / 2
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    fc, fd = function(c), function(d)
    while b - a > 1e-4:
        if fc > fd:
            b, d, fd = d, c, fc
            c = b - ratio * (b - a)
            fc = function(c)
        else:
            a, c, fc = c, d, fd
            d = a + ratio * (b - a)
            fd = function(d)
    return (a + b) / 2


def middle(values: Sequence[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def draw_counts(study: Study, rng: random.Random, number: int, empty: int) -> None:
    depth = [math.exp(rng.gauss(0, 0.3)) for _ in study.samples]
    effects = {name: 0.0 for name in study.columns}
    for at in range(number + empty):
        name = f"GENE{at:05d}"
        if at % ((number + empty) // empty) == 3:
            study.genes.append(Gene(name, [0] * len(study.samples)))
            continue
        log_mean = rng.uniform(0.5, 8.5)
        alpha = (0.02 + 2 / math.exp(log_mean)) * math.exp(rng.gauss(0, 0.7))
        effects = {one: rng.gauss(0, 0.4) for one in study.columns}
        effects["Intercept"] = log_mean
        effects[study.columns[-1]] = rng.choice((0.0, 0.0, rng.gauss(0, 1.2)))
        counts = []
        for row, size in zip(study.matrix, depth):
            mu = size * math.exp(sum(effects[one] * x for one, x in zip(study.columns, row)))
            mu *= rng.gammavariate(1 / alpha, alpha)
            counts.append(max(0, round(rng.gauss(mu, math.sqrt(mu)))))
        study.genes.append(Gene(name, counts))


def analyse(study: Study) -> None:
    """Everything from the counts on."""
    logs = [[math.log(count) for count in gene.counts] for gene in study.genes if all(gene.counts)]
    centred = [[value - sum(row) / len(row) for value in row] for row in logs]
    study.size_factors = [math.exp(middle([row[at] for row in centred])) for at in range(len(study.samples))]
    kept = []
    means: dict[str, list[float]] = {}
    for gene in study.genes:
        normalized = [count / size for count, size in zip(gene.counts, study.size_factors)]
        gene.mean = sum(normalized) / len(normalized)
        if gene.expressed:
            variance = sum((value - gene.mean) ** 2 for value in normalized) / (len(normalized) - 1)
            beta = fit_glm(study, gene.counts, max(0.01, (variance - gene.mean) / gene.mean**2))
            if beta is None:
                continue
            means[gene.name] = _means(study, beta)
            gene.gene_est = math.exp(maximize(
                lambda x, gene=gene: adjusted_likelihood(study, gene.counts, means[gene.name], x), math.log(1e-8), math.log(10)))
        kept.append(gene)
    study.genes = kept
    _trend(study)
    for gene in list(study.genes):
        if gene.expressed and not _finish_gene(study, gene, means[gene.name]):
            study.genes.remove(gene)


def replace_outliers(study: Study, cutoff: float) -> list[str]:
    """What DESeq2 does with seven or more replicates: outlier counts replaced, those genes fitted again. Their names."""
    replaced = []
    for gene in [gene for gene in study.genes if gene.expressed and max(gene.cooks) > cutoff]:
        normalized = sorted(count / size for count, size in zip(gene.counts, study.size_factors))
        cut = int(len(normalized) * 0.2)
        centre = sum(normalized[cut:-cut]) / (len(normalized) - 2 * cut)
        original, cooks = gene.counts, gene.cooks
        gene.counts = [int(centre * size) if distance > cutoff else count
                       for count, size, distance in zip(original, study.size_factors, cooks)]
        gene.mean = sum(count / size for count, size in zip(gene.counts, study.size_factors)) / len(original)
        beta = fit_glm(study, gene.counts, gene.map)
        gene.gene_est = math.exp(maximize(
            lambda x, gene=gene, beta=beta: adjusted_likelihood(study, gene.counts, _means(study, beta), x), math.log(1e-8), math.log(10)))
        gene.fit = study.trend[0] + study.trend[1] / gene.mean
        assert beta is not None and _finish_gene(study, gene, _means(study, beta))
        gene.counts, gene.cooks = original, cooks
        replaced.append(gene.name)
    for gene in study.genes:        # the distances of replaceable samples are set to 0; the sample named is still the first
        gene.cooks = [0.0] * len(gene.cooks)
    return replaced


def _means(study: Study, beta: Sequence[float]) -> list[float]:
    return [max(FLOOR, size * math.exp(sum(x * b for x, b in zip(row, beta)))) for size, row in zip(study.size_factors, study.matrix)]


def _trend(study: Study) -> None:
    points = [(1 / gene.mean, gene.gene_est) for gene in study.genes if gene.expressed and gene.gene_est > 1e-6]
    level, slope = 0.05, 2.0
    for _ in range(100):
        good = [(x, d) for x, d in points if 1e-4 < d / (level + slope * x) < 15]
        for _ in range(50):
            fits = [(x, d, level + slope * x) for x, d in good]
            cross = [[sum(1 / f**2 for _, _, f in fits), sum(x / f**2 for x, _, f in fits)],
                     [sum(x / f**2 for x, _, f in fits), sum(x * x / f**2 for x, _, f in fits)]]
            back, _ = inverse(cross)
            score = [sum((d - f) / f**2 for _, d, f in fits), sum((d - f) * x / f**2 for x, d, f in fits)]
            step = [sum(a * b for a, b in zip(line, score)) for line in back]
            level, slope = max(level / 2, level + step[0]), max(slope / 2, slope + step[1])
    study.trend = (level, slope)
    logs = []
    for gene in study.genes:
        if gene.expressed:
            gene.fit = level + slope / gene.mean
            if gene.gene_est >= 1e-6:
                logs.append(math.log(gene.gene_est / gene.fit))
    centre = middle(logs)
    study.log_variance = (1.4826 * middle([abs(value - centre) for value in logs])) ** 2
    half, expected = (len(study.samples) - len(study.columns)) / 2, 0.0
    for k in range(200_000):        # trigamma
        expected += 1 / (half + k) ** 2
    expected += 1 / (half + 200_000)
    study.prior_variance = max(study.log_variance - expected, 0.25)


def _finish_gene(study: Study, gene: Gene, means: Sequence[float]) -> bool:
    centre = math.log(gene.fit)
    gene.map = math.exp(maximize(lambda x: adjusted_likelihood(study, gene.counts, means, x) - (x - centre) ** 2 / (
        2 * study.prior_variance), math.log(1e-8), math.log(10)))
    gene.outlier = math.log(gene.gene_est) > centre + 2 * math.sqrt(study.log_variance)
    gene.used = gene.gene_est if gene.outlier else gene.map
    beta = fit_glm(study, gene.counts, gene.used)
    if beta is None:
        return False
    gene.beta = beta
    gene.error = standard_error(study, beta, gene.used)
    gene.cooks = cooks_distances(study, gene)
    return True


def standard_error(study: Study, beta: Sequence[float], alpha: float) -> float:
    """Sandwich error of the last coefficient, log2."""
    w = [m / (1 + alpha * m) for m in _means(study, beta)]
    back, _ = inverse(xtwx(study.matrix, w, RIDGE))
    meat = xtwx(study.matrix, w, 0.0)
    last, width = back[-1], range(len(beta))
    return math.sqrt(sum(last[i] * meat[i][j] * last[j] for i in width for j in width)) / LN2


def cooks_distances(study: Study, gene: Gene) -> list[float]:
    """Of each sample; empty in a design without a cell of three."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for at, row in enumerate(study.matrix):
        groups.setdefault(tuple(row), []).append(at)
    if max(map(len, groups.values())) < 3:
        return []
    normalized = [count / size for count, size in zip(gene.counts, study.size_factors)]
    variance = 0.0
    for members in groups.values():     # groups of four here: a quarter is trimmed off each end
        values = sorted(normalized[at] for at in members)
        centre = sum(values[1:-1]) / (len(values) - 2)
        squares = sorted((value - centre) ** 2 for value in values)
        variance = max(variance, 1.86 * sum(squares[1:-1]) / (len(squares) - 2))
    robust = max(0.04, (variance - gene.mean) / gene.mean**2)
    w = [m / (1 + gene.used * m) for m in _means(study, gene.beta)]
    back, _ = inverse(xtwx(study.matrix, w, RIDGE))
    found = []
    for at, (row, size, count) in enumerate(zip(study.matrix, study.size_factors, gene.counts)):
        m = size * math.exp(sum(x * b for x, b in zip(row, gene.beta)))
        hat = w[at] * sum(a * back[i][j] * b for i, a in enumerate(row) for j, b in enumerate(row))
        found.append((count - m) ** 2 / (m + robust * m * m) / len(row) * hat / (1 - hat) ** 2)
    return found
