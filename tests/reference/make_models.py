"""ONNX files of published networks, as PyTorch's two exporters write them, and what PyTorch computes from each: logits,
and the weights after a step of SGD. models.py holds a program against them.

    pip install torch torchvision timm onnx onnxscript numpy
    python make_models.py FOLDER [NAME...]

FOLDER/NAME.{old,new}.{train,eval}.onnx: by TorchScript (old) or torch.export (new, dynamo=True), of a network in
training mode without folding, or in evaluation mode with what the exporter folds by default. The weights are random and
the same in the four files. An export that fails, or that works for a batch of 4 only, is a line of FOLDER/failed.txt.

FOLDER/NAME.{...}.ref.npz holds, computed in double and stored as float:
    input, labels           4 images, and their classes
    logits_eval             in inference mode: running statistics
    logits_train, loss      in the file's mode, before the step
    start/X, step/X         initialiser X of the file before and after the step: weights and running statistics
    population/X            the running variance X, had it been made from the population's variance, as ONNX says
    zero                    the weights whose gradient is zero but for rounding
    constants               initialisers that are no weights of the model: a program may hold them or train them
    noise, floor            errors of the evaluator in float, by the measures of models.py: of logits_eval, of the step
    norms                   "batch", "fixed" or "none": whose statistics normalise in logits_train and the step
    method                  in words: where the numbers are from
    other/...               logits_train, loss, step/, population/, floor and norms under the other rule, where a file
                            leaves it open: its norms are not marked as training (dynamo marks none)

The step is that of models.Graph, an evaluator of ONNX in PyTorch's ops that autograd goes through. It is believed after
its logits are those of the PyTorch model within 1e-4 of the largest (in fact 1e-6), and every weight and statistic that
the file has from the model as it is changes as in the model's own step; in training mode that is all of them.
"""
import copy
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch

from models import BATCH, BONUS, LR, Graph, apart, change_errors, running, worst

CLASSES = 10
TV, TIMM = "torchvision", "timm"
MODELS = {                                      # whose, side of an image, seed of the images, arguments
    "resnet18": (TV, 64, 300, {}),
    "mobilenet_v2": (TV, 64, 312, {}),
    "mobilenet_v3_small": (TV, 64, 300, {}),
    "vit_b_16": (TV, 224, 300, {}),
    "shufflenet_v2_x1_0": (TV, 64, 326, {}),
    "convnext_tiny": (TV, 64, 300, {}),
    "deit_tiny_patch16_224": (TIMM, 224, 300, {}),
    "alexnet": (TV, 224, 301, {}),
    "vgg11_bn": (TV, 224, 305, {}),
    "squeezenet1_1": (TV, 64, 300, {}),
    "resnext50_32x4d": (TV, 64, 300, {}),
    "densenet121": (TV, 64, 300, {}),
    "googlenet": (TV, 64, 300, {"aux_logits": False, "init_weights": False}),
    "inception_v3": (TV, 128, 301, {"aux_logits": False, "init_weights": False}),
    "mnasnet1_0": (TV, 64, 309, {}),
    "efficientnet_b0": (TV, 64, 300, {}),
    "efficientnet_v2_s": (TV, 64, 300, {}),
    "regnet_y_400mf": (TV, 64, 300, {}),
    "ghostnet_100": (TIMM, 64, 301, {}),
    "mobilenetv4_conv_small": (TIMM, 64, 313, {}),
    "repvgg_a0": (TIMM, 64, 301, {}),
    "mixer_s16_224": (TIMM, 224, 300, {}),
    "hrnet_w18_small": (TIMM, 64, 305, {}),
    "fastvit_t8": (TIMM, 64, 300, {}),
    "mobilevit_xxs": (TIMM, 64, 300, {}),
    "swin_t": (TV, 224, 300, {}),
    "maxvit_t": (TV, 224, 300, {}),
    "edgenext_small": (TIMM, 64, 300, {}),
    "efficientvit_b0": (TIMM, 64, 300, {}),
}
FAR = ("vgg11_bn", "resnext50_32x4d", "densenet121", "googlenet", "inception_v3", "regnet_y_400mf", "repvgg_a0",
       "hrnet_w18_small")
