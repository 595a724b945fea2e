"""PyTorch's end of bench/kernels: one layer at a time, told and timed over pipes.

    python torch_layers.py THREADS

`conv N H W CI CO KH KW SH SW PT PL GROUPS PASS CHANNELS_LAST` and `matmul M N K PASS` set it (calls.py). PASS of a
convolution: 0 forward, 1 gradient of the input, 2 gradient of the weights; of a product: 0 NN, 1 NT, 2 TN.
"""
import sys

import torch

from calls import serve


def convolution(n, h, w, ci, co, kh, kw, sh, sw, pt, pl, groups, which, channels_last):
    layout = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(n, ci, h, w).to(memory_format=layout)
    weight = torch.randn(co, ci // groups, kh, kw).to(memory_format=layout)
    y = torch.nn.functional.conv2d(x, weight, None, (sh, sw), (pt, pl), 1, groups)
    if which == 0:
        return lambda: torch.nn.functional.conv2d(x, weight, None, (sh, sw), (pt, pl), 1, groups)
    dy = torch.randn_like(y)
    mask = [which == 1, which == 2, False]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, weight, None, [sh, sw], [pt, pl], [1, 1], False, [0, 0], groups, mask)


def product(m, n, k, which):
    a = torch.randn(k, m).t() if which == 2 else torch.randn(m, k)
    b = torch.randn(n, k).t() if which == 1 else torch.randn(k, n)
    return lambda: torch.mm(a, b)


def call_of(name, *numbers):
    return (convolution if name == "conv" else product)(*(int(number) for number in numbers))


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    serve(torch.__version__, call_of)
