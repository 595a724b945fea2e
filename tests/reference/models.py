"""A program that imports ONNX, held against PyTorch on the files of make_models.py: logits, a step of SGD, its bytes,
the same bits under four policies, and the saved file in ONNX Runtime.

    pip install torch numpy onnx onnxruntime
    python models.py FOLDER LIKE_ONNX [NAME...]         (a NAME is resnet18, say, or resnet18.old, or resnet18.old.eval)

The program is called so, once for each policy and once more on the file that it saved:

    LIKE_ONNX MODEL.onnx --batch 4 --in X.f32 --labels X.i32 --lr 0.01 --policy keep_all|segments|sqrt|cheap|budget
              --frozen-norms 0|1 --logits X.f32 --trained-logits X.f32 --saved X.onnx

prints "ops N least BYTES keep_all BYTES planned BYTES measured BYTES loss X hash H" and exits with 0, or refuses with 1
and a message. The table has a row for each file:

    logits     the largest difference from PyTorch's, in inference and in training, over the largest logit or 1
    step       the largest error of a change, over the largest change in its tensor; whose it is. A change is what a
               step did to a weight or a running statistic. Float holds a weight to a unit in its last place, so an
               error of one unit is none. A weight whose gradient is zero in truth (a bias in front of a norm) changes
               by rounding only: its change is compared with a thousandth of the largest of all weights. So may a
               statistic, as the mean of a convolution of what a norm made: with a thousandth of its own value
    floor      the same of PyTorch when it computes in float, not double: a value near a kink of relu falls on either
               side, and so does a maximum of two near values. Above 2.5e-4, four times as much is right
    memory     planned == measured, under each policy
    hash       the same for all policies
    ort        ONNX Runtime's logits on the saved file, against the program's on it; four times ONNX Runtime's own
               error, against double, is right where that is above 1e-5
    norms      whose statistics normalise in training: see make_models.py. Dynamo's files do not say, so both are right
               where the network was in training mode

Classes here, for make_models.py as well: Graph, an evaluator of ONNX in PyTorch that shares no code with the program.
"""
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
import torch.nn.functional as F

BATCH, LR = 4, 0.01
POLICIES = ("keep_all", "segments", "sqrt", "budget")
LOGITS, STEP, RUNTIME = 1e-4, 1e-3, 1e-5                                                                  # tolerances
BONUS = ("swin_t", "maxvit_t", "edgenext_small", "efficientvit_b0")                     # beyond the 25 that are counted
PATIENCE = 900                                                                            # seconds that a run may take


# ---- an evaluator of ONNX


def attributes(node):
    return {a.name: onnx.numpy_helper.to_array(a.t) if a.type == onnx.AttributeProto.TENSOR else
            onnx.helper.get_attribute_value(a) for a in node.attribute}


def ints(tensor):
    return [int(v) for v in tensor.reshape(-1)]


def two_sides(a):
    """ONNX's pads of a convolution or pooling, as PyTorch has them: the same before and behind."""
    pads = a.get("pads", [0, 0, 0, 0])
    half = len(pads) // 2
    assert pads[:half] == pads[half:], "pads that differ before and behind"
    return pads[:half]


def reshape(x, shape, allowzero):
    shape = ints(shape)
    return x.reshape(tuple(x.shape[i] if s == 0 and not allowzero else s for i, s in enumerate(shape)))


def sliced(x, starts, ends, axes=None, steps=None):
    axes = range(len(ints(starts))) if axes is None else ints(axes)
    steps = [1] * len(ints(starts)) if steps is None else ints(steps)
    for start, end, axis, step in zip(ints(starts), ints(ends), axes, steps):
        where = range(x.shape[axis])[start:end:step]
        x = x.index_select(axis, torch.tensor(list(where), dtype=torch.long))
    return x


def padded(x, pads, value=None, axes=None):
    pads, axes = ints(pads), range(x.dim()) if axes is None else [a % x.dim() for a in ints(axes)]
    sides = [0] * (2 * x.dim())
    for i, axis in enumerate(axes):
        at = 2 * (x.dim() - 1 - axis)
        sides[at], sides[at + 1] = pads[i], pads[i + len(axes)]
    return F.pad(x, sides, value=0.0 if value is None else float(value))


