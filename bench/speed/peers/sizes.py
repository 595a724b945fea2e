"""The networks' sizes, alike in all tools."""

# batch, image, channels, classes; of a language model batch, tokens, 0, words
INPUTS = {"tf2_checkpointing_64": (16, 64, 1, 10), "tf2_checkpointing_256": (16, 256, 1, 10), "recompute_grad_64": (16, 64, 1, 10),
          "resnet50": (8, 224, 3, 1000), "resnet18_cifar": (128, 32, 3, 10), "densenet_bc": (64, 32, 3, 10),
          "vit_tiny": (8, 224, 3, 1000), "vit_small": (8, 224, 3, 1000), "gpt2": (1, 512, 0, 50257),
          "mobilenet_v3_small": (32, 96, 3, 1000), "efficientnet_b0": (8, 224, 3, 1000), "convnext_t": (8, 224, 3, 1000)}

# 5x5 convolutions with ReLU; their 1x1 pools, which do nothing, are left out
TF2_CHECKPOINTING = (10, 20, 40, 60, 40, 40, 40, 40, 40, 20, 20)
CHANNELS = {"tf2_checkpointing_64": TF2_CHECKPOINTING, "tf2_checkpointing_256": TF2_CHECKPOINTING, "recompute_grad_64": (10, 40, 20) * 3}
HALVED = {"tf2_checkpointing_64": True, "tf2_checkpointing_256": True, "recompute_grad_64": False}      # a 2x2 pool behind the last

RESNET50 = ((64, 3), (128, 4), (256, 6), (512, 3))      # width, blocks

CONVNEXT = ((96, 3), (192, 3), (384, 9), (768, 3))

# kernel, wide, out, gate, swish, stride
MOBILENET = ((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2), (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1),
             (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1))

# expansion, kernel, out, blocks, stride
EFFICIENTNET = ((1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1))


def rounded(channels):
    """MobileNet's: to eights, never a tenth less."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near
