"""Write the conformance suite of the onnx package, or a sample of it, as one tar archive for a C program to read.

Run:  pip install onnx && python make_onnx.py OUT.tar [--sample N | --all]
Made with Python 3.11.7, onnx 1.23.2, numpy 2.4.6. The same versions give the same bytes. Nothing is downloaded.

A case is the entries NAME/model.onnx (ModelProto), NAME/input_0.pb ..., NAME/output_0.pb ... (TensorProto) and
NAME/tolerance (text: "RTOL ATOL", left out where it is "1e-3 1e-7"; a value may be off by ATOL + RTOL * its size). Input k is that of the k-th graph
input that is not also an initializer. Entries of a case are together, cases are sorted by name, and a name is at most
100 bytes, so that USTAR's prefix is empty.

The cases: one node each, made by onnx, and the same with its op's function in the op's place (_expanded); the small
graphs that the package ships as files; its nine whole networks (light_), whose weights are made by ConstantOfShape and
whose input is a ramp. Left out: cases that take or give a sequence or an optional value, and the data sets after the
first of a case. A sample has at most N (300) cases and 5 KB for each of the N: it ends where either is used up.
"""
import argparse
import io
import json
import re
import tarfile
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests

KINDS = ("simple", "pytorch-converted", "pytorch-operator")  # those of files
SEED = 0  # onnx makes inputs by np.random

# The sample: ops that a reader should take, by weight; "several" is a graph of several ops.
OFTEN = """Conv ConvTranspose Gemm MatMul BatchNormalization LayerNormalization GroupNormalization
    InstanceNormalization RMSNormalization MaxPool AveragePool Softmax Concat Split Slice Pad Resize Transpose Reshape
    Flatten Squeeze Unsqueeze ReduceMean ReduceSum Gather Add Sub Mul Attention several""".split()
SELDOM = """GlobalAveragePool GlobalMaxPool LpPool Relu LeakyRelu PRelu Sigmoid Tanh HardSigmoid HardSwish Elu Selu
    Celu Gelu Mish Swish Softplus Softsign Erf Clip Exp Log Sqrt Abs Neg Reciprocal Sin Cos Pow ThresholdedRelu
    LogSoftmax Upsample Expand Identity Dropout ReduceMax DepthToSpace SpaceToDepth Div Min Max Mean Sum Constant
    ConstantOfShape Shape Cast Range Where Equal Tile Einsum Trilu CumSum ArgMax RotaryEmbedding""".split()
WEIGHTS = dict.fromkeys(SELDOM, 1) | dict.fromkeys(OFTEN, 3)
# Cases that are not among the smallest and show more.
SHOWN = {"test_" + name for name in """attention_4d attention_4d_causal attention_4d_attn_mask attention_4d_gqa
    attention_3d batchnorm_epsilon_training_mode slice slice_neg_steps resize_upsample_scales_nearest
    resize_upsample_scales_linear resize_downsample_sizes_nearest PixelShuffle Conv2d_padding Conv2d_depthwise
    Conv2d_groups Conv2d reflect_pad layer_normalization_3d_axis2_epsilon_expanded operator_basic operator_params
    split_1d_uneven_split_opset18""".split()}

# Ops that a reader should refuse by name: the smallest case of each; of a sample of N, N * REFUSED_PART.
REFUSED = """QuantizeLinear If Loop StringNormalizer LSTM DequantizeLinear Scan Hardmax TopK NonZero MatMulInteger
    StringConcat LabelEncoder GRU DFT GridSample ScatterND DynamicQuantizeLinear NonMaxSuppression BitwiseNot
    QLinearMatMul RegexFullMatch TreeEnsemble RNN STFT RoiAlign ConvInteger StringSplit Unique BitShift OneHot GatherND
    DeformConv FlexAttention TfIdfVectorizer MaxUnpool Col2Im Det OptionalHasElement EyeLike""".split()
REFUSED_PART = len(REFUSED) / 300
LARGEST, AVERAGE, SIZE_CLASS = 12000, 4950, 4096  # bytes of a sampled case in the archive
RANDOM = re.compile("test_(bernoulli|training_dropout(?!_zero_ratio))")  # their outputs are one draw


