"""A ResNet-50 of torchvision with random weights, its statistics, an image and its logits, for test_resnet50:
python make_resnet50.py FILE (torch, torchvision, safetensors; 102 MB)."""
import sys
import torch
import torchvision
from safetensors.torch import save_file

torch.manual_seed(1)
net = torchvision.models.resnet50(weights=None).train()
with torch.no_grad():
    for norm in (m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)):
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.uniform_(-0.5, 0.5)
    for _ in range(20):                 # statistics of its own activations
        net(torch.randn(4, 3, 224, 224))
    net.eval()
    image = torch.randn(2, 3, 224, 224)
    logits = net(image)
save_file({**net.state_dict(), "image": image, "logits": logits}, sys.argv[1])