def split(x, sizes, axis, parts):
    if sizes is not None and sizes.dim() == 0:
        return torch.split(x, int(sizes), axis)
    if sizes is not None:
        return torch.split(x, ints(sizes), axis)
    return torch.split(x, -(-x.shape[axis] // parts), axis)


def squeezed(x, axes):
    axes = [i for i, s in enumerate(x.shape) if s == 1] if axes is None else [a % x.dim() for a in ints(axes)]
    return x.reshape(tuple(s for i, s in enumerate(x.shape) if i not in axes))


def unsqueezed(x, axes):
    axes = ints(axes)
    for axis in sorted(a % (x.dim() + len(axes)) for a in axes):
        x = x.unsqueeze(axis)
    return x


def gather(x, indices, axis):
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    out = x.index_select(axis, indices.reshape(-1))
    axis %= x.dim()
    return out.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]))


def at(indices):
    """The last axis of indices as an index of the first axes."""
    return tuple(indices.unbind(-1))


def scatter_nd(x, indices, updates):
    return x.clone().index_put(at(indices), updates)


def resized(x, scales, sizes, a):
    assert a["mode"] == b"nearest" and a["coordinate_transformation_mode"] == b"asymmetric"
    assert a["nearest_mode"] == b"floor"
    size = ints(sizes)[2:] if sizes is not None else [int(s * k) for s, k in zip(x.shape[2:], scales.tolist()[2:])]
    return F.interpolate(x, size=size, mode="nearest")


def over(reduce, x, axes, a):
    axes = list(range(x.dim())) if axes is None else ints(axes)
    return reduce(x, axes, bool(a.get("keepdims", 1)))


def gemm(x, w, b, a):
    x, w = x.t() if a.get("transA") else x, w.t() if a.get("transB") else w
    y = a.get("alpha", 1.0) * (x @ w)
    return y if b is None else y + a.get("beta", 1.0) * b


def expanded(x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, ints(shape)))


def layer_norm(x, w, b, a):
    assert a.get("axis", -1) in (-1, x.dim() - 1)
    return F.layer_norm(x, x.shape[-1:], w, b, a.get("epsilon", 1e-5))


def quotient(x, y):
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def dropped(x, ratio, training):
    assert training is None or not bool(training) or float(ratio) == 0, "a dropout that drops"
    return x


def ranged(start, limit, delta):
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def max_pool(x, a):
    return F.max_pool2d(x, a["kernel_shape"], a.get("strides", 1), two_sides(a), ceil_mode=bool(a.get("ceil_mode")))


def average_pool(x, a):
    return F.avg_pool2d(x, a["kernel_shape"], a.get("strides", 1), two_sides(a), bool(a.get("ceil_mode")),
                        bool(a.get("count_include_pad")))


def convolved(x, w, b, a):
    return F.conv2d(x, w, b, a.get("strides", 1), two_sides(a), a.get("dilations", 1), a.get("group", 1))


