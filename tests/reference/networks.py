"""The networks of examples/networks against their PyTorch originals, on random weights that gcp_load reads by the maps
in examples/networks/maps.h, and those of packaged.h on their own: logits in inference, all gradients in training, then
five steps of SGD with their losses and the weights and statistics that they leave.

    pip install torch torchvision timm transformers safetensors numpy
    python networks.py ../../build/test/tests/like_torch [NAME...]          (packages.py says what packaged.h's need)

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

from packages import Original, PACKAGED, as_is

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


def created(name):
    origin, called, side = NETWORKS[name]
    torch.manual_seed(0)
    if origin == "transformers":
        return Words(side)
    if origin == TV:
        import torchvision
        return getattr(torchvision.models, called)(weights=None)
    import timm
    return timm.create_model(called, **({"img_size": side} if "it_" in called else {}))


def disturbed(model):
    """No zeros and ones: they would hide a mistake."""
    generator = torch.Generator().manual_seed(1)
    for key, value in model.state_dict().items():
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
    return model


def without_prefix(state):
    """GPT-2's names; its table of words also makes the logits."""
    return {key.removeprefix("model."): value for key, value in state.items() if "lm_head" not in key}


def original(name):
    if name in PACKAGED:
        return PACKAGED[name]()
    side = NETWORKS[name][2]
    return Original(disturbed(created(name)), (3, side, side), 1000, without_prefix if name == "gpt2" else as_is)


def write_input(path, side, image, labels):
    with open(path, "wb") as f:
        np.array([BATCH, side], "<i4").tofile(f)
        if image.dtype == torch.float32:
            image.permute(0, 2, 3, 1).contiguous().numpy().tofile(f)
        else:
            image.numpy().astype("<i4").tofile(f)
        labels.numpy().astype("<i4").tofile(f)


def batch(name, o):
    generator = torch.Generator().manual_seed(2)
    if name == "gpt2":
        words = torch.randint(50257, (BATCH, o.shape[1] + 1), generator=generator)
        return words[:, :-1], words[:, 1:].flatten()
    return torch.randn((BATCH, *o.shape), generator=generator), torch.arange(BATCH) * 37 % o.classes


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


def worst(got, wanted, share):
    """The largest error of a tensor, over its largest value or `share` of the largest of all; whose it is."""
    least = share * max(float(w.abs().max()) for w in wanted.values())
    errors = {key: float((got[key].double().reshape(w.shape) - w).abs().max()) / max(float(w.abs().max()), least)
              for key, w in wanted.items()}
    where = max(errors, key=lambda key: (errors[key] != errors[key], errors[key]))         # a NaN is the worst
    return errors[where], where


def compare(program, name, folder):
    o = original(name)
    save_file({key: value.contiguous() for key, value in o.named(o.model.state_dict()).items()}, folder / "weights")
    image, labels = batch(name, o)
    write_input(folder / "input", o.shape[1], image, labels)
    if o.logits:
        with torch.no_grad():
            written = o.model.eval()(image)
        assert np.abs(o.logits(image) - written.numpy()).max() < 1e-5 * float(written.abs().max())
    out = subprocess.run([program, name.split("/")[0], folder / "weights", folder / "input", folder / "out"],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    got_losses = [float(line) for line in out.split()]
    model = o.model.double()
    image = image.double() if image.dtype == torch.float32 else image
    with torch.no_grad():
        want = model.eval()(image)
    logits = torch.from_numpy(np.fromfile(folder / "out.logits", "<f8").reshape(want.shape))
    wanted_losses, gradients = losses(model.train(), image, labels)
    trained = load_file(folder / "out.trained")
    wanted = {key: value for key, value in o.named(model.state_dict()).items() if key in trained}
    assert len(wanted) == len(trained)
    errors = [float((logits - want).abs().max() / want.abs().max()),
              worst(load_file(folder / "out.gradients"), o.named(gradients), 1e-3),
              max(abs(a - b) / b for a, b in zip(got_losses[1:], wanted_losses)),
              worst(trained, wanted, 0)]
    count = sum(p.numel() for p in model.parameters())
    print(f"{name:20} {count:10} {errors[0]:.1e} {errors[1][0]:.1e} {errors[2]:.1e} {errors[3][0]:.1e} "
          f"{errors[1][1]} {errors[3][1]}", flush=True)
    return got_losses[0] == got_losses[1] and all(e < 1e-4 for e in (errors[0], errors[1][0], errors[2], errors[3][0]))


if __name__ == "__main__":
    print(f"{'network':20} {'parameters':>10} logits  grad.   losses  trained worst gradient, worst weight")
    failed = []
    for network in sys.argv[2:] or [*NETWORKS, *PACKAGED]:
        with tempfile.TemporaryDirectory() as path:
            if not compare(sys.argv[1], network, pathlib.Path(path)):
                failed.append(network)
    sys.exit("above 1e-4: " + ", ".join(failed) if failed else 0)
