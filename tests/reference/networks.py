"""The networks of examples/networks against their PyTorch originals: logits in inference, all gradients in training,
the losses of five steps of SGD, on random weights that gcp_load reads by the maps in examples/networks/maps.h.

    pip install torch torchvision timm transformers safetensors numpy
    python networks.py ../../build/test/tests/like_torch [NAME...]

In double, as a float near a kink of relu falls on either side, and a gradient of few pixels sees it. Dropout and
stochastic depth are off on both sides. An error is the largest difference over the largest value of a tensor; a
gradient that is zero but for rounding (a bias in front of a norm) is compared with the largest of all gradients.
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
    "vit_tiny/deit": ("timm", "deit_tiny_patch16_224", 96),        # gcp's network / the original's
    "gpt2": ("transformers", "GPT2LMHeadModel", 32),
}
BATCH, STEPS = 4, 5


class Words(torch.nn.Module):
    """GPT-2 from ids to rows of logits."""

    def __init__(self, tokens):
        super().__init__()
        import transformers
        config = transformers.GPT2Config(n_positions=tokens, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        self.model = transformers.GPT2LMHeadModel(config)

    def forward(self, ids):
        return self.model(ids).logits.flatten(0, 1)


def original(name):
    origin, called, side = NETWORKS[name]
    torch.manual_seed(0)
    if origin == TV:
        import torchvision
        model = getattr(torchvision.models, called)(weights=None)
    elif origin == "transformers":
        model = Words(side)
    else:
        import timm
        model = timm.create_model(called, **({"img_size": side} if "it_" in called else {}))
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


def write_input(path, side, image, labels):
    with open(path, "wb") as f:
        np.array([BATCH, side], "<i4").tofile(f)
        if image.dtype == torch.float32:
            image.permute(0, 2, 3, 1).contiguous().numpy().tofile(f)
        else:
            image.numpy().astype("<i4").tofile(f)
        labels.numpy().astype("<i4").tofile(f)


def batch(name, side):
    generator = torch.Generator().manual_seed(2)
    if name == "gpt2":
        words = torch.randint(50257, (BATCH, side + 1), generator=generator)
        return words[:, :-1], words[:, 1:].flatten()
    return torch.randn((BATCH, 3, side, side), generator=generator), torch.arange(BATCH) * 37 % 1000


def losses(model, image, labels):
    """Of five steps; the first step's gradients, by the names of the weights."""
    parameters, values, gradients = dict(model.named_parameters()), [], {}
    optimizer = torch.optim.SGD(parameters.values(), lr=0.01, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(image), labels)
        loss.backward()
        if step == 0:
            gradients = {key: p.grad.clone() for key, p in parameters.items()}
        values.append(loss.item())
        optimizer.step()
    return values, gradients


def worst_gradient(got, wanted):
    most = max(float(g.abs().max()) for g in wanted.values())
    worst, where = 0.0, ""
    for key, g in wanted.items():
        difference = float((got[key].double().reshape(g.shape) - g).abs().max())
        error = difference / max(float(g.abs().max()), 1e-3 * most)
        if not error <= worst:
            worst, where = error, key
    return worst, where


def compare(program, name, folder):
    model, side = original(name)
    prefix = "model." if name == "gpt2" else ""
    named = {k.removeprefix(prefix): v.contiguous() for k, v in model.state_dict().items() if "lm_head" not in k}
    save_file(named, folder / "weights.safetensors")
    image, labels = batch(name, side)
    write_input(folder / "input", side, image, labels)
    out = subprocess.run([program, name.split("/")[0], folder / "weights.safetensors", folder / "input",
                          folder / "out"], check=True, stdout=subprocess.PIPE, text=True).stdout
    got_losses = [float(line) for line in out.split()]
    model = model.double()
    image = image.double() if image.dtype == torch.float32 else image
    with torch.no_grad():
        want = model.eval()(image)
    logits = torch.from_numpy(np.fromfile(folder / "out.logits", "<f8").reshape(want.shape))
    wanted_losses, gradients = losses(model.train(), image, labels)
    worst, where = worst_gradient(load_file(folder / "out.safetensors"),
                                  {key.removeprefix(prefix): g for key, g in gradients.items()})
    count = sum(p.numel() for p in model.parameters())
    logits_error = float((logits - want).abs().max() / want.abs().max())
    loss_error = max(abs(a - b) / b for a, b in zip(got_losses[1:], wanted_losses))
    print(f"{name:20} {count:10} {logits_error:.1e} {worst:.1e} {loss_error:.1e} {where}", flush=True)
    return got_losses[0] == got_losses[1] and max(logits_error, loss_error, worst) < 1e-4


if __name__ == "__main__":
    print(f"{'network':20} {'parameters':>10} logits  grad.   losses  the worst gradient")
    failed = []
    for network in sys.argv[2:] or NETWORKS:
        with tempfile.TemporaryDirectory() as path:
            if not compare(sys.argv[1], network, pathlib.Path(path)):
                failed.append(network)
    sys.exit("above 1e-4: " + ", ".join(failed) if failed else 0)
