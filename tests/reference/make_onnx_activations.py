"""Write activations in pieces, and near misses of them, with their outputs as an archive for test_onnx_cases: other constants,
bounds somewhere, casts in between, another value in the place of x. What gcp takes for an op of its own must be that op.

Run:  pip install onnx onnxruntime && python make_onnx_activations.py OUT.tar SEEDS...        (a seed, or FIRST-LAST)
onnx_activations.tar: seeds 0-44 2231 1231 2867; the last two were wrong once.
Made with onnx 1.23.2, onnxruntime 1.32.0. The archive is as make_onnx.py's; the outputs are ONNX Runtime's.
"""
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from make_onnx_graphs import write

FLOAT = onnx.TensorProto.FLOAT


class Pieces:
    """Nodes over x, and numbers, which are sometimes not the right ones, of several shapes."""

    def __init__(self, random):
        self.random, self.nodes, self.numbers = random, [], []

    def number(self, value, wrong=0.15):
        if self.random.random() < wrong:
            value = value + self.random.choice([-1, 1]) * self.random.choice([0.01, 0.5, 2])
        shape = [(), (1,), (1, 1), (1, 1, 1)][int(self.random.integers(4))]
        name = f"n{len(self.numbers)}"
        self.numbers.append(numpy_helper.from_array(np.full(shape, value, "f"), name))
        return name

    def node(self, op, *inputs, **attributes):
        name = f"y{len(self.nodes)}"
        if len(inputs) == 2 and op in ("Add", "Mul") and self.random.random() < 0.5:
            inputs = inputs[::-1]
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def near(self, x):
        """x, or nearly."""
        kind = self.random.random()
        if kind < 0.05:
            return self.node("Clip", x, *(self.plain(v) for v in sorted(self.random.uniform(-9, 9, 2))))
        if kind < 0.08:
            return self.node("Min", x, self.number(self.random.uniform(2, 8)))
        if kind < 0.11:
            return self.node("Cast", self.node("Cast", x, to=int(self.random.choice([6, 7, 9]))), to=FLOAT)
        if kind < 0.13:
            return self.node("Abs", x)
        return self.node("Identity", x) if kind < 0.2 else x

    def plain(self, value):
        name = f"n{len(self.numbers)}"
        self.numbers.append(numpy_helper.from_array(np.array(value, "f"), name))
        return name

    def below(self, x, yes, no):
        return self.node("Where", self.node("Less", x, self.number(0)), yes, no)


def silu(n, x):
    return n.node("Mul", n.near(x), n.node("Sigmoid", n.near(x)))


def mish(n, x):
    return n.node("Mul", n.near(x), n.node("Tanh", n.node("Softplus", n.near(x))))


def hard_sigmoid(n, x):
    shifted = n.node("Add", n.near(x), n.number(3))
    return n.node("Div", n.node("Clip", shifted, n.plain(0), n.plain(6 if n.random.random() < 0.85 else 5)), n.number(6))


def hard_swish(n, x):
    return n.node("Mul", n.near(x), hard_sigmoid(n, x))


def gelu(n, x):
    inner = n.node("Add", n.node("Erf", n.node("Div", n.near(x), n.number(np.sqrt(2)))), n.number(1))
    return n.node("Mul", n.node("Mul", n.near(x), inner), n.number(0.5))


def gelu_tanh(n, x):
    cube = n.node("Mul", n.number(0.044715), n.node("Pow", n.near(x), n.number(3, 0)))
    inner = n.node("Tanh", n.node("Mul", n.number(np.sqrt(2 / np.pi)), n.node("Add", n.near(x), cube)))
    return n.node("Mul", n.node("Mul", n.number(0.5), n.near(x)), n.node("Add", n.number(1), inner))


def elu(n, x):
    return n.below(n.near(x), n.node("Mul", n.number(0.7), n.node("Sub", n.node("Exp", n.near(x)), n.number(1))), n.near(x))


def leaky(n, x):
    return n.below(n.near(x), n.node("Mul", n.number(0.2), n.near(x)), n.near(x))


def clamp(n, x):
    low, high = sorted(n.random.uniform(-6, 6, 2))
    return n.node("Min", n.node("Max", n.near(x), n.number(low, 0)), n.number(high, 0))


CURVES = [silu, mish, hard_sigmoid, hard_swish, gelu, gelu_tanh, elu, leaky, clamp]


def graph(seed):
    random = np.random.default_rng(seed)
    n = Pieces(random)
    y = CURVES[seed % len(CURVES)](n, "x")
    model = helper.make_model(helper.make_graph(
        n.nodes, "pieces", [helper.make_tensor_value_info("x", FLOAT, (2, 3, 8))],
        [helper.make_tensor_value_info(y, FLOAT, None)], n.numbers),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = np.concatenate([random.uniform(-9, 9, 40), random.normal(size=8) * 0.5]).astype("f").reshape(2, 3, 8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    y = session.run(None, {"x": x})[0]
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(model.graph.output[0].name, FLOAT, y.shape))
    return f"{CURVES[seed % len(CURVES)].__name__}_{seed}", model, x, [y], b"1e-5 1e-5\n"


if __name__ == "__main__":
    write(graph)
