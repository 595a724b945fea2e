"""PyTorch's end of bench/steps, eager, channels-last. Checkpointed: checkpoint_sequential in four chunks; of DenseNet-BC, what each layer
joins, its norm, ReLU and 1x1 convolution, as efficient_densenet_pytorch does. segments_K: checkpoint_sequential in K; selective: all of it
one checkpoint that keeps what convolutions and matrix products make; save_on_cpu: what is saved waits in host memory, which it does
already here. autocast: in bfloat16, as torch.autocast chooses."""
import functools
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

from sizes import CHANNELS, HALVED, INPUTS
from torch_resnet50 import conv_norm, resnet50
from torch_today import convnext_t, efficientnet_b0, gpt2, mobilenet_v3_small, vit
from worker import serve


class Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.f = nn.Sequential(conv_norm(inputs, outputs, 3, stride), nn.ReLU(inplace=True), conv_norm(outputs, outputs, 3))
        self.project = nn.Identity() if inputs == outputs and stride == 1 else conv_norm(inputs, outputs, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.f(x) + self.project(x))


def resnet18_cifar():
    parts, inputs = [nn.Sequential(conv_norm(3, 64, 3), nn.ReLU(inplace=True))], 64
    for stage in range(4):
        for i in range(2):
            parts.append(Basic(inputs, 64 << stage, 2 if stage and not i else 1))
            inputs = 64 << stage
    return nn.Sequential(*parts, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10)))


def norm_relu_conv(inputs, outputs, k):
    return nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True), nn.Conv2d(inputs, outputs, k, padding=k // 2, bias=False))


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth, again):
        super().__init__()
        self.narrow, self.grow, self.again = norm_relu_conv(inputs, 4 * growth, 1), norm_relu_conv(4 * growth, growth, 3), again

    def join(self, *features):
        return self.narrow(torch.cat(features, 1))

    def forward(self, features):
        return self.grow(checkpoint(self.join, *features, use_reentrant=False) if self.again else self.join(*features))


class DenseBlock(nn.Module):
    def __init__(self, inputs, layers, growth, again):
        super().__init__()
        self.layers = nn.ModuleList(DenseLayer(inputs + i * growth, growth, again) for i in range(layers))

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


def densenet_bc(again, layers=16, growth=12):
    parts, inputs = [nn.Conv2d(3, 2 * growth, 3, padding=1, bias=False)], 2 * growth
    for block in range(3):
        parts.append(DenseBlock(inputs, layers, growth, again))
        inputs += layers * growth
        if block < 2:
            parts += [norm_relu_conv(inputs, inputs // 2, 1), nn.AvgPool2d(2)]
            inputs //= 2
    head = [nn.BatchNorm2d(inputs), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10)]
    return nn.Sequential(*parts, *head)


def seed(network, size):
    parts, inputs = [], 1
    for outputs in CHANNELS[network]:
        parts.append(nn.Sequential(nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(inplace=True)))
        inputs = outputs
    if HALVED[network]:
        parts.append(nn.MaxPool2d(2))
        size //= 2
    return nn.Sequential(*parts, nn.Flatten(), nn.Sequential(nn.Linear(inputs * size * size, 32), nn.ReLU(inplace=True)), nn.Linear(32, 10))


def main():
    network, mode, threads = sys.argv[1:4]
    if mode == "recompute_grad":                      # TensorFlow's
        return
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    batch, size, channels, classes = INPUTS[network]
    make = {"resnet50": resnet50, "resnet18_cifar": resnet18_cifar, "densenet_bc": lambda: densenet_bc(mode not in ("plain", "autocast")),
            "vit_small": lambda: vit(384, 12, 6, size, classes), "vit_tiny": lambda: vit(192, 12, 3, size, classes),
            "gpt2": lambda: gpt2(768, 12, 12, size, classes), "mobilenet_v3_small": lambda: mobilenet_v3_small(classes),
            "efficientnet_b0": lambda: efficientnet_b0(classes), "convnext_t": lambda: convnext_t(classes)}.get(network, lambda: seed(network, size))
    model = make().to(memory_format=torch.channels_last).train()
    for module in model.modules() if mode == "selective" else ():         # what is kept must not be written over
        if isinstance(module, nn.ReLU):
            module.inplace = False
    images = torch.randn(batch, channels, size, size).to(memory_format=torch.channels_last)
    labels = torch.randint(classes, (batch,))
    if network == "gpt2":                             # words, and the next ones
        images, labels = torch.randint(classes, (batch, size)), torch.randint(classes, (batch * size,))
    sgd = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9 if "net" in network else 0)

    kept = [torch.ops.aten.convolution.default, torch.ops.aten.addmm.default, torch.ops.aten.mm.default]
    segments = int(mode[9:]) if mode.startswith("segments_") else 4
    if segments > len(model):
        return                                        # no more segments than modules

    def logits():
        if mode == "selective":
            return checkpoint(model, images, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, kept))
        if mode == "autocast":
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(images).float()
        if mode in ("plain", "save_on_cpu") or network == "densenet_bc":
            return model(images)
        return checkpoint_sequential(model, segments, images, use_reentrant=False)

    def step():
        sgd.zero_grad(set_to_none=True)
        with torch.autograd.graph.save_on_cpu() if mode == "save_on_cpu" else torch.enable_grad():
            nn.functional.cross_entropy(logits(), labels).backward()
        sgd.step()

    serve(torch.__version__, step)


if __name__ == "__main__":
    main()
