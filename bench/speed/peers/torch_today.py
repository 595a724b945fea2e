"""The twins of examples/networks/transformer.h, mobile.h and modern.h: each a sequence, for checkpoint_sequential."""
import torch
from torch import nn
from torch.nn import functional as F

from sizes import CONVNEXT, EFFICIENTNET, MOBILENET, rounded


class Block(nn.Module):
    def __init__(self, width, heads, causal, eps):
        super().__init__()
        self.before, self.qkv, self.project = nn.LayerNorm(width, eps), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.between, self.expand, self.contract = nn.LayerNorm(width, eps), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        n, tokens, width = x.shape
        q, k, v = self.qkv(self.before(x)).reshape(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.project(y.transpose(1, 2).reshape(n, tokens, width))
        y = F.gelu(self.expand(self.between(x)), approximate="tanh" if self.causal else "none")
        return x + self.contract(y)


class Patches(nn.Module):
    def __init__(self, width, image):
        super().__init__()
        self.cut, self.token = nn.Conv2d(3, width, 16, 16), nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image // 16) ** 2 + 1, width))

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.positions


class First(nn.Module):
    def forward(self, x):
        return x[:, 0]


def vit(width, depth, heads, image, classes):
    blocks = [Block(width, heads, False, 1e-6) for _ in range(depth)]
    return nn.Sequential(Patches(width, image), *blocks, nn.Sequential(nn.LayerNorm(width, 1e-6), First(), nn.Linear(width, classes)))


class Words(nn.Module):
    def __init__(self, width, tokens, words):
        super().__init__()
        self.table, self.positions = nn.Embedding(words, width), nn.Parameter(0.02 * torch.randn(1, tokens, width))
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, ids):
        return self.table(ids) + self.positions


class Logits(nn.Module):
    def __init__(self, width, table):
        super().__init__()
        self.norm, self.weight = nn.LayerNorm(width), table.weight

    def forward(self, x):
        return F.linear(self.norm(x), self.weight).flatten(0, 1)


def gpt2(width, depth, heads, tokens, words):
    first = Words(width, tokens, words)
    return nn.Sequential(first, *[Block(width, heads, True, 1e-5) for _ in range(depth)], Logits(width, first.table))


def conv(inputs, outputs, k, stride, groups, activation, eps):
    parts = [nn.Conv2d(inputs, outputs, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs, eps)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


class Gate(nn.Module):
    def __init__(self, channels, hidden, inside, gate):
        super().__init__()
        self.f = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, hidden, 1), inside(), nn.Conv2d(hidden, channels, 1), gate())

    def forward(self, x):
        return x * self.f(x)


class Bottleneck(nn.Module):
    def __init__(self, inputs, k, wide, out, stride, squeeze, activation, inside, gate, eps):
        super().__init__()
        parts = [conv(inputs, wide, 1, 1, 1, activation, eps)] if wide != inputs else []
        parts.append(conv(wide, wide, k, stride, wide, activation, eps))
        parts += [Gate(wide, squeeze, inside, gate)] if squeeze else []
        self.f, self.adds = nn.Sequential(*parts, conv(wide, out, 1, 1, 1, None, eps)), stride == 1 and inputs == out

    def forward(self, x):
        return x + self.f(x) if self.adds else self.f(x)


def mobilenet_v3_small(classes):
    parts, inputs = [conv(3, 16, 3, 2, 1, nn.Hardswish, 1e-3)], 16
    for k, wide, out, gate, swish, stride in MOBILENET:
        parts.append(Bottleneck(inputs, k, wide, out, stride, rounded(wide / 4) if gate else 0, nn.Hardswish if swish else nn.ReLU,
                                nn.ReLU, nn.Hardsigmoid, 1e-3))
        inputs = out
    head = [conv(inputs, 576, 1, 1, 1, nn.Hardswish, 1e-3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish()]
    return nn.Sequential(*parts, nn.Sequential(*head, nn.Dropout(0.2), nn.Linear(1024, classes)))


def efficientnet_b0(classes):
    parts, inputs = [conv(3, 32, 3, 2, 1, nn.SiLU, 1e-5)], 32
    for expansion, k, out, count, stride in EFFICIENTNET:
        for i in range(count):
            parts.append(Bottleneck(inputs, k, inputs * expansion, out, 1 if i else stride, inputs // 4, nn.SiLU, nn.SiLU, nn.Sigmoid, 1e-5))
            inputs = out
    head = [conv(inputs, 1280, 1, 1, 1, nn.SiLU, 1e-5), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, classes)]
    return nn.Sequential(*parts, nn.Sequential(*head))


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(1e-6 * torch.randn(width))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.contract(F.gelu(self.expand(y)))).permute(0, 3, 1, 2)


class PixelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext_t(classes):
    parts, inputs = [], 3
    for i, (width, depth) in enumerate(CONVNEXT):
        down = nn.Conv2d(inputs, width, 2 if i else 4, 2 if i else 4)
        parts.append(nn.Sequential(PixelNorm(inputs, 1e-6), down) if i else nn.Sequential(down, PixelNorm(width, 1e-6)))
        parts += [ConvNeXtBlock(width) for _ in range(depth)]
        inputs = width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(inputs, 1e-6), nn.Linear(inputs, classes)]
    return nn.Sequential(*parts, nn.Sequential(*head))
