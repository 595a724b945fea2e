"""photographs.py - pieces of ten photographs as a set of images with ten classes, in CIFAR-10's binary format.

    photographs.py OUT PHOTO...        ten photographs, of any size

A photograph is scaled to 384 pixels of height. Pieces of 32 x 32 pixels from its left two thirds are to train on, from
its right third to test on; none is in both. A piece's class is its photograph. Writes OUT/train.bin and OUT/test.bin;
the same photographs give the same files. Needs Pillow."""
import os
import random
import sys

from PIL import Image

HEIGHT, SIDE, TRAIN, TEST = 384, 32, 500, 100


def pieces(image, low, high, count, draw):
    """count squares whose columns lie in [low, high)."""
    for _ in range(count):
        x, y = draw.randint(low, high - SIDE), draw.randint(0, HEIGHT - SIDE)
        yield image.crop((x, y, x + SIDE, y + SIDE))


def record(label, piece):
    """A byte of the class, then the red, green and blue plane."""
    return bytes([label]) + b"".join(band.tobytes() for band in piece.split())


def main():
    if len(sys.argv) != 12:
        sys.exit(__doc__)
    draw, train, test = random.Random(1), [], []
    for label, path in enumerate(sys.argv[2:]):
        image = Image.open(path).convert("RGB")
        width = max(3 * SIDE, image.width * HEIGHT // image.height)
        image = image.resize((width, HEIGHT), Image.Resampling.BOX)
        cut = width * 2 // 3
        train += [record(label, p) for p in pieces(image, 0, cut, TRAIN, draw)]
        test += [record(label, p) for p in pieces(image, cut, width, TEST, draw)]
    draw.shuffle(train)
    for name, records in (("train.bin", train), ("test.bin", test)):
        with open(os.path.join(sys.argv[1], name), "wb") as f:
            f.write(b"".join(records))


main()
