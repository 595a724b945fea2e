"""Write random ONNX graphs with their outputs as an archive for test_onnx_cases: values that several nodes read, each in
an order of its own, which no conformance case has.

Run:  pip install onnx onnxruntime && python make_onnx_graphs.py OUT.tar SEEDS...        (a seed, or FIRST-LAST)
onnx_graphs.tar: seeds 0-36 1211 1847 2279 2842; the last four were wrong or refused once.
Made with onnx 1.23.2, onnxruntime 1.32.0. The archive is as make_onnx.py's; the outputs are ONNX Runtime's.
"""
import io
import sys
import tarfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT


class Network:
    """A graph that grows: its values with their shapes, nodes, weights."""

    def __init__(self, random):
        self.random, self.nodes, self.weights, self.shapes = random, [], [], {}
        shape = tuple(int(d) for d in random.integers(1, 6, random.integers(2, 5)))
        self.shapes["x"] = shape

    def pick(self, rank=0):
        names = [name for name, shape in self.shapes.items() if len(shape) >= rank]
        return str(self.random.choice(names)) if names else None

    def axis(self, x):
        return int(self.random.integers(len(self.shapes[x])))

    def weight(self, *shape):
        name = f"w.{len(self.weights)}"
        values = self.random.normal(size=shape).astype("f") if self.random.random() < 0.9 else np.ones(shape, "f")
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def numbers(self, values):
        name = f"n{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(self, op, inputs, shape, **attributes):
        name = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        if 0 < len(shape) <= 6 and np.prod(shape) <= 4000:
            self.shapes[name] = tuple(int(d) for d in shape)
        return name


# Each adds a node, or none where its shapes do not suit.


def transpose(n):
    x = n.pick()
    order = [int(i) for i in n.random.permutation(len(n.shapes[x]))]
    n.node("Transpose", [x], [n.shapes[x][i] for i in order], perm=order)


def reshape(n):
    x = n.pick()
    primes, left = [], int(np.prod(n.shapes[x]))
    for p in (2, 3, 5):
        while left % p == 0:
            primes, left = primes + [p], left // p
    primes += [left] * (left > 1)
    shape = [1] * int(n.random.integers(1, 6))
    for p in n.random.permutation(primes) if primes else []:
        shape[int(n.random.integers(len(shape)))] *= int(p)
    n.node("Reshape", [x, n.numbers(shape)], shape)


def softmax(n):
    x = n.pick()
    n.node("Softmax", [x], n.shapes[x], axis=n.axis(x))


def layer_norm(n):
    x = n.pick()
    axis = n.axis(x)
    scale = n.shapes[x][axis:]
    n.node("LayerNormalization", [x, n.weight(*scale), n.weight(*scale)], n.shapes[x], axis=axis, epsilon=0.1)


def linear(n):
    x = n.pick(2)
    if x:
        out = int(n.random.integers(1, 6))
        n.node("MatMul", [x, n.weight(n.shapes[x][-1], out)], n.shapes[x][:-1] + (out,))


def product(n):
    x = n.pick(3)
    if x:
        turned = list(range(len(n.shapes[x])))
        turned[-1], turned[-2] = turned[-2], turned[-1]
        shape = n.shapes[x]
        y = n.node("Transpose", [x], [shape[i] for i in turned], perm=turned)
        n.node("MatMul", [x, y], shape[:-1] + (shape[-2],))


def activation(n):
    x = n.pick()
    n.node(str(n.random.choice(["Relu", "Sigmoid", "Tanh", "Abs"])), [x], n.shapes[x])


def pair(n):
    """Of two values, or of a value and a weight that is spread over it."""
    x = n.pick()
    op = str(n.random.choice(["Add", "Sub", "Mul"]))
    others = [y for y, shape in n.shapes.items() if fits(shape, n.shapes[x])]
    if n.random.random() < 0.5:
        y = str(n.random.choice(others))
        shape = np.broadcast_shapes(n.shapes[x], n.shapes[y])
    else:
        keep = int(n.random.integers(len(n.shapes[x]) + 1))
        y = n.weight(*[d if n.random.random() < 0.6 else 1 for d in n.shapes[x][keep:]])
        shape = n.shapes[x]
    n.node(op, [x, y] if n.random.random() < 0.7 else [y, x], shape)


def fits(a, b):
    try:
        np.broadcast_shapes(a, b)
        return True
    except ValueError:
        return False


