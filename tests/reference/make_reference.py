"""Write cases.txt: outputs and gradients of gcp's ops, computed by PyTorch in float64.

Run:  pip install torch numpy && python make_reference.py
Made with Python 3.11.7, torch 2.15.0 (CPU), numpy 2.4.6.
Layouts and file format: README.md. Nothing is read; inputs come from value().
"""
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

DOUT_SEED = 9  # upstream gradient
STEP_SEED = 20  # optimisers: the gradient of step t is value(20 + t, i), t = 1..4
STEPS = 4


def conv(op, x, w, bias=None, stride=1, pad=(0, 0, 0, 0), dilation=1, groups=1):
    """pad is top, bottom, left, right."""
    shapes = dict(x=x, w=w) | (dict(bias=bias) if bias else {})
    return dict(op=op, shapes=shapes, stride=stride, pad=pad, dilation=dilation, groups=groups)


def case(op, shapes, **attributes):
    return dict(op=op, shapes=shapes, **attributes)


X = (2, 3, 4, 3)  # NHWC
BN = dict(x=X, gamma=(3,), beta=(3,))
PARAM = dict(param=(5,))

# name -> op, operand shapes in gcp layout (operand 1 has seed 1, and so on), attributes
CASES = {
    "conv2d_k3_pad1_bias": conv("conv2d", (2, 5, 4, 3), (4, 3, 3, 3), (4,), pad=(1, 1, 1, 1)),
    "conv2d_k3_stride2": conv("conv2d", (2, 5, 6, 3), (4, 3, 3, 3), stride=2),
    "conv2d_k3x2_asym_pad": conv("conv2d", (2, 5, 4, 3), (2, 3, 2, 3), pad=(1, 0, 2, 1)),
    "conv2d_k3_dilation2": conv("conv2d", (2, 6, 5, 3), (2, 3, 3, 3), pad=(1, 1, 1, 1), dilation=2),
    "conv2d_k3_groups2": conv("conv2d", (2, 4, 3, 4), (6, 3, 3, 2), (6,), pad=(1, 1, 1, 1), groups=2),
    "conv2d_depthwise": conv("conv2d", (2, 4, 5, 4), (4, 3, 3, 1), pad=(1, 1, 1, 1), groups=4),
    "conv2d_1x1": conv("conv2d", (2, 3, 4, 3), (5, 1, 1, 3)),
    # TensorFlow SAME: out = ceil(in / stride), the odd cell of padding goes to the end
    "conv2d_k5_same_stride2": conv("conv2d", (1, 6, 7, 2), (3, 5, 5, 2), stride=2, pad=(1, 2, 2, 2)),
    "conv_transpose2d_k3_stride2": conv("conv_transpose2d", (2, 3, 4, 3), (3, 3, 3, 2), (2,),
                                        stride=2, pad=(1, 1, 1, 1)),
    "upsample_nearest2": case("upsample", dict(x=(2, 3, 2, 2)), scale=2, mode="nearest"),
    "upsample_bilinear2": case("upsample", dict(x=(2, 3, 2, 2)), scale=2, mode="bilinear"),
    "linear_bias": case("linear", dict(x=(4, 5), w=(3, 5), bias=(3,))),
    "matmul": case("matmul", dict(a=(3, 4), b=(4, 5))),
    "matmul_batch": case("matmul", dict(a=(2, 3, 4), b=(2, 4, 5))),
    "matmul_batch_ta": case("matmul_t", dict(a=(2, 4, 3), b=(2, 4, 5)), ta=True),
    "matmul_batch_tb": case("matmul_t", dict(a=(2, 3, 2, 4), b=(2, 3, 5, 4)), tb=True),
    "matmul_batch_tt": case("matmul_t", dict(a=(2, 4, 3), b=(1, 5, 4)), ta=True, tb=True),
    "matmul_ta": case("matmul_t", dict(a=(4, 3), b=(4, 5)), ta=True),
    "add": case("add", dict(a=X, b=X)),
    "mul": case("mul", dict(a=X, b=X)),
    "bias": case("bias", dict(x=X, bias=(3,))),
    "scale": case("scale", dict(x=X), factor=-1.5),
    "relu": case("relu", dict(x=X)),
    "leaky_relu": case("leaky_relu", dict(x=X), slope=0.1),
    "tanh": case("tanh", dict(x=X)),
    "sigmoid": case("sigmoid", dict(x=X)),
    "gelu": case("gelu", dict(x=X), form="erf"),
    "gelu_tanh": case("gelu_tanh", dict(x=X), form="tanh"),
    "relu6": case("relu6", dict(x=X), of="8 x"),
    "clamp": case("clamp", dict(x=X), low=-0.25, high=0.5),
    "neg": case("neg", dict(x=X)),
    "abs": case("abs", dict(x=X)),
    "square": case("square", dict(x=X)),
    "exp": case("exp", dict(x=X)),
    "sqrt": case("sqrt", dict(x=X), of="exp(x)"),
    "log": case("log", dict(x=X), of="exp(x)"),
    "reciprocal": case("reciprocal", dict(x=X), of="exp(x)"),
    "silu": case("silu", dict(x=X), of="3 x"),
    "hard_swish": case("hard_swish", dict(x=X), of="4 x"),
    "hard_sigmoid": case("hard_sigmoid", dict(x=X), of="4 x"),
    "hard_sigmoid_fifth": case("hard_sigmoid_fifth", dict(x=X), of="4 x", slope=0.2),
    "elu": case("elu", dict(x=X), alpha=0.7),
    "softplus": case("softplus", dict(x=X), of="3 x", beta=2.0),
    "mish": case("mish", dict(x=X), of="3 x"),
    "prelu": case("prelu", dict(x=X, slope=(3,))),
    "softmax": case("softmax", dict(x=(2, 3, 4, 5)), of="3 x"),
    "log_softmax": case("log_softmax", dict(x=(2, 3, 4, 5)), of="3 x"),
    "attention": case("attention", dict(q=(2, 5, 6), k=(2, 4, 6), v=(2, 4, 8)), heads=2),
    "attention_causal": case("attention", dict(q=(1, 6, 4), k=(1, 6, 4), v=(1, 6, 4)), heads=1, causal=True),
    "transpose": case("transpose", dict(x=(2, 3, 4, 5)), axes=(3, 0, 2, 1)),
    "channel_shuffle": case("channel_shuffle", dict(x=(2, 3, 2, 6)), groups=3),
    "slice_step": case("slice_step", dict(x=(2, 7, 3)), begin=1, step=2),
    "pad_zeros": case("pad", dict(x=X), pad=(0, 0, 1, 2), mode="constant", axis="height"),
    "pad_edge": case("pad", dict(x=X), pad=(2, 1, 0, 0), mode="replicate", axis="width"),
    "pad_reflect": case("pad", dict(x=X), pad=(3, 2, 0, 0), mode="reflect", axis="width"),
    "reduce_mean": case("reduce_mean", dict(x=X), axes=(1, 2)),
    "reduce_sum": case("reduce_sum", dict(x=X), axes=(0, 3)),
    "reduce_max": case("reduce_max", dict(x=X), axes=(2, 3)),
    "pixel_shuffle": case("pixel_shuffle", dict(x=(2, 2, 3, 12)), factor=2),
    "pixel_unshuffle": case("pixel_unshuffle", dict(x=(2, 4, 6, 3)), factor=2),
    "resize_nearest": case("resize", dict(x=(1, 5, 4, 2)), to=(7, 3), mode="nearest"),
    "resize_bilinear": case("resize", dict(x=(1, 5, 4, 2)), to=(7, 3), mode="bilinear"),
    "resize_corners": case("resize", dict(x=(1, 5, 4, 2)), to=(8, 3), mode="bilinear", corners=True),
    "class_token": case("class_token", dict(x=(2, 3, 4), token=(1, 1, 4))),
    "group_norm": case("group_norm", dict(x=(2, 2, 3, 6), gamma=(6,), beta=(6,)), groups=3, eps=1e-5),
    "instance_norm": case("group_norm", dict(x=(2, 2, 3, 4), gamma=(4,), beta=(4,)), groups=4, eps=1e-5),
    "rms_norm": case("rms_norm", dict(x=(2, 2, 3, 5), gamma=(5,)), eps=1e-5),
    "sub_gate": case("sub", dict(a=X, b=(2, 1, 1, 3))),
    "mul_gate": case("mul", dict(a=X, b=(2, 1, 1, 3))),
    "div_pixels": case("div", dict(a=X, b=(2, 3, 4, 1)), of="a, exp(b)"),
    "maximum_rows": case("maximum", dict(a=(1, 3, 1, 3), b=X)),
    "minimum_samples": case("minimum", dict(a=X, b=(1, 3, 4, 3))),
    "add_both": case("add", dict(a=(2, 1, 4, 1), b=(1, 3, 1, 3))),
    "max_pool_k2_s2": case("max_pool", dict(x=(2, 4, 6, 3)), kernel=2, stride=2, pad=0),
    "max_pool_k3_s2_pad1": case("max_pool", dict(x=(2, 5, 6, 3)), kernel=3, stride=2, pad=1),
    "avg_pool_k2_s2": case("avg_pool", dict(x=(2, 4, 6, 3)), kernel=2, stride=2, pad=0),
    "avg_pool_k3_s1_pad1": case("avg_pool", dict(x=(2, 4, 5, 3)), kernel=3, stride=1, pad=1),
    "global_avg_pool": case("global_avg_pool", dict(x=X)),
    "batch_norm_train": case("batch_norm", BN, training=True, eps=1e-5, momentum=0.1),
    "batch_norm_infer": case("batch_norm", BN, training=False, eps=1e-5, momentum=0.1),
    "layer_norm": case("layer_norm", dict(x=(2, 2, 3, 5), gamma=(5,), beta=(5,)), eps=1e-5),
    "concat": case("concat", dict(a=(2, 3, 2, 2), b=(2, 3, 2, 3))),
    "slice": case("slice", dict(x=(2, 3, 2, 4)), begin=1, end=3),
    "softmax_cross_entropy": case("cross_entropy", dict(logits=(4, 5))),
    "cross_entropy_smooth": case("smooth_cross_entropy", dict(logits=(4, 5)), smoothing=0.1),
    "mse": case("mse", dict(prediction=(3, 4), target=(3, 4))),
    "cross_entropy_weights": case("weighted_cross_entropy", dict(logits=(4, 5)), smoothing=0.2, weights="exp, seed 2"),
    "cross_entropy_targets": case("soft_cross_entropy", dict(logits=(4, 5)), smoothing=0.2, weights="exp, seed 2",
                                  targets="softmax, seed 3"),
    "binary_cross_entropy": case("binary_cross_entropy", dict(logits=(3, 4), target=(3, 4)), positive=2.5, of="4 x"),
    "binary_cross_entropy_weights": case("binary_cross_entropy", dict(logits=(3, 4), target=(3, 4)), positive=1.0,
                                         of="4 x", weights="exp, seed 3, a row"),
    "l1": case("l1", dict(a=(3, 4), b=(3, 4))),
    "smooth_l1": case("smooth_l1", dict(a=(3, 4), b=(3, 4)), beta=0.4),
    "embedding": case("embedding", dict(table=(7, 3)), ids=(2, 4)),
    "embedding_vocab5": case("embedding", dict(table=(5, 3)), ids=(2, 4)),
    "mean": case("mean", dict(x=X)),
    "sgd_momentum": case("sgd", PARAM, lr=0.1, momentum=0.9),
    "sgd_nesterov_wd": case("sgd", PARAM, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": case("adam", PARAM, lr=0.1, betas=(0.9, 0.999), eps=1e-8),
    "adamw": case("adamw", PARAM, lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01),
    "sgd_clip_norm": case("sgd", PARAM, lr=0.1, clip_norm=0.5),
    "sgd_clip_value": case("sgd", PARAM, lr=0.1, clip_value=0.3),
}

OPTIMISERS = dict(sgd=torch.optim.SGD, adam=torch.optim.Adam, adamw=torch.optim.AdamW)
LOSSES = ("cross_entropy", "smooth_cross_entropy", "weighted_cross_entropy", "soft_cross_entropy",
          "binary_cross_entropy", "l1", "smooth_l1", "mse", "mean")


def value(seed, shape):
    """value(seed, i) of README.md in row-major order; exact in float32 too."""
    i = np.arange(1, np.prod(shape, dtype=np.int64) + 1, dtype=np.uint64)
    bits = (i * 2654435761 + seed * 2246822519) & 0xFFFFFFFF
    bits = ((bits ^ (bits >> 15)) * 3266489917) & 0xFFFFFFFF
    bits ^= bits >> 13
    return torch.from_numpy((bits >> 8).astype(np.float64) / 16777216.0 * 2.0 - 1.0).reshape(shape)


def index(shape, classes):
    return ((torch.arange(int(np.prod(shape))) * 7 + 3) % classes).reshape(shape)


def nchw(t):  # NHWC -> NCHW; also OHWI -> OIHW
    return t.permute(0, 3, 1, 2)


def nhwc(t):
    return t.permute(0, 2, 3, 1)


def conv2d(c, x, w, bias=None):
    top, bottom, left, right = c["pad"]
    x = F.pad(nchw(x), (left, right, top, bottom))
    return nhwc(F.conv2d(x, nchw(w), bias, c["stride"], 0, c["dilation"], c["groups"]))


def conv_transpose2d(c, x, w, bias=None):
    top, bottom, left, right = c["pad"]
    y = F.conv_transpose2d(nchw(x), nchw(w), None, c["stride"], 0, 0, c["groups"], c["dilation"])
    y = nhwc(y[:, :, top:y.shape[2] - bottom, left:y.shape[3] - right])
    return y if bias is None else y + bias


def upsample(c, x):
    corners = False if c["mode"] == "bilinear" else None
    return nhwc(F.interpolate(nchw(x), scale_factor=c["scale"], mode=c["mode"], align_corners=corners))


def batch_norm(c, x, gamma, beta):
    channel = torch.arange(x.shape[-1], dtype=torch.float64)
    if c["training"]:
        mean, var = torch.zeros_like(channel), torch.ones_like(channel)
    else:
        mean, var = 0.1 * channel, 1 + 0.2 * channel
    y = nhwc(F.batch_norm(nchw(x), mean, var, gamma, beta, c["training"], c["momentum"], c["eps"]))
    return (y, dict(running_mean=mean, running_var=var)) if c["training"] else y


def attention(c, q, k, v):
    q, k, v = (t.reshape(*t.shape[:2], c["heads"], -1).transpose(1, 2) for t in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=c.get("causal", False))
    return y.transpose(1, 2).flatten(2)


def binary_cross_entropy(c, x, t):  # with weights: over their sum, not over their number as PyTorch does
    each = F.binary_cross_entropy_with_logits(4 * x, t, pos_weight=torch.tensor(c["positive"]), reduction="none")
    weights = value(3, (x.shape[0], 1)).exp().expand_as(x) if "weights" in c else torch.ones_like(x)
    return (weights * each).sum() / weights.sum()


OPS = dict(
    conv2d=conv2d,
    conv_transpose2d=conv_transpose2d,
    upsample=upsample,
    linear=lambda c, x, w, bias: F.linear(x, w, bias),
    matmul=lambda c, a, b: a @ b,
    matmul_t=lambda c, a, b: (a.mT if c.get("ta") else a) @ (b.mT if c.get("tb") else b),
    pad=lambda c, x: nhwc(F.pad(nchw(x), c["pad"], c["mode"])),
    reduce_mean=lambda c, x: x.mean(c["axes"], keepdim=True),
    reduce_sum=lambda c, x: x.sum(c["axes"], keepdim=True),
    reduce_max=lambda c, x: x.amax(c["axes"], keepdim=True),
    pixel_shuffle=lambda c, x: nhwc(F.pixel_shuffle(nchw(x), c["factor"])),
    pixel_unshuffle=lambda c, x: nhwc(F.pixel_unshuffle(nchw(x), c["factor"])),
    resize=lambda c, x: nhwc(F.interpolate(nchw(x), c["to"], mode=c["mode"],
                                           align_corners=c.get("corners", None))),
    add=lambda c, a, b: a + b,
    mul=lambda c, a, b: a * b,
    bias=lambda c, x, b: x + b,
    scale=lambda c, x: x * c["factor"],
    relu=lambda c, x: F.relu(x),
    leaky_relu=lambda c, x: F.leaky_relu(x, c["slope"]),
    tanh=lambda c, x: torch.tanh(x),
    sigmoid=lambda c, x: torch.sigmoid(x),
    gelu=lambda c, x: F.gelu(x),
    max_pool=lambda c, x: nhwc(F.max_pool2d(nchw(x), c["kernel"], c["stride"], c["pad"])),
    avg_pool=lambda c, x: nhwc(F.avg_pool2d(nchw(x), c["kernel"], c["stride"], c["pad"],
                                            count_include_pad=False)),
    global_avg_pool=lambda c, x: x.mean((1, 2), keepdim=True),
    batch_norm=batch_norm,
    layer_norm=lambda c, x, g, b: F.layer_norm(x, x.shape[-1:], g, b, c["eps"]),
    concat=lambda c, a, b: torch.cat((a, b), -1),
    slice=lambda c, x: x[..., c["begin"]:c["end"]],
    cross_entropy=lambda c, x: F.cross_entropy(x, index(x.shape[:1], x.shape[1])),
    smooth_cross_entropy=lambda c, x: F.cross_entropy(x, index(x.shape[:1], x.shape[1]),
                                                      label_smoothing=c["smoothing"]),
    weighted_cross_entropy=lambda c, x: F.cross_entropy(x, index(x.shape[:1], x.shape[1]), value(2, x.shape[1:]).exp(),
                                                        label_smoothing=c["smoothing"]),
    soft_cross_entropy=lambda c, x: F.cross_entropy(x, value(3, x.shape).softmax(-1), value(2, x.shape[1:]).exp(),
                                                    label_smoothing=c["smoothing"]),
    binary_cross_entropy=binary_cross_entropy,
    l1=lambda c, a, b: F.l1_loss(a, b),
    smooth_l1=lambda c, a, b: F.smooth_l1_loss(a, b, beta=c["beta"]),
    mse=lambda c, p, t: F.mse_loss(p, t),
    embedding=lambda c, t: F.embedding(index(c["ids"], t.shape[0]), t),
    mean=lambda c, x: x.mean(),
    gelu_tanh=lambda c, x: F.gelu(x, approximate="tanh"),
    relu6=lambda c, x: F.relu6(8 * x),
    clamp=lambda c, x: x.clamp(c["low"], c["high"]),
    neg=lambda c, x: -x,
    abs=lambda c, x: x.abs(),
    square=lambda c, x: x.square(),
    exp=lambda c, x: x.exp(),
    sqrt=lambda c, x: x.exp().sqrt(),
    log=lambda c, x: x.exp().log(),
    reciprocal=lambda c, x: x.exp().reciprocal(),
    silu=lambda c, x: F.silu(3 * x),
    hard_swish=lambda c, x: F.hardswish(4 * x),
    hard_sigmoid=lambda c, x: F.hardsigmoid(4 * x),
    hard_sigmoid_fifth=lambda c, x: (4 * x * c["slope"] + 0.5).clamp(0, 1),
    elu=lambda c, x: F.elu(x, c["alpha"]),
    softplus=lambda c, x: F.softplus(3 * x, c["beta"]),
    mish=lambda c, x: F.mish(3 * x),
    prelu=lambda c, x, slope: nhwc(F.prelu(nchw(x), slope)),
    softmax=lambda c, x: F.softmax(3 * x, -1),
    log_softmax=lambda c, x: F.log_softmax(3 * x, -1),
    attention=attention,
    transpose=lambda c, x: x.permute(c["axes"]),
    channel_shuffle=lambda c, x: nhwc(F.channel_shuffle(nchw(x), c["groups"])),
    slice_step=lambda c, x: x[:, c["begin"]::c["step"]],
    class_token=lambda c, x, token: torch.cat((token.expand(x.shape[0], -1, -1), x), 1),
    group_norm=lambda c, x, g, b: nhwc(F.group_norm(nchw(x), c["groups"], g, b, c["eps"])),
    rms_norm=lambda c, x, g: F.rms_norm(x, x.shape[-1:], g, c["eps"]),
    sub=lambda c, a, b: a - b,
    div=lambda c, a, b: a / b.exp(),
    maximum=lambda c, a, b: torch.maximum(a, b),
    minimum=lambda c, a, b: torch.minimum(a, b),
)


def run_op(c):
    """(out, gradients of the operands in order, extras)"""
    operands = [value(k, s).requires_grad_() for k, s in enumerate(c["shapes"].values(), 1)]
    out, extras = OPS[c["op"]](c, *operands), {}
    if isinstance(out, tuple):
        out, extras = out
    dout = torch.ones(()).double() if c["op"] in LOSSES else value(DOUT_SEED, tuple(out.shape))
    return out, torch.autograd.grad(out, operands, dout), extras


def run_optimiser(c):
    options = {k: v for k, v in c.items() if k not in ("op", "shapes", "clip_norm", "clip_value")}
    param = value(1, c["shapes"]["param"]).requires_grad_()
    optimiser = OPTIMISERS[c["op"]]([param], **options)
    for t in range(1, STEPS + 1):
        param.grad = value(STEP_SEED + t, tuple(param.shape))
        if "clip_norm" in c:
            torch.nn.utils.clip_grad_norm_([param], c["clip_norm"])
        if "clip_value" in c:
            torch.nn.utils.clip_grad_value_([param], c["clip_value"])
        optimiser.step()
    return param, (), {}


def dims(shape):
    return "x".join(str(n) for n in shape) or "scalar"


def attribute(v):
    return ",".join(str(e) for e in v) if isinstance(v, tuple) else str(v)


def line(label, tensor):
    numbers = ["%.9g" % v for v in tensor.detach().reshape(-1).tolist()]
    rows = [" ".join(numbers[i:i + 10]) for i in range(0, len(numbers), 10)]
    return "\n".join([f"{label} {len(numbers)}", *rows]) + "\n"


def main():
    parts = ["# written by make_reference.py; format: README.md\n"]
    for name, c in CASES.items():
        out, grads, extras = (run_optimiser if c["op"] in OPTIMISERS else run_op)(c)
        notes = [f"{k}={dims(s)}" for k, s in c["shapes"].items()]
        notes += [f"{k}={attribute(v)}" for k, v in c.items() if k not in ("op", "shapes")]
        parts.append(f"\n# {c['op']} {' '.join(notes)} -> out={dims(out.shape)}\ncase {name}\n")
        parts.append(line("out", out))
        parts += [line(f"grad {k}", g) for k, g in enumerate(grads, 1)]
        parts += [line(f"extra {k}", e) for k, e in extras.items()]
    path = Path(__file__).resolve().parent / "cases.txt"
    path.write_text("".join(parts), encoding="ascii", newline="\n")
    print(f"{path.name}: {len(CASES)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
