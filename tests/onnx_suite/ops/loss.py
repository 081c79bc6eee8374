"""Losses."""

from __future__ import annotations

import loopwright as lw
from onnx_suite.registry import operator


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    logs: lw.Array,
    target: lw.Array,
    weight: lw.Array | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> lw.Array:
    """Minus the logarithm at each target, weighted by class; ignored targets weigh nothing."""
    is_used = lw.ones(target.shape, dtype=lw.bool)
    if ignore_index is not None:
        is_used = target != ignore_index
    place = lw.where(is_used, target, 0)
    picked = lw.take_along_axis(logs, lw.expand_dims(place, axis=1), axis=1)
    weights = lw.ones(target.shape, dtype=logs.dtype) if weight is None else weight[place]
    weights = lw.where(is_used, weights, 0)
    loss = -lw.squeeze(picked, axis=1) * weights
    if reduction == "none":
        return loss
    return lw.sum(loss) / lw.sum(weights) if reduction == "mean" else lw.sum(loss)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    scores: lw.Array,
    target: lw.Array,
    weight: lw.Array | None = None,
    *,
    n_outputs: int,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> lw.Array | tuple[lw.Array, lw.Array]:
    logs = lw.log_softmax(scores, axis=1)
    loss = negative_log_likelihood(
        logs, target, weight, reduction=reduction, ignore_index=ignore_index
    )
    return (loss, logs) if n_outputs == 2 else loss