CONSTANTS = {"edgenext_small.new.eval": ["pow_1"]}                     # wave lengths of a position's sines


def images(side, seed, count=BATCH):
    """Colours, blots and noise, of more or less contrast: images that differ, so that their logits do."""
    generator = torch.Generator().manual_seed(seed)
    colours = torch.randn((count, 3, 1, 1), generator=generator)
    blots = torch.nn.functional.interpolate(torch.randn((count, 3, 6, 6), generator=generator), size=(side, side))
    noise = torch.randn((count, 3, side, side), generator=generator)
    contrast = torch.linspace(0.1, 1.5, count).view(-1, 1, 1, 1)
    return 0.5 * colours + contrast.flip(0) * blots + contrast * noise


def created(name, classes=CLASSES):
    origin, _, _, arguments = MODELS[name]
    torch.manual_seed(0)
    if origin == TV:
        import torchvision
        model = getattr(torchvision.models, name)(weights=None, num_classes=classes, **arguments)
    else:
        import timm
        model = timm.create_model(name, pretrained=False, num_classes=classes, drop_rate=0.0, **arguments)
    for module in model.modules():
        if type(module).__name__ in ("Dropout", "StochasticDepth"):
            module.p = 0.0
    return model


def disturb(model):
    """No zeros, no ones, no two equal tensors: they would hide a mistake, and exporters merge equal ones."""
    generator = torch.Generator().manual_seed(1)
    for name, p in model.named_parameters():
        noise = torch.rand(p.shape, generator=generator) - 0.5
        one = p.detach().flatten()[0]
        if p.numel() > 1 and (p == one).all():
            base = 0.5 if 0 < abs(float(one)) < 0.1 else float(one)                 # the scale of a branch: 1e-6, say
            p.data.copy_(base + 0.2 * noise)


def from_kinks(model):
    """Most values of a norm away from relu's kink, where a float may fall on either side: see FAR."""
    generator = torch.Generator().manual_seed(3)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.mul_(0.35)
            module.bias.data.add_(torch.where(torch.rand(module.bias.shape, generator=generator) < 0.7, 1.0, -1.0))


