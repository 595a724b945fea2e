"""ResNet-50 (v1.5) training steps in PyTorch, eager: the figures to hold gcp's against.

    python torch_resnet50.py [--batch 128] [--image 224] [--steps 20] [--warmup 5] [--device cuda|cpu]
                             [--precision tf32|fp32|autocast ...] [--checkpoint N]

One step is forward, backward and SGD with momentum on synthetic data in channels-last. --checkpoint N runs it through
torch.utils.checkpoint.checkpoint_sequential in N chunks (0: plain; the last chunk is never recomputed). autocast is
bfloat16 beside tf32. Prints a line of JSON for each precision, as soon as it is measured. On a GPU steps are timed by events in its queue, which the host runs ahead of, and peak_bytes is PyTorch's own
count of allocated memory; on a CPU there is none and it is null.
"""
import argparse
import json
import platform
import statistics
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

from sizes import RESNET50


def conv_norm(inputs, outputs, k, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, k, stride, k // 2, bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """relu(f(x) + x), f = 1x1, 3x3 with the stride, 1x1 four times wider."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.f = nn.Sequential(
            conv_norm(inputs, width, 1), nn.ReLU(inplace=True),
            conv_norm(width, width, 3, stride), nn.ReLU(inplace=True),
            conv_norm(width, outputs, 1))
        self.project = nn.Identity() if inputs == outputs else conv_norm(inputs, outputs, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.f(x) + self.project(x))


def resnet50(classes=1000):
    """As torchvision's, in a sequence of stem, blocks and head, so that it can be cut between any two."""
    parts = [nn.Sequential(conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))]
    inputs = 64
    for stage, (width, blocks) in enumerate(RESNET50):
        for i in range(blocks):
            parts.append(Bottleneck(inputs, width, 2 if stage and not i else 1))
            inputs = 4 * width
    parts.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)))
    return nn.Sequential(*parts)


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--image", type=int, default=224)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--precision", choices=("tf32", "fp32", "autocast"), nargs="+",
                   help="default: tf32 on a GPU, fp32 on a CPU")
    p.add_argument("--checkpoint", type=int, default=0, metavar="N")
    o = p.parse_args()
    o.precision = o.precision or ["tf32" if o.device == "cuda" else "fp32"]
    if o.device == "cpu" and "tf32" in o.precision:
        p.error("a CPU has no tf32")
    if o.device == "cuda" and not torch.cuda.is_available():
        p.error("no GPU")
    if min(o.batch, o.image, o.steps) < 1 or min(o.warmup, o.checkpoint) < 0:
        p.error("a size is out of range")
    return o


def timed(step, o):
    """Milliseconds of each of o.steps steps, after o.warmup that do not count."""
    for _ in range(o.warmup):
        step()
    if o.device == "cpu":
        marks = [time.perf_counter()]
        for _ in range(o.steps):
            step()
            marks.append(time.perf_counter())
        return [1e3 * (b - a) for a, b in zip(marks, marks[1:])]
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(o.steps + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def run(o, precision):
    torch.manual_seed(1)
    tf32 = o.device == "cuda" and precision != "fp32"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    model = resnet50().to(o.device, memory_format=torch.channels_last).train()
    images = torch.randn(o.batch, 3, o.image, o.image, device=o.device).to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (o.batch,), device=o.device)
    sgd = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step():
        sgd.zero_grad(set_to_none=True)
        with torch.autocast(o.device, dtype=torch.bfloat16, enabled=precision == "autocast"):
            logits = checkpoint_sequential(model, o.checkpoint, images, use_reentrant=False) if o.checkpoint else model(images)
            loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        sgd.step()

    if o.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    ms = timed(step, o)
    median = statistics.median(ms)
    print(json.dumps({
        "tool": "pytorch", "version": torch.__version__,
        "device": torch.cuda.get_device_name() if o.device == "cuda" else platform.processor() or platform.machine(),
        "network": "resnet50", "batch": o.batch, "image": o.image, "precision": precision, "checkpoint": o.checkpoint,
        "ms_median": round(median, 3), "ms_min": round(min(ms), 3), "images_per_second": round(1e3 * o.batch / median, 1),
        "peak_bytes": torch.cuda.max_memory_allocated() if o.device == "cuda" else None}), flush=True)


def main():
    o = options()
    for precision in o.precision:
        run(o, precision)


if __name__ == "__main__":
    main()
