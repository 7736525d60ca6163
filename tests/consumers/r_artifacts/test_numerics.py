"""The numerical methods against values from R and closed forms."""

from __future__ import annotations

import math

import pytest

from consumers.r_artifacts import numerics


@pytest.mark.parametrize(("df1", "df2", "expected"), [(5, 3, 28.237080837755), (2, 6, 10.9247665008383), (1, 1, math.tan(math.pi * 0.495) ** 2)])
def test_f_quantile(df1: int, df2: int, expected: float) -> None:
    assert numerics.f_quantile(0.99, df1, df2) == pytest.approx(expected, rel=1e-12)


def test_digamma_and_trigamma() -> None:
    assert numerics.digamma(1.0) == pytest.approx(-0.5772156649015329, rel=1e-11)
    assert numerics.digamma(1e6) == pytest.approx(math.log(1e6) - 5e-7, rel=1e-12)
    assert numerics.trigamma(0.5) == pytest.approx(math.pi**2 / 2, rel=1e-11)
    assert numerics.trigamma(3.0) == pytest.approx(math.pi**2 / 6 - 1.25, rel=1e-11)


def test_chi_square_tail() -> None:
    assert numerics.chi_square_tail(3.84, 1) == pytest.approx(math.erfc(math.sqrt(1.92)), rel=1e-14)
    assert numerics.chi_square_tail(5.0, 2) == pytest.approx(math.exp(-2.5), rel=1e-14)
    assert numerics.chi_square_tail(5.0, 4) == pytest.approx(math.exp(-2.5) * 3.5, rel=1e-13)
    assert numerics.chi_square_tail(0.0, 5) == 1.0


def test_quantile_is_r_type_7() -> None:
    assert numerics.quantile7([1.0, 2.0, 4.0, 8.0], 0.5) == 3.0
    assert numerics.quantile7([1.0, 2.0, 4.0, 8.0], 1.0) == 8.0
    assert numerics.quantile7([1.0, 2.0, 4.0, 8.0], 0.1) == pytest.approx(1.3)


def test_bh_keeps_the_order_and_never_exceeds_one() -> None:
    assert numerics.adjust_bh([0.01, 0.9, 0.02, 0.03]) == pytest.approx([0.04, 0.9, 0.04, 0.04])
    assert numerics.bh_rejections([0.01, 0.02, 0.03], 4, 0.05) == 3
    assert numerics.bh_rejections([0.01, 0.02, 0.03], 4, 0.039) == 0
    assert numerics.bh_rejections([0.25], 1, 0.25) == 0     # strictly below


def test_trimmed_mean_cuts_as_r_does() -> None:
    assert numerics.trimmed_mean([9.0, 1.0, 2.0, 3.0], 0.25) == 2.5
    assert numerics.trimmed_mean([9.0, 1.0, 2.0], 1 / 3) == 2.0
    assert numerics.trimmed_mean([9.0, 1.0, 2.0], 0.2) == 4.0


def test_solve_and_singular() -> None:
    factor = numerics.factorize([[4.0, 2.0], [2.0, 3.0]])
    assert factor is not None
    assert numerics.solve(factor, [8.0, 7.0]) == pytest.approx([1.25, 1.5])
    assert numerics.factorize([[1.0, 1.0], [1.0, 1.0]]) is None


def test_lowess_of_the_cars_data_as_r_documents_it() -> None:
    speed = [4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16, 17, 17, 17,
             18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25]
    distance = [2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40, 32, 40,
                50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85]
    fitted = numerics.lowess(speed, distance, 2 / 3)
    assert [fitted[at] for at in (0, 2, 4, 5, 6, 9, 11, 15)] == pytest.approx(
        [4.965459, 13.124495, 15.858633, 18.579691, 21.280313, 24.129277, 27.119549, 30.027276], abs=5e-7)
