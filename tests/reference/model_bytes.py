"""What a training step of a network from a file takes: gcp's least budget and keep-all, and PyTorch's own peak, at 224 pixels
(Inception 299) in batches of 8, with SGD. For docs/onnx.md.

    pip install torch torchvision timm onnx
    python model_bytes.py LIKE_ONNX [NAME...]

PyTorch: the peak of resident memory in a step above what was held before the first, where freed memory is given back, and
the weights.
"""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench/speed/peers"))
from make_models import BONUS, MODELS, created                                                              # noqa: E402
from worker import resident                                                                                     # noqa: E402

BATCH, CLASSES = 8, 1000


def network(name):
    return created(name, CLASSES).train()


def image_of(name, count):
    side = 299 if name == "inception_v3" else 224
    return torch.randn(count, 3, side, side)


def torch_bytes(name):
    """In a process of its own."""
    model, image = network(name), image_of(name, BATCH)
    labels = torch.arange(BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    weights = sum(p.numel() * p.element_size() for p in [*model.parameters(), *model.buffers()])
    idle = resident("VmRSS")
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(image), labels).backward()
        optimizer.step()
    print(weights + resident("VmHWM") - idle)


def row(name, like_onnx):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        torch.onnx.export(network(name), image_of(name, 2), path, dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, input_names=["image"], dynamic_axes={"image": {0: "batch"}})
        ours = subprocess.run([like_onnx, path, "--batch", str(BATCH), "--policy", "budget"], capture_output=True, text=True)
    if ours.returncode:
        return f"{name}: refused: {ours.stderr.splitlines()[-1][:100]}"
    words = ours.stdout.split()
    theirs = subprocess.run([sys.executable, __file__, "--torch", name], capture_output=True, text=True, check=True,
                            env={"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_TRIM_THRESHOLD_": "0", "OMP_NUM_THREADS": "2"})
    least, keep_all, peak = int(words[3]) / 2**20, int(words[5]) / 2**20, int(theirs.stdout) / 2**20
    return f"| {name} | {words[1]} | {least:.0f} | {keep_all:.0f} | {peak:.0f} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--torch":
        torch_bytes(sys.argv[2])
    else:
        print("| | ops | least | keep-all | PyTorch |\n|---|---|---|---|---|")
        for name in sys.argv[2:] or [n for n in MODELS if n not in BONUS]:
            print(row(name, sys.argv[1]), flush=True)