def settle(model, image):
    """The running statistics that whole passes find."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [m.momentum for m in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None                                                                   # an average of all
    model.train()
    with torch.no_grad():
        for batch in [images(image.shape[2], seed, 8) for seed in range(100, 104)] + [image]:
            model(batch)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum


def stretch(model, image):
    """The last layer's values of about one around zero, which differ from image to image; less where float's rounding
    would make more than 1e-5 of it."""
    last = [m for m in model.modules() if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d))][-1]
    seen = []
    hook = last.register_forward_hook(lambda module, inputs, output: seen.append(output.transpose(0, 1).flatten(1)))
    model.eval()
    with torch.no_grad():
        model(image)
        scale = min(1e4, 1.0 / float(seen[0].std(1).mean()))
        last.weight.mul_(scale)
        if last.bias is not None:
            last.bias.sub_(seen[0].mean(1)).mul_(scale).add_(torch.linspace(-0.2, 0.2, CLASSES))
        hook.remove()
        noise = (model(image) - copy.deepcopy(model).double()(image.double())).abs().max()
        for p in last.parameters():
            p.mul_(min(1.0, 1e-5 / float(noise)))


def pictures(name):
    """The images of the reference."""
    return images(*MODELS[name][1:3])


def lively(name):
    """The model as it is exported, its weights random but alive."""
    image = pictures(name)
    model = created(name)
    disturb(model)
    if name in FAR:
        from_kinks(model)
    settle(model, image)
    stretch(model, image)
    return model


def labels():
    return torch.arange(BATCH) * 3 % CLASSES


def export_old(model, image, path, train, dynamic):
    mode = torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL
    axes = {"image": {0: "batch"}, "logits": {0: "batch"}} if dynamic else None
    torch.onnx.export(model, (image,), path, dynamo=False, training=mode, do_constant_folding=not train,
                      input_names=["image"], output_names=["logits"], dynamic_axes=axes)


def export_new(model, image, path, train, dynamic):
    torch.onnx.export(model, (image,), path, dynamo=True, optimize=not train, external_data=False, verbose=False,
                      input_names=["image"], output_names=["logits"],
                      dynamic_shapes=({0: "batch"},) if dynamic else None)


def restore_statistics(path, state):
    """The old exporter runs the model before it writes it, and in training mode that moves the statistics."""
    file = onnx.load(path)
    for tensor in file.graph.initializer:
        if "running_" in tensor.name:
            tensor.CopyFrom(onnx.numpy_helper.from_array(state[tensor.name].numpy(), tensor.name))
    onnx.save(file, path)


def failed(path, reason):
    with open(path.parent / "failed.txt", "a") as f:
        f.write(f"{path.stem}: {reason}\n")


def exported(model, name, exporter, train, folder):
    """The path, or None; failed.txt says why."""
    path = folder / f"{name}.{exporter}.{'train' if train else 'eval'}.onnx"
    for dynamic in (True, False):
        try:
            own = copy.deepcopy(model).train(train)
            export = export_old if exporter == "old" else export_new
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                export(own, pictures(name), str(path), train, dynamic)
            if exporter == "old" and train:
                restore_statistics(path, model.state_dict())
            return path
        except Exception as problem:                                            # noqa: an exporter raises what it likes
            reason = " ".join(str(problem).split())[:300] or type(problem).__name__
            failed(path, f"{'no batch of symbolic size' if dynamic else 'no export'}: {reason}")
            path.unlink(missing_ok=True)
    return None


def stepped(logits, weights):
    """The loss, and the weights after a step on it; a weight that the logits do not need stays."""
    loss = torch.nn.functional.cross_entropy(logits, labels())
    slopes = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    moved = {name: w.detach() if g is None else w.detach() - LR * g for (name, w), g in zip(weights.items(), slopes)}
    return loss.detach(), moved


def step_of_graph(graph, image, norms):
    """Logits, loss, all tensors that are weights or statistics after a step, and the population's variances."""
    values = graph.values()
    weights = {name: values[name].requires_grad_() for name in graph.leaves}
    logits, moved = graph.run(image, values, norms)
    loss, after = stepped(logits, weights)
    after.update({name: moved.get(name, values[name]) for name in graph.statistics})
    population = {name: v.numpy() for name, v in moved.items() if name.startswith("population/")}
    return logits.detach().numpy(), loss.item(), {name: v.detach().numpy() for name, v in after.items()}, population


def step_of_model(model, image, batch):
    """The same of the PyTorch model, by its names."""
    own = copy.deepcopy(model).double().train(batch)
    weights = dict(own.named_parameters())
    logits = own(image.double())
    loss, after = stepped(logits, weights)
    return logits.detach().numpy(), {**dict(own.named_buffers()), **after}


def check_step(graph, model, image, batch, logits, after):
    """How many tensors of the file are the model's own, and change as they do there. An exporter folds norms in float:
    then the two agree so far only."""
    exact, near = (1e-6, 1e-4) if batch else (1e-4, 1e-2)
    state = model.state_dict()
    theirs, moved = step_of_model(model, image, batch)
    assert apart(logits, theirs) < exact, f"logits of a step: {apart(logits, theirs)}"
    own = {name: found for name in after if (found := of_model(name, graph.initial[name], state))}
    start = {name: graph.initial[name] for name in own}
    want = {name: moved[key].numpy().T if turned else moved[key].numpy() for name, (key, turned) in own.items()}
    error, where = worst(change_errors(start, want, {name: after[name] for name in own}, zeros(start, want)))
    assert error < near, f"step: {error} in {where}"
    return len(own)


