"""Weights of a small network as PyTorch's own library writes them, with an input and its logits, in float and bfloat16:
python make_weights.py (torch 2.15, safetensors)."""
import torch
from safetensors.torch import save_file


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4))
        self.blocks = torch.nn.ModuleList(
            torch.nn.ModuleDict({"conv": torch.nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False),
                                 "norm": torch.nn.BatchNorm2d(4)}) for _ in range(2))
        self.up = torch.nn.ConvTranspose2d(4, 3, 2, stride=2)
        self.fc = torch.nn.Linear(3 * 6 * 6, 5)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = torch.relu(block["norm"](block["conv"](x)) + x)
        x = self.up(torch.max_pool2d(x, 2))
        return self.fc(torch.flatten(x, 1))


class Coder(torch.nn.Module):
    """A flattened image, what is added to it, and an image again."""
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm1d(4 * 2 * 3)
        self.code = torch.nn.Linear(4 * 2 * 3, 5)
        self.back = torch.nn.Linear(5, 4 * 2 * 3)
        self.last = torch.nn.Conv2d(4, 2, 1)

    def forward(self, x):
        x = self.norm(torch.flatten(self.conv(x), 1))
        x = torch.relu(x + self.back(torch.relu(self.code(x))))
        return self.last(torch.unflatten(x, 1, (4, 2, 3))).permute(0, 2, 3, 1)


torch.manual_seed(1)
for name, net, shape, dtype in (("small", Small(), (2, 3, 6, 6), torch.float32),
                                ("small_bf16", Small(), (2, 3, 6, 6), torch.bfloat16),
                                ("coder", Coder(), (2, 3, 2, 3), torch.float32)):
    for buffer_name, buffer in net.named_buffers():
        if "running" in buffer_name:
            buffer.uniform_(0.5, 2)
    net = net.eval().to(dtype).to(torch.float32)
    image = torch.randn(shape)
    with torch.no_grad():
        tensors = {k: v.to(dtype) if v.is_floating_point() else v for k, v in net.state_dict().items()}
        tensors.update({"image": image, "logits": net(image)})
    save_file({k: v.contiguous() for k, v in tensors.items()}, name + ".safetensors")
