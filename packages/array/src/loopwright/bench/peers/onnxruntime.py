"""ONNX Runtime on the CPU: a graph a workload, inputs and outputs bound to memory that stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

Run = Callable[[], Any]


def version() -> str:
    return str(ort.__version__)


def to_numpy(result: Any) -> Any:
    return result.numpy()


def _session(
    nodes: list[Any], arrays: tuple[Any, ...], kind: int, constants: dict[str, Any]
) -> Run:
    names = [f"x{n}" for n in range(len(arrays))]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in zip(names, arrays)
    ]
    held = [
        helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(c.dtype), c.shape, c)
        for name, c in constants.items()
    ]
    out = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph(nodes, "g", given, [out], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    first = session.run(None, dict(zip(names, arrays)))[0]
    binding = session.io_binding()
    for name, a in zip(names, arrays):
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(a))
    result = ort.OrtValue.ortvalue_from_numpy(np.empty_like(first))
    binding.bind_ortvalue_output("y", result)

    def run() -> Any:
        session.run_with_iobinding(binding)
        return result

    return run


def _op(
    op: str, kind: int = TensorProto.FLOAT, held: tuple[Any, ...] = (), **attributes: Any
) -> Callable[..., Run]:
    def make(*arrays: Any) -> Run:
        constants = {f"c{n}": np.asarray(c) for n, c in enumerate(held)}
        names = [f"x{n}" for n in range(len(arrays))]
        node = helper.make_node(op, [*names, *constants], ["y"], **attributes)
        return _session([node], arrays, kind, constants)

    return make


def _attention(q: Any, k: Any, v: Any) -> Run:
    scale = {"s": np.asarray(1 / np.sqrt(q.shape[-1]), np.float32)}
    nodes = [
        helper.make_node("Transpose", ["x1"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x0", "t"], ["m"]),
        helper.make_node("Mul", ["m", "s"], ["n"]),
        helper.make_node("Softmax", ["n"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x2"], ["y"]),
    ]
    return _session(nodes, (q, k, v), TensorProto.FLOAT, scale)


def _sum(*axes: int) -> Callable[..., Run]:
    return _op("ReduceSum", held=(np.array(axes, np.int64),), keepdims=0)


WORKLOADS: dict[str, Callable[..., Run]] = {
    "sgemm_256": _op("MatMul"),
    "sgemm_512": _op("MatMul"),
    "sgemm_1024": _op("MatMul"),
    "sgemm_2048": _op("MatMul"),
    "sgemm_1024_At": _op("Gemm", transA=1),
    "sgemm_1024_Bt": _op("Gemm", transB=1),
    "int8_matmul_1024": _op("MatMulInteger", TensorProto.INT32),
    "bmm_32x128": _op("MatMul"),
    "matvec_4096": _op("MatMul"),
    "dot_16M": _op("MatMul"),
    "sum_axis0": _sum(0),
    "sum_axis1": _sum(1),
    "sum_all": _sum(0, 1),
    "gelu_16M": _op("Gelu", approximate="tanh"),
    "exp_16M": _op("Exp"),
    "softmax": _op("Softmax", axis=-1),
    "layernorm": _op("LayerNormalization", axis=-1, epsilon=1e-5),
    "conv3x3_64": _op("Conv", pads=[1, 1, 1, 1]),
    "conv7x7_s2": _op("Conv", strides=[2, 2], pads=[3, 3, 3, 3]),
    "maxpool3_s2": _op("MaxPool", kernel_shape=[3, 3], strides=[2, 2]),
    "transpose_4096": _op("Transpose", perm=[1, 0]),
    "attention": _attention,
    "cumsum_rows": _op("CumSum", held=(np.array(1, np.int64),)),
    "argmax_rows": _op("ArgMax", TensorProto.INT64, axis=1, keepdims=0),
    "small_matmul_64": _op("MatMul"),
    "small_add_16": _op("Add"),
}