def reduce(n):
    x = n.pick(2)
    if x:
        rank = len(n.shapes[x])
        axes = sorted(int(i) for i in n.random.choice(rank, int(n.random.integers(1, rank)), replace=False))
        keep = int(n.random.integers(2))
        shape = [1 if i in axes else d for i, d in enumerate(n.shapes[x]) if keep or i not in axes]
        n.node(str(n.random.choice(["ReduceMean", "ReduceSum", "ReduceMax"])), [x, n.numbers(axes)], shape, keepdims=keep)


def concat(n):
    x = n.pick()
    axis = n.axis(x)
    shape = list(n.shapes[x])
    others = [y for y, s in n.shapes.items() if len(s) == len(shape) and
              all(i == axis or s[i] == shape[i] for i in range(len(s)))]
    parts = [x] + [str(n.random.choice(others)) for _ in range(int(n.random.integers(1, 3)))]
    shape[axis] = sum(n.shapes[p][axis] for p in parts)
    n.node("Concat", parts, shape, axis=axis)


def cut(n):
    x = n.pick()
    axis = n.axis(x)
    size = n.shapes[x][axis]
    first = int(n.random.integers(size))
    last, step = int(n.random.integers(first + 1, size + 1)), int(n.random.integers(1, 3))
    shape = list(n.shapes[x])
    shape[axis] = len(range(first, last, step))
    n.node("Slice", [x] + [n.numbers([v]) for v in (first, last, axis, step)], shape)


def gather(n):
    x = n.pick(2)
    if x:
        axis = n.axis(x)
        index = n.random.integers(0, n.shapes[x][axis], () if n.random.random() < 0.5 else (2,))
        n.node("Gather", [x, n.numbers(index)], n.shapes[x][:axis] + index.shape + n.shapes[x][axis + 1:], axis=axis)


def pad(n):
    x = n.pick()
    pads = [int(v) for v in n.random.integers(0, 2, 2 * len(n.shapes[x]))]
    rank = len(n.shapes[x])
    n.node("Pad", [x, n.numbers(pads)], [d + pads[i] + pads[rank + i] for i, d in enumerate(n.shapes[x])])


def conv(n):
    x = n.pick(4)
    if x and len(n.shapes[x]) == 4:
        shape = n.shapes[x]
        n.node("Conv", [x, n.weight(3, shape[1], 3, 3), n.weight(3)], (shape[0], 3) + shape[2:], pads=[1, 1, 1, 1])


GROW = [transpose, transpose, reshape, reshape, softmax, layer_norm, linear, product, activation, pair, pair, reduce, concat,
        cut, gather, pad, conv]


def graph(seed):
    """A model whose outputs are the values that no node reads."""
    random = np.random.default_rng(seed)
    n = Network(random)
    for _ in range(int(random.integers(4, 16))):
        GROW[int(random.integers(len(GROW)))](n)
    read = {name for node in n.nodes for name in node.input}
    ends = [node.output[0] for node in n.nodes if node.output[0] not in read and node.output[0] in n.shapes][:8]
    if not ends:
        return None
    model = helper.make_model(helper.make_graph(
        n.nodes, "random", [helper.make_tensor_value_info("x", FLOAT, n.shapes["x"])],
        [helper.make_tensor_value_info(name, FLOAT, n.shapes[name]) for name in ends], n.weights),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    x = random.normal(size=n.shapes["x"]).astype("f")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return f"graph_{seed}", model, x, session.run(None, {"x": x}), b"1e-3 1e-3\n"


def add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def write(make):
    """The archive of the command line: for each seed what make gives, a name, a model, its input, outputs; or None."""
    path, *words = sys.argv[1:]
    ends = [(word.split("-")[0], word.split("-")[-1]) for word in words]
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for seed in [seed for first, last in ends for seed in range(int(first), int(last) + 1)]:
            made = make(seed)
            if made is None:
                continue
            name, model, x, outputs, tolerance = made
            add(tar, name + "/model.onnx", model.SerializeToString())
            add(tar, name + "/input_0.pb", numpy_helper.from_array(x).SerializeToString())
            for i, y in enumerate(outputs):
                add(tar, f"{name}/output_{i}.pb", numpy_helper.from_array(y).SerializeToString())
            add(tar, name + "/tolerance", tolerance)


if __name__ == "__main__":
    write(graph)
