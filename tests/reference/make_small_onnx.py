"""Write small.onnx: a CNN of two blocks and an attention, as PyTorch exports it for training (names of blocks, batch-norms,
a symbolic batch), with random weights; and pieces.onnx: activations and norms of an older opset, which has them in pieces; and
constants.onnx, the same with Constants in the places of its initialisers, as Paddle's exporter writes files. What PyTorch makes of
pieces.onnx's first input is printed, for test_onnx.c.

Run:  pip install torch onnx && python make_small_onnx.py
Made with torch 2.15.0, onnx 1.23.2.
"""
import onnx
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.nn.functional.silu(self.bn1(self.conv1(x)))))
        return torch.relu(x + y)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.layer1 = nn.Sequential(Block(8), Block(8))
        self.qkv, self.norm = nn.Linear(8, 24), nn.LayerNorm(8)
        self.fc = nn.Linear(8 * 16, 5)

    def forward(self, x):
        x = self.layer1(torch.relu(self.stem(x)))
        t = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(t)).reshape(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        a = torch.softmax(q @ k.transpose(-2, -1) * 0.5, -1) @ v
        t = t + a.transpose(1, 2).reshape(-1, 16, 8)
        return self.fc(t.transpose(1, 2).flatten(1))


torch.manual_seed(1)
torch.onnx.export(Small().train(), torch.randn(2, 3, 8, 8), "small.onnx", dynamo=False, opset_version=17,
                  training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["image"],
                  output_names=["logits"], dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Pieces(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 5)
        self.norm, self.rms = nn.LayerNorm(12), RootMeanSquare(12)

    def forward(self, x):
        x = self.norm(nn.functional.gelu(self.a(x)))
        x = self.rms(nn.functional.gelu(self.b(x), approximate="tanh"))
        if self.training:                                           # stochastic depth
            x = x / 0.75 * torch.floor(0.75 + torch.rand_like(x[:, :1, :1]))
        x = nn.functional.mish(self.c(x))
        x = x * nn.functional.relu6(x + 3) / 6
        return self.d(nn.functional.relu6(x + 3) / 6 + nn.functional.silu(x)).sum(1)


pieces = Pieces().train()
torch.onnx.export(pieces, torch.randn(2, 3, 8), "pieces.onnx", dynamo=False, opset_version=14, do_constant_folding=False,
                  training=torch.onnx.TrainingMode.TRAINING, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
print(pieces.eval()(torch.arange(2 * 3 * 8).reshape(2, 3, 8) % 11 / 11).flatten().tolist())
model = onnx.load("pieces.onnx")
constants = [onnx.helper.make_node("Constant", [], [i.name], name=f"constant{k}", value=i)
             for k, i in enumerate(model.graph.initializer)]
nodes = constants + list(model.graph.node)
del model.graph.node[:], model.graph.initializer[:]
model.graph.node.extend(nodes)
onnx.checker.check_model(model)
onnx.save(model, "constants.onnx")