OPERATIONS = {                                              # of tensors, missing ones None, and of the attributes, last
    "Add": lambda x, y, a: x + y,
    "AveragePool": average_pool,
    "CastLike": lambda x, y, a: x.to(y.dtype),
    "Clip": lambda x, low, high, a: torch.clamp(x, low, high),
    "Concat": lambda *x: torch.cat(x[:-1], x[-1]["axis"]),
    "Conv": convolved,
    "Cos": lambda x, a: torch.cos(x),
    "CumSum": lambda x, axis, a: torch.cumsum(x, int(axis)),
    "Div": lambda x, y, a: quotient(x, y),
    "Dropout": lambda x, ratio, training, a: dropped(x, ratio, training),
    "Einsum": lambda *x: torch.einsum(x[-1]["equation"].decode().replace(" ", ""), *x[:-1]),
    "Equal": lambda x, y, a: x == y,
    "Expand": lambda x, shape, a: expanded(x, shape),
    "Flatten": lambda x, a: x.flatten(a.get("axis", 1)),
    "Floor": lambda x, a: torch.floor(x),
    "Gather": lambda x, i, a: gather(x, i, a.get("axis", 0)),
    "GatherND": lambda x, i, a: x[at(i)],
    "Gelu": lambda x, a: F.gelu(x, approximate=a.get("approximate", b"none").decode()),
    "Gemm": gemm,
    "GlobalAveragePool": lambda x, a: x.mean((2, 3), keepdim=True),
    "HardSigmoid": lambda x, a: torch.clamp(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0, 1),
    "HardSwish": lambda x, a: F.hardswish(x),
    "Identity": lambda x, a: x,
    "LayerNormalization": layer_norm,
    "MatMul": lambda x, y, a: torch.matmul(x, y),
    "Max": lambda *x: functools.reduce(torch.maximum, x[:-1]),
    "MaxPool": max_pool,
    "Mod": lambda x, y, a: torch.remainder(x, y),
    "Mul": lambda x, y, a: x * y,
    "Not": lambda x, a: ~x,
    "Pad": lambda x, pads, value, axes, a: padded(x, pads, value, axes),
    "Pow": lambda x, y, a: torch.pow(x, y),
    "Range": lambda start, limit, delta, a: ranged(start, limit, delta),
    "ReduceL2": lambda x, axes, a: over(lambda v, d, k: torch.linalg.vector_norm(v, 2, d, k), x, axes, a),
    "ReduceMean": lambda x, axes, a: over(torch.mean, x, axes, a),
    "Relu": lambda x, a: torch.relu(x),
    "Reshape": lambda x, shape, a: reshape(x, shape, a.get("allowzero", 0)),
    "Resize": lambda x, roi, scales, sizes, a: resized(x, scales, sizes, a),
    "ScatterND": lambda x, i, y, a: scatter_nd(x, i, y),
    "SequenceAt": lambda x, i, a: x[int(i)],
    "Shape": lambda x, a: torch.tensor(list(x.shape)[a.get("start", 0):a.get("end")], dtype=torch.long),
    "Sigmoid": lambda x, a: torch.sigmoid(x),
    "Sin": lambda x, a: torch.sin(x),
    "Slice": lambda x, starts, ends, axes, steps, a: sliced(x, starts, ends, axes, steps),
    "Softmax": lambda x, a: torch.softmax(x, a.get("axis", -1)),
    "Split": lambda x, sizes, a: split(x, sizes, a.get("axis", 0), a.get("num_outputs")),
    "SplitToSequence": lambda x, sizes, a: split(x, sizes, a.get("axis", 0), None),
    "Sqrt": lambda x, a: torch.sqrt(x),
    "Squeeze": lambda x, axes, a: squeezed(x, axes),
    "Sub": lambda x, y, a: x - y,
    "Tanh": lambda x, a: torch.tanh(x),
    "Transpose": lambda x, a: x.permute(a["perm"]),
    "Unsqueeze": lambda x, axes, a: unsqueezed(x, axes),
    "Where": lambda c, x, y, a: torch.where(c, x, y),
}
INPUTS = {"Clip": 3, "Conv": 3, "Dropout": 3, "Gemm": 3, "LayerNormalization": 3, "Pad": 4, "ReduceL2": 2,
          "ReduceMean": 2, "Resize": 4, "Slice": 5, "Split": 2, "SplitToSequence": 2, "Squeeze": 2}      # optional too
SEVERAL = ("Split",)                                                           # these give several outputs, no tuple


