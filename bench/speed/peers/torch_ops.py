"""PyTorch's end of bench/ops: one op at a time, told and timed over pipes.

    python torch_ops.py THREADS

`op NAME N L C BACK` sets it (calls.py). BACK: its backward alone, in place of its forward. update_*: an optimiser's step of a weight of
L x C, fused.
"""
import sys

import torch
import torch.nn.functional as F

from calls import serve

HEADS = 6
POINTWISE = {"relu": F.relu, "relu6": F.relu6, "hard_swish": F.hardswish, "hard_sigmoid": F.hardsigmoid, "silu": F.silu,
             "mish": F.mish, "elu": F.elu, "softplus": F.softplus, "gelu": F.gelu,
             "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "tanh": torch.tanh, "sigmoid": torch.sigmoid,
             "exp": torch.exp, "square": torch.square}


def attention(causal):
    def heads(x):
        return x.view(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)
    return lambda q, k, v: F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=causal)


def operands(name, n, l, c):
    if name in ("attention", "attention_causal"):
        return attention(name != "attention"), [torch.randn(n, l, c) for _ in range(3)]
    x = torch.randn(n, l, c)
    if name == "gate":
        return torch.mul, [x, torch.randn(n, 1, c)]
    if name == "positions":
        return torch.add, [x, torch.randn(1, l, c)]
    if name == "softmax":
        return lambda x: torch.softmax(x, -1), [x]
    if name == "layer_norm":
        return lambda x, w, b: F.layer_norm(x, (c,), w, b), [x, torch.randn(c), torch.randn(c)]
    return POINTWISE[name], [x]


def update(name, rows, columns):
    weight = torch.nn.Parameter(torch.randn(rows, columns))
    weight.grad = torch.randn(rows, columns)
    make = torch.optim.SGD if "sgd" in name else torch.optim.AdamW if "adamw" in name else torch.optim.Adam
    optimizer = make([weight], lr=1e-3, fused=True, **({"momentum": 0.9} if "momentum" in name else {}))

    def step():
        if "clip_norm" in name:
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
        optimizer.step()
    return step


def call_of(_, name, n, l, c, back):
    if name.startswith("update_"):
        return update(name, int(l), int(c))
    function, tensors = operands(name, int(n), int(l), int(c))
    if back == "0":
        return lambda: function(*tensors)
    with torch.enable_grad():
        tensors = [t.requires_grad_() for t in tensors]
        y = function(*tensors)
    dy = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, tensors, dy, retain_graph=True)


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    serve(torch.__version__, call_of)