def of_model(name, value, state):
    """The model's name for an initialiser, by its name or value, and whether it is turned; or None."""
    for key in [name] if name in state else [key for key, v in state.items() if v.numel() == value.size]:
        theirs = state[key].numpy()
        if np.array_equal(theirs, value):
            return key, False
        if theirs.ndim == 2 and np.array_equal(theirs.T, value):
            return key, True
    return None


def zeros(start, after):
    """The weights with a change of nothing but double's rounding."""
    changes = {name: float(np.abs(after[name] - start[name]).max()) for name in after if not running(name)}
    return {name for name, change in changes.items() if change < 1e-10 * max(changes.values())}


def as_float(tensors, prefix):
    return {prefix + name: value.astype("f") for name, value in tensors.items()}


def step_entries(path, graph, image, norms):
    """What the reference says of a step under a rule."""
    logits, loss, after, population = step_of_graph(graph, image, norms)
    start = {name: graph.initial[name] for name in after}
    zero = zeros(start, after)
    assert 8 * len(zero) <= len(after), f"a dead network: {len(zero)} of {len(after)} gradients are zero"
    rough = step_of_graph(Graph(path, torch.float32), image, norms)
    floor = max(worst(change_errors(start, after, rough[2], zero))[0], 0.0)
    entries = {"logits_train": logits.astype("f"), "loss": np.float32(loss), "norms": norms, "floor": np.float32(floor),
               "zero": np.array(sorted(zero), dtype=str),
               **as_float(after, "step/"), **as_float(population, "")}
    return entries, after


def reference(path, model, train):
    """The entries of a file's .ref.npz."""
    image, graph = pictures(path.name.split(".")[0]), Graph(path)
    with torch.no_grad():
        logits = graph.run(image)[0].numpy()
        rough = Graph(path, torch.float32).run(image)[0].numpy()
        fewer = graph.run(image[:3])[0].numpy()
        theirs = copy.deepcopy(model).double().eval()(image.double()).numpy()
    assert apart(logits, theirs) < 1e-4, f"logits: {apart(logits, theirs)}"
    assert apart(logits[:3], fewer) < 1e-9, "a batch of 3 differs"
    norms = "none" if not graph.marked else "batch" if train else "fixed"
    entries, after = step_entries(path, graph, image, norms)
    own = check_step(graph, model, image, train, entries["logits_train"], after)
    assert own == len(after) or not train, f"{len(after) - own} tensors are not the model's"
    if graph.marked and not all(graph.marked):
        other = step_entries(path, graph, image, "fixed" if train else "batch")[0]
        entries.update({"other/" + key: value for key, value in other.items()})
    method = (f"models.Graph in double; logits are the model's within {apart(logits, theirs):.0e}; "
              f"{own} of {len(after)} tensors are the model's own and change as in its own step")
    return {"input": image.numpy(), "labels": labels().numpy(), "logits_eval": logits.astype("f"), "method": method,
            "noise": np.float32(apart(rough, logits)),
            "constants": np.array(CONSTANTS.get(path.name.removesuffix(".onnx"), []), dtype=str),
            **as_float({name: graph.initial[name] for name in after}, "start/"), **entries}


def make(name, folder):
    model = lively(name)
    for exporter in ("old", "new"):
        for train in (True, False):
            path = exported(model, name, exporter, train, folder)
            if path:
                save_reference(path, model, train)


def save_reference(path, model, train):
    try:
        entries = reference(path, model, train)
    except Exception as problem:                                                # noqa: an op that Graph has not, say
        failed(path, f"no reference: {type(problem).__name__}: {problem}")
        return
    np.savez(path.with_suffix(".partial.npz"), **entries)
    path.with_suffix(".partial.npz").rename(path.with_suffix(".ref.npz"))
    print(f"{path.name:36} noise {entries['noise']:.0e} floor {entries['floor']:.0e} norms {entries['norms']}; "
          f"{entries['method']}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(2)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        make(name, folder)