@dataclass
class Case:
    name: str
    op: str  # "several" where the graph has several; of an _expanded case, the op that was expanded
    model: bytes
    inputs: list  # bytes of TensorProto
    outputs: list
    rtol: float = 1e-3
    atol: float = 1e-7

    def files(self):
        yield "model.onnx", self.model
        for label, parts in (("input", self.inputs), ("output", self.outputs)):
            yield from ((f"{label}_{k}.pb", part) for k, part in enumerate(parts))
        if (self.rtol, self.atol) != (1e-3, 1e-7):
            yield "tolerance", f"{self.rtol:g} {self.atol:g}\n".encode()

    def graph(self):
        return onnx.ModelProto.FromString(self.model).graph

    def size(self):
        """Bytes in the archive, where an entry has a header and fills blocks."""
        return sum(tarfile.BLOCKSIZE * (1 + -(-len(data) // tarfile.BLOCKSIZE)) for _, data in self.files())

    def by_size(self):
        return self.size(), self.name

    def expanded(self):
        return unexpanded(self.name) != self.name


def unexpanded(name):
    return re.sub(r"_expanded(_ver\d+)?$", "", name)


def of_tensors(graph):
    return all(v.type.HasField("tensor_type") for v in [*graph.input, *graph.output])


def op_of(graph):
    ops = {n.op_type for n in graph.node} - {"Constant"} or {"Constant"}
    return ops.pop() if len(ops) == 1 else "several"


def fed(graph):
    """The inputs that are not initializers."""
    known = {t.name for t in graph.initializer}
    return [v for v in graph.input if v.name not in known]


def tensor(value, name):
    """The bytes of an array, a NumPy scalar or a TensorProto, under the name that the graph has for it."""
    proto = onnx.TensorProto()
    proto.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
    proto.name = name
    return proto.SerializeToString(deterministic=True)


def tensors(values, infos):
    return [tensor(value, info.name) for value, info in zip(values, infos, strict=True)]


def node_cases():
    np.random.seed(SEED)
    np.seterr(all="ignore")  # onnx divides by zero and overflows on purpose
    made = load_model_tests(kind="node")
    ops = {t.name: op_of(t.model.graph) for t in made}
    for t in made:
        graph = t.model.graph
        if of_tensors(graph):
            inputs, outputs = t.data_sets[0]
            yield Case(t.name, ops[unexpanded(t.name)], t.model.SerializeToString(deterministic=True),
                       tensors(inputs, graph.input), tensors(outputs, graph.output), t.rtol, t.atol)


def contents(folder, label):
    return [(folder / f"{label}_{k}.pb").read_bytes() for k in range(len(list(folder.glob(f"{label}_*.pb"))))]


def file_cases(kind):
    for t in load_model_tests(kind=kind):
        folder = Path(t.model_dir)
        model = (folder / "model.onnx").read_bytes()
        graph = onnx.ModelProto.FromString(model).graph
        if of_tensors(graph):
            data = folder / "test_data_set_0"
            yield Case(t.name, op_of(graph), model, contents(data, "input"), contents(data, "output"), t.rtol, t.atol)


def ramp(info):
    """The input that onnx's runner gives a whole network."""
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    n = int(np.prod(shape))
    return tensor((np.arange(n).reshape(shape) / n).astype(np.float32), info.name)


def network_cases():
    light = Path(DATA_DIR, "light")
    for about in sorted(Path(DATA_DIR, "real").glob("*/data.json")):
        about = json.loads(about.read_text())
        name = Path(about["url"]).stem
        model = (light / f"{name}.onnx").read_bytes()
        inputs = [ramp(info) for info in fed(onnx.ModelProto.FromString(model).graph)]
        yield Case(name, "several", model, inputs, contents(light, f"{name}_output"), about["rtol"], about["atol"])


def all_cases():
    """kind -> its cases"""
    kinds = {"node": list(node_cases())} | {kind: list(file_cases(kind)) for kind in KINDS}
    kinds["light"] = list(network_cases())
    return kinds


def types(graph):
    return {v.type.tensor_type.elem_type for v in [*graph.input, *graph.output]} | {
        t.data_type for t in graph.initializer}


def axes(graph):
    return [len(v.type.tensor_type.shape.dim) for v in graph.input]


def plain(graph):
    return max(axes(graph), default=0) <= 4 and types(graph) <= {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}


def variants(graph):
    """What tells two cases of an op apart, coarse and fine: which attributes, and the strings among them; then all
    values of these, the axes of the inputs, and whether some are constant."""
    attributes = [a for n in graph.node for a in n.attribute]
    coarse = sorted((a.name, a.s) for a in attributes), [(len(n.input), len(n.output)) for n in graph.node]
    values = sorted(a.SerializeToString(deterministic=True) for a in attributes)
    return str(coarse), str((values, axes(graph), len(graph.initializer) > 0))


def by_variant(cases):
    """Each coarse variant before the second case of any, then the same with the fine ones."""
    seen, turns = Counter(), []
    for case in cases:
        coarse, fine = variants(case.graph())
        turns.append((seen[coarse], seen[coarse, fine]))
        seen.update([coarse, (coarse, fine)])
    return [case for _, case in sorted(zip(turns, cases), key=lambda pair: pair[0])]


def place(case):
    """Types of 8 bits and fewer last, small cases first; then in no order of names, as neighbours are alike."""
    tiny = max(types(case.graph())) > onnx.TensorProto.BFLOAT16
    return tiny, case.size() // SIZE_CLASS, zlib.crc32(case.name.encode())


def ranked(cases):
    """Each variant before the second case of any; between those in float of up to four axes, now and then one of others
    or one that is expanded."""
    queues = {"plain": [], "other": [], "expanded": []}
    for case in sorted(cases, key=place):
        queues["expanded" if case.expanded() else "plain" if plain(case.graph()) else "other"].append(case)
    places = []
    for kind, (first, step) in {"plain": (0, 1), "other": (2.5, 3), "expanded": (3.6, 4)}.items():
        places += [(first + step * k, case) for k, case in enumerate(by_variant(queues[kind]))]
    return [case for _, case in sorted(places, key=lambda pair: pair[0])]


def fitting(cases):
    """Those small enough, or the smallest."""
    cases = [case for case in cases if not RANDOM.match(case.name)]
    return [case for case in cases if case.size() <= LARGEST] or [min(cases, key=Case.by_size)]


def queue(cases):
    """What a sample takes, first to last, once it has its refused ones."""
    by_op, keys = {}, []
    for case in cases:
        by_op.setdefault(case.op, []).append(case)
    for op, weight in WEIGHTS.items():
        shown = [case for case in by_op[op] if case.name in SHOWN]
        others = [case for case in ranked(fitting(by_op[op])) if case.name not in SHOWN]
        keys += [(-1, case.name, case) for case in shown]
        keys += [(rank / weight, case.name, case) for rank, case in enumerate(others)]
    return [case for _, _, case in sorted(keys, key=lambda key: key[:2])]


def sample(cases, count):
    """At most `count` cases of `count` * AVERAGE bytes."""
    taken, left = [], count * AVERAGE
    for op in REFUSED[:round(count * REFUSED_PART)]:
        taken.append(min((case for case in cases if case.op == op), key=Case.by_size))
        left -= taken[-1].size()
    for case in queue(cases)[:count - len(taken)]:
        left -= case.size()
        if left < 0:
            break
        taken.append(case)
    return taken


def add(tar, name, data):
    entry = tarfile.TarInfo(name)  # owner and time are 0, the mode 644
    entry.size = len(data)
    assert len(name) <= tarfile.LENGTH_NAME
    tar.addfile(entry, io.BytesIO(data))


def write(path, cases):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for case in sorted(cases, key=lambda c: c.name):
            for name, data in case.files():
                add(tar, f"{case.name}/{name}", data)


def main():
    parser = argparse.ArgumentParser(description="Write onnx's conformance suite as a tar archive.")
    parser.add_argument("out", metavar="OUT.tar", type=Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sample", metavar="N", type=int, default=300)
    which.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    kinds = all_cases()
    cases = [case for kind in kinds.values() for case in kind]
    assert len({case.name for case in cases}) == len(cases)
    print(", ".join(f"{len(kind)} {name}" for name, kind in kinds.items()))
    cases = cases if arguments.all else sample(cases, arguments.sample)
    write(arguments.out, cases)
    print(f"{arguments.out}: {len(cases)} cases, {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
