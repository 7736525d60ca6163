"""Evaluator epochs (the Red Queen rule): a criterion frozen per epoch, challengers that queue, checkpoints that decide."""
