"""examples/finetune.c beside PyTorch: MobileNetV3-Small (random weights) on photographs cut into squares, in a quarter of
keep-all's bytes; the same batches in the same order.

    pip install torch torchvision onnx onnxruntime scikit-image scikit-learn pillow
    python finetune.py FINETUNE LIKE_ONNX [EPOCHS]

prints the losses and the photographs that are right for both, what a step took, how far ONNX Runtime's outputs on the
tuned file are from gcp's, and whether a run that was killed again and again ended with the same file.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import skimage
import sklearn.datasets
import torch
import torchvision
from PIL import Image

BATCH, LR, SIZE, TILE, MASK = 16, 0.02, 224, 96, (1 << 64) - 1
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def cut(folder):
    """Squares of sample images; each image is a class, in four kinds of files."""
    skimages, flowers = (pathlib.Path(p).parent for p in (skimage.__file__, sklearn.datasets.__file__))
    for name in ("data/astronaut.png", "data/chelsea.png", "data/coffee.png", "data/hubble_deep_field.jpg", "data/ihc.png",
                 "data/motorcycle_left.png", "data/retina.jpg", "images/china.jpg", "images/flower.jpg"):
        path = (flowers if name.startswith("images") else skimages) / name
        image = Image.open(path).convert("RGB")
        (folder / path.stem).mkdir(parents=True)
        places = [(x, y) for y in range(0, image.height - TILE + 1, TILE) for x in range(0, image.width - TILE + 1, TILE)]
        for i, (x, y) in enumerate(places[:30]):
            kind = ("png", "jpg", "bmp", "ppm")[i % 4]
            image.crop((x, y, x + TILE, y + TILE)).save(folder / path.stem / f"{i:03}.{kind}")


# ---- what examples/data.h and photos.h do, once more


def random(key, counter):
    z = (key * 0xD1342543DE82EF95 + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    for shift, by in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = ((z ^ z >> shift) * by) & MASK
    return z ^ z >> 31


def shuffled(count, epoch):
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = random(epoch, i) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def photographs(folder):
    """Pictures and labels, those that train and those held out."""
    train, test = [], []
    for label, inside in enumerate(sorted(p for p in folder.iterdir())):
        files = sorted(inside.iterdir())
        tests = int(0.2 * len(files) + 0.5)
        for k, i in enumerate(shuffled(len(files), 1)):
            (test if k < tests else train).append((picture(files[i]), label))
    return train, test


def picture(path):
    image = Image.open(path).convert("RGB")
    side = 0.875 * min(image.size)
    x, y = (image.width - side) / 2, (image.height - side) / 2
    image = image.resize((SIZE, SIZE), Image.BILINEAR, box=(x, y, x + side, y + side))
    return torch.tensor(((np.asarray(image) / 255 - MEAN) / STD).transpose(2, 0, 1), dtype=torch.float32)


def batch_of(pictures):
    return torch.stack([p for p, _ in pictures]), torch.tensor([label for _, label in pictures])


def trained(model, train, test, epochs):
    """PyTorch's losses, and how many of those held out are right after each epoch."""
    steps = (len(train) + BATCH - 1) // BATCH
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    for epoch in range(epochs):
        order, loss = shuffled(len(train), epoch + 1), 0
        model.train()
        for step in range(steps):
            x, labels = batch_of([train[order[(step * BATCH + i) % len(train)]] for i in range(BATCH)])
            for group in optimizer.param_groups:
                group["lr"] = LR * 0.5 * (1 + np.cos(np.pi * (epoch * steps + step) / (epochs * steps)))
            one = torch.nn.functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            one.backward()
            optimizer.step()
            loss += one.item() / steps
        model.eval()
        with torch.no_grad():
            x, labels = batch_of(test)
            yield loss, int((model(x).argmax(1) == labels).sum())


def main(finetune, like_onnx, epochs=20):
    torch.manual_seed(0)
    model = torchvision.models.mobilenet_v3_small(weights=None)
    model.classifier[2].p = 0                                       # dropout draws other numbers there
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.1                                   # 0.01 is for longer runs
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cut(folder / "photos")
        torch.onnx.export(model.train(), torch.randn(2, 3, SIZE, SIZE), folder / "model.onnx", dynamo=False,
                          opset_version=17, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          input_names=["image"], dynamic_axes={"image": {0: "batch"}})

        def run(out, *options, timeout=None):
            line = [finetune, folder / "model.onnx", "--data", folder / "photos", "--batch", str(BATCH), "--lr", str(LR),
                    "--epochs", str(epochs), "--out", folder / out, *map(str, options)]
            return subprocess.run(line, capture_output=True, text=True, check=not timeout, timeout=timeout).stdout

        first = run("first.onnx", "--epochs", 1, "--lr", 1e-9)      # the new head's weights
        keep_all = float(re.search(r"keeping all takes ([\d.]+) MiB", first)[1])
        budget = int(keep_all * 1048576 / 4)
        text = run("tuned.onnx", "--budget", budget)
        print(text)
        weights = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(folder / "first.onnx").graph.initializer}
        head = model.classifier[3] = torch.nn.Linear(1024, len(list((folder / "photos").iterdir())))
        with torch.no_grad():
            head.weight.copy_(torch.tensor(weights["classifier.3.weight"]))
            head.bias.copy_(torch.tensor(weights["classifier.3.bias"]))
        train, test = photographs(folder / "photos")
        ours = re.findall(r"loss ([\d.]+)  right on those held out (\d+)", text)
        print("epoch   loss: gcp  PyTorch   right of %d: gcp  PyTorch" % len(test))
        for i, (loss, right) in enumerate(trained(model, train, test, epochs)):
            print("%5d %11s %8.4f %16s %8d" % (i + 1, ours[i][0], loss, ours[i][1], right))
        runtime(folder, like_onnx, test)
        for seconds in range(1, 9):                                 # killed in every epoch or so
            try:
                run("killed.onnx", "--budget", budget, "--resume", folder / "run.gcp", timeout=1.0 + 0.37 * seconds)
            except subprocess.TimeoutExpired:
                pass
        run("killed.onnx", "--budget", 2 * budget, "--resume", folder / "run.gcp")
        same = (folder / "killed.onnx").read_bytes() == (folder / "tuned.onnx").read_bytes()
        print("killed eight times, then in twice the bytes: the same file" if same else "OTHER BYTES after being killed")


def runtime(folder, like_onnx, test):
    """The tuned file in ONNX Runtime, and in gcp."""
    x, labels = batch_of(test[:4])
    x.numpy().tofile(folder / "x.f32")
    labels.numpy().astype("<i4").tofile(folder / "labels")
    subprocess.run([like_onnx, folder / "tuned.onnx", "--batch", "4", "--in", folder / "x.f32", "--labels", folder / "labels",
                    "--lr", "0.01", "--logits", folder / "logits.f32"], check=True, capture_output=True)
    onnx.checker.check_model(folder / "tuned.onnx", full_check=True)
    session = onnxruntime.InferenceSession(folder / "tuned.onnx")
    theirs = session.run(None, {"image": x.numpy()})[0]
    ours = np.fromfile(folder / "logits.f32", "<f4").reshape(theirs.shape)
    print("ONNX Runtime on the tuned file: at most %.1e from gcp's outputs, the largest of which is %.1f" %
          (np.abs(theirs - ours).max(), np.abs(theirs).max()))


if __name__ == "__main__":
    torch.set_num_threads(2)
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