class Graph:
    """An ONNX file whose floats are of one dtype, float or double. `norms` is a rule: "fixed" normalises by the running
    statistics, "batch" by those of the batch, "file" as each norm says."""

    def __init__(self, path, dtype=torch.float64):
        self.proto = onnx.load(path).graph
        self.dtype = dtype
        self.initial = {t.name: onnx.numpy_helper.to_array(t) for t in self.proto.initializer}
        norms = [n for n in self.proto.node if n.op_type == "BatchNormalization"]
        self.again = {n.output[0]: n.input[0] for n in self.proto.node if n.op_type == "Identity"}    # of equal tensors
        self.statistics = {self.first(name) for n in norms for name in n.input[3:5]}
        self.marked = [bool(attributes(n).get("training_mode", 0)) for n in norms]
        (self.input,) = [v.name for v in self.proto.input if v.name not in self.initial]
        self.leaves = [name for name, v in self.initial.items()
                       if v.dtype == np.float32 and v.size > 1 and name not in self.statistics]

    def first(self, name):
        while name in self.again:
            name = self.again[name]
        return name

    def tensor(self, array):
        t = torch.from_numpy(np.array(array))
        return t.to(self.dtype) if t.is_floating_point() else t

    def values(self):
        return {name: self.tensor(v) for name, v in self.initial.items()}

    def constant(self, a):
        (kind, value), = a.items()
        return self.tensor(np.array(value, np.float32 if "float" in kind else np.int64) if kind != "value" else value)

    def cast(self, x, to):
        kinds = {1: self.dtype, 11: self.dtype, 6: torch.int32, 7: torch.int64, 9: torch.bool}
        return x.to(kinds[to])

    def norm(self, x, weight, bias, mean, var, names, a, norms, moved):
        batch = bool(a.get("training_mode", 0)) if norms == "file" else norms == "batch"
        if batch:
            keep, count = a.get("momentum", 0.9), x.numel() / x.shape[1]
            now, spread = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
            moved[names[0]] = (keep * mean + (1 - keep) * now).detach()
            moved[names[1]] = (keep * var + (1 - keep) * spread * count / (count - 1)).detach()     # as PyTorch does
            moved["population/" + names[1]] = (keep * var + (1 - keep) * spread).detach()           # as ONNX says
            mean, var = now, spread
        scale = weight / torch.sqrt(var + a.get("epsilon", 1e-5))
        return (x - mean.view(-1, 1, 1)) * scale.view(-1, 1, 1) + bias.view(-1, 1, 1)

    def node(self, node, inputs, norms, moved):
        a = attributes(node)
        if node.op_type == "Constant":
            return self.constant(a)
        if node.op_type == "ConstantOfShape":
            value = self.tensor(a.get("value", np.zeros(1, np.float32)))
            return value.reshape(()).expand(ints(inputs[0])).clone()
        if node.op_type == "Cast":
            return self.cast(inputs[0], a["to"])
        if node.op_type == "BatchNormalization":
            return self.norm(*inputs, [self.first(name) for name in node.input[3:5]], a, norms, moved)
        inputs += [None] * (INPUTS.get(node.op_type, 0) - len(inputs))
        if node.op_type == "Split" and "num_outputs" not in a:
            a["num_outputs"] = len(node.output)
        return OPERATIONS[node.op_type](*inputs, a)

    def run(self, image, values=None, norms="fixed"):
        """The first output, and the running statistics as they were moved."""
        values, moved = dict(values or self.values()), {}
        values[self.input] = image.to(self.dtype)
        left = {}
        for node in self.proto.node:
            for name in node.input:
                left[name] = left.get(name, 0) + 1
        for node in self.proto.node:
            out = self.node(node, [values[name] if name else None for name in node.input], norms, moved)
            values.update(zip(node.output, out if node.op_type in SEVERAL else (out,)))
            for name in node.input:
                left[name] -= 1
                if left[name] == 0 and name:
                    values.pop(name, None)                                      # memory, where autograd needs it not
        return values[self.proto.output[0].name], moved


# ---- errors


def change_errors(start, want, got, zero):
    """Of each tensor: see the top. All are arrays by name; `zero` names the weights without a gradient."""
    changes = {name: np.abs(want[name].astype("d") - start[name]).max() for name in want}
    weights = [change for name, change in changes.items() if not running(name)]
    largest, errors = max(weights, default=0.0), {}
    for name, change in changes.items():
        unit = np.spacing(np.abs(want[name]).astype("f"))
        error = np.maximum(np.abs(got[name].astype("d") - want[name]) - unit, 0).max()
        least = 1e-3 * np.abs(want[name]).max() if running(name) else (1e-3 if name in zero else 1e-6) * largest
        errors[name] = float(error / max(change, least, 1e-30))
    return errors


