"""The cheapest scorer there is, for ``inspect score`` over a retained log."""

from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState


@scorer(metrics=[accuracy()])
def rescore() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=1, explanation="again")

    return score
