"""An inspect task: one sample a trial, no model call, a scorer that runs the checker in the local sandbox."""

import os

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver
from inspect_ai.util import sandbox

ARGV = os.environ["BENCH_ARGV"].split("\x1f")


@solver
def nothing():
    async def solve(state, generate):
        return state

    return solve


@scorer(metrics=[accuracy()])
def checker():
    async def score(state, target):
        command = [part.replace("{}", str(state.sample_id)) for part in ARGV]
        try:
            done = await sandbox().exec(command, timeout=int(os.environ["BENCH_TIMEOUT_S"]))
        except TimeoutError:
            return Score(value=0, explanation="timeout")
        return Score(value=1 if done.success else 0, explanation=done.stdout + done.stderr)

    return score


@task
def trials():
    samples = [Sample(input="x", id=index) for index in range(int(os.environ["BENCH_TRIALS"]))]
    return Task(dataset=samples, solver=nothing(), scorer=checker(), sandbox="local")