def running(name):
    return name.endswith(("running_mean", "running_var"))


def worst(errors):
    """A NaN is the worst."""
    name = max(errors, key=lambda key: (errors[key] != errors[key], errors[key]), default="")
    return errors.get(name, 0.0), name


def apart(got, want):
    return float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))


# ---- the program


class Refused(Exception):
    pass


class Reference:
    """What make_models.py found for a file."""

    def __init__(self, path):
        self.file = np.load(path)
        self.start = self.under("start/")
        self.rules = {str(self.file["norms"]): ""}
        if "other/norms" in self.file:
            self.rules[str(self.file["other/norms"])] = "other/"

    def under(self, prefix):
        return {key[len(prefix):]: self.file[key] for key in self.file.files if key.startswith(prefix)}

    def __getitem__(self, key):
        return self.file[key]


def called(program, model, folder, policy, frozen):
    """The numbers it prints, and its logits in inference and training."""
    outs = [folder / name for name in ("logits", "trained", "saved.onnx")]
    for out in outs:
        out.unlink(missing_ok=True)
    done = subprocess.run([program, model, "--batch", str(BATCH), "--in", folder / "in", "--labels", folder / "labels",
                           "--lr", str(LR), "--policy", policy, "--frozen-norms", str(frozen), "--logits", outs[0],
                           "--trained-logits", outs[1], "--saved", outs[2]],
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode == 1:
        raise Refused(" ".join(done.stderr.split()) or "(without a word)")
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {' '.join(done.stderr.split())[-200:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("ops "))
    printed = dict(re.findall(r"(\w+) (\S+)", line))
    return printed, [np.fromfile(out, "<f4") for out in outs[:2]]


def for_inference(path):
    """The saved file as ONNX Runtime takes it: its norms in inference mode."""
    file = onnx.load(path)
    for node in file.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            for a in node.attribute:
                if a.name == "training_mode":
                    a.i = 0
    return file.SerializeToString()


def in_runtime(path, image):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 2
    session = onnxruntime.InferenceSession(for_inference(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: image})[0]


def exact(path, image):
    with torch.no_grad():
        return Graph(path).run(torch.from_numpy(image))[0].numpy()


def arrays(path):
    return {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def rule_of(reference, loss):
    """Whose statistics the program took: the loss tells."""
    return min(reference.rules, key=lambda rule: abs(loss - float(reference[reference.rules[rule] + "loss"])))


def step_error(reference, prefix, saved, original, variance="step/"):
    """The worst change; what was no weight must be as it was."""
    want = {**reference.under(prefix + "step/"), **reference.under(prefix + variance)}
    constants = [name for name in map(str, reference["constants"]) if np.array_equal(saved[name], original[name])]
    want = {name: value for name, value in want.items() if name not in constants}
    for name, value in original.items():
        if name not in want and not np.array_equal(saved[name], value):
            return float("inf"), name + " is no weight"
    return worst(change_errors(reference.start, want, saved, set(map(str, reference["zero"]))))


def compare(program, path, folder):
    """The row of a file, its numbers by name, and what is wrong."""
    reference = Reference(path.with_suffix(".ref.npz"))
    image = reference["input"]
    image.astype("<f4").tofile(folder / "in")
    reference["labels"].astype("<i4").tofile(folder / "labels")
    printed, row, wrong = {}, {}, []
    frozen = int(".eval." in path.name)              # exported for inference: its norms keep their statistics
    for policy in POLICIES:
        printed[policy], logits = called(program, path, folder, policy, frozen)
        if policy == POLICIES[0]:
            first, saved = logits, (folder / "saved.onnx").rename(folder / "first.onnx")
    loss = float(printed["keep_all"]["loss"])
    row["norms"] = rule_of(reference, loss)
    prefix = reference.rules[row["norms"]]
    if prefix and ".train." not in path.name:
        wrong.append("norms")
    shape = reference["logits_eval"].shape
    row["logits"] = max(apart(first[0].reshape(shape), reference["logits_eval"]),
                        apart(first[1].reshape(shape), reference[prefix + "logits_train"]),
                        apart(np.float64(loss), reference[prefix + "loss"]))
    row["step"], row["where"] = step_error(reference, prefix, arrays(saved), arrays(path))
    row["floor"] = float(reference[prefix + "floor"])
    row["memory"] = all(p["planned"] == p["measured"] for p in printed.values())
    row["hash"] = len({p["hash"] for p in printed.values()}) == 1
    again = called(program, saved, folder, "keep_all", frozen)[1][0].reshape(shape)
    runtimes = in_runtime(saved, image)
    row["ort"], rough = apart(again, runtimes), apart(runtimes, exact(saved, image))
    row["ops"], row["least"], row["keep_all"] = (int(printed["budget"][key]) for key in ("ops", "least", "keep_all"))
    limits = {"logits": LOGITS, "step": max(STEP, 4 * row["floor"]), "ort": max(RUNTIME, 4 * rough)}
    wrong += [key for key, limit in limits.items() if not row[key] <= limit]
    other = step_error(reference, prefix, arrays(saved), arrays(path), "population/")[0] if "step" in wrong else np.inf
    if other <= limits["step"]:
        wrong.append("running variances are of the population, PyTorch's of the sample")
    return row, wrong + [key for key in ("memory", "hash") if not row[key]]


def print_row(label, row, wrong):
    yes = {True: "yes", False: "NO"}
    print(f"{label:34} {row['ops']:5} {row['logits']:.1e} {row['step']:.1e} {row['floor']:.1e} "
          f"{yes[row['memory']]:6} {yes[row['hash']]:4} {row['ort']:.1e} {row['norms']:5} "
          f"{row['least'] / 2**20:7.1f} {row['keep_all'] / 2**20:8.1f}  "
          f"{'WRONG: ' + ', '.join(wrong) if wrong else 'right'}  {row['where']}", flush=True)


def held(program, path):
    """"right", "wrong" or "refused"."""
    label = path.name.removesuffix(".onnx")
    with tempfile.TemporaryDirectory() as folder:
        try:
            row, wrong = compare(program, path, pathlib.Path(folder))
        except Refused as message:
            print(f"{label:34} refused: {message}", flush=True)
            return "refused"
        except Exception as problem:                    # noqa: a crash, a time-out, a file or a line that is missing
            print(f"{label:34} WRONG: {type(problem).__name__}: {problem}", flush=True)
            return "wrong"
    print_row(label, row, wrong)
    return "wrong" if wrong else "right"


def chosen(folder, names):
    paths = sorted(p for p in folder.glob("*.onnx") if p.with_suffix(".ref.npz").exists())
    return [p for p in paths if not names or any((p.name + ".").startswith(name + ".") for name in names)]


def summary(results, bonus):
    """A model counts as imported when all its files are, and none is wrong."""
    mine = {label: result for label, result in results.items() if (label.split(".")[0] in BONUS) == bonus}
    models = {label.split(".")[0] for label in mine}
    whole = [m for m in models if all(r == "right" for label, r in mine.items() if label.split(".")[0] == m)]
    right = list(mine.values()).count("right")
    if mine:
        print(f"{'bonus: ' if bonus else ''}imported {len(whole)} of {len(models)} models "
              f"({right} of {len(mine)} files)")


if __name__ == "__main__":
    torch.set_num_threads(2)
    print(f"{'file':34} {'ops':>5} logits  step    floor   memory hash ort     norms {'least':>7} {'keep all':>8} MiB")
    results = {p.name: held(pathlib.Path(sys.argv[2]).resolve(), p)
               for p in chosen(pathlib.Path(sys.argv[1]), sys.argv[3:])}
    summary(results, False)
    summary(results, True)
    wrong = [label for label, result in results.items() if result == "wrong"]
    sys.exit("wrong: " + ", ".join(wrong) if wrong else 0 if results else "no file with a reference")
