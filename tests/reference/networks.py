"""The networks of examples/networks against their PyTorch originals: logits in inference, loss and all gradients in
training, on random weights that gcp_load reads by the maps in examples/networks/maps.h.

    pip install torch torchvision timm safetensors numpy
    python networks.py ../../build/test/tests/like_torch [NAME...]

In double, as a float near a kink of relu falls on either side, and a gradient of few pixels sees it. Dropout and stochastic depth are off on both sides. An error is the largest difference over the largest value of a tensor;
a gradient that is zero but for rounding (a bias in front of a norm) is compared with the largest of all gradients.
"""
import subprocess
import sys
import tempfile
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file, save_file

TV = "torchvision.models"
NETWORKS = {
    "mobilenet_v2": (TV, "mobilenet_v2", 96),
    "mobilenet_v3_small": (TV, "mobilenet_v3_small", 96),
    "mobilenet_v3_large": (TV, "mobilenet_v3_large", 96),
    "efficientnet_b0": (TV, "efficientnet_b0", 96),
    "efficientnet_v2_s": (TV, "efficientnet_v2_s", 96),
    "shufflenet_v2": (TV, "shufflenet_v2_x1_0", 96),
    "regnet_y": (TV, "regnet_y_400mf", 96),
    "convnext_t": (TV, "convnext_tiny", 96),
    "swin_t": (TV, "swin_t", 224),
    "ghostnet": ("timm", "ghostnet_100", 96),
    "mlp_mixer_s": ("timm", "mixer_s16_224", 224),
    "vit_tiny": ("timm", "vit_tiny_patch16_224", 96),
    "vit_small": ("timm", "vit_small_patch16_224", 96),
}
BATCH = 4


def original(name):
    origin, called, side = NETWORKS[name]
    torch.manual_seed(0)
    if origin == TV:
        import torchvision
        model = getattr(torchvision.models, called)(weights=None)
    else:
        import timm
        model = timm.create_model(called, **({"img_size": side} if "vit" in called else {}))
    generator = torch.Generator().manual_seed(1)
    for key, value in model.state_dict().items():          # no zeros and ones: they would hide a mistake
        if value.is_floating_point():
            noise = torch.rand(value.shape, generator=generator)
            if "running_var" in key:
                value.copy_(0.5 + noise)
            elif value.dim() > 1 and not value.any():
                value.copy_(0.1 * (noise - 0.5))
            elif value.dim() < 2 or "scale" in key:
                value.copy_((1 if "weight" in key else 0.3 if "scale" in key else 0) + 0.2 * (noise - 0.5))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if type(module).__name__ in ("StochasticDepth", "DropPath"):
            module.p = module.drop_prob = 0.0
    if hasattr(model, "drop_rate"):
        model.drop_rate = 0.0
    return model, side


def compare(program, name, folder):
    model, side = original(name)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "weights.safetensors")
    generator = torch.Generator().manual_seed(2)
    image = torch.randn((BATCH, 3, side, side), generator=generator)
    labels = torch.arange(BATCH) * 37 % 1000
    with open(folder / "input", "wb") as f:
        np.array([BATCH, side], "<i4").tofile(f)
        image.permute(0, 2, 3, 1).contiguous().numpy().tofile(f)
        labels.numpy().astype("<i4").tofile(f)
    loss = float(subprocess.run([program, name, folder / "weights.safetensors", folder / "input", folder / "out"],
                                check=True, capture_output=True, text=True).stdout)
    logits = torch.from_numpy(np.fromfile(folder / "out.logits", "<f8").reshape(BATCH, -1)).double()
    model = model.double()
    with torch.no_grad():
        want = model.eval()(image.double())
    model.train()
    wanted_loss = torch.nn.functional.cross_entropy(model(image.double()), labels)
    wanted_loss.backward()
    got = load_file(folder / "out.safetensors")
    most = max(float(p.grad.abs().max()) for p in model.parameters())
    worst, where, count = 0.0, "", 0
    for key, p in model.named_parameters():
        difference = float((got[key].double().reshape(p.shape) - p.grad).abs().max())
        error = difference / max(float(p.grad.abs().max()), 1e-3 * most)
        count += p.numel()
        if error > worst:
            worst, where = error, key
    logits_error = float((logits - want).abs().max() / want.abs().max())
    loss_error = abs(loss - wanted_loss.item()) / wanted_loss.item()
    print(f"{name:20} {count:10} {logits_error:.1e} {loss_error:.1e} {worst:.1e} {where}", flush=True)
    return logits_error < 1e-4 and loss_error < 1e-4 and worst < 1e-4


if __name__ == "__main__":
    print(f"{'network':20} {'parameters':>10} logits  loss    gradient, the worst tensor's")
    failed = []
    for network in sys.argv[2:] or NETWORKS:
        with tempfile.TemporaryDirectory() as path:
            if not compare(sys.argv[1], network, pathlib.Path(path)):
                failed.append(network)
    sys.exit("above 1e-4: " + ", ".join(failed) if failed else 0)
