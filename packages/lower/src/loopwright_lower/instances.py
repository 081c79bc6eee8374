"""Values that indexing met at several index tuples: what KEEP may hold."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_lower.evaluate import Evaluator


def shared_values(evaluator: Evaluator) -> list[list[UOp]]:
    """The instances of each such value, in order of first use.

    Left out: loads, values without a load, and values all of whose consumers have as many
    instances, since holding the consumer holds them too.
    """
    instances: dict[UOp, list[UOp]] = {}
    for node, keys in evaluator.met.items():
        if len(keys) > 1:
            found = list(dict.fromkeys(evaluator.values[k] for k in keys if k in evaluator.values))
            if len(found) > 1:
                instances[node] = found
    if not instances:
        return []
    stored = set(evaluator.stored)
    result = []
    for node, found in instances.items():
        if node.dtype is dt.void or any(u.op is Op.LOAD for u in found) or not _loads(found[0]):
            continue
        fewest = min((len(instances.get(u, "1")) for u in evaluator.users.get(node, ())), default=1)
        if fewest < len(found) or node in stored:
            result.append(found)
    return result


def _loads(value: UOp) -> bool:
    return any(node.op is Op.LOAD for node in value.toposort())
