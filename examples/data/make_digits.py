"""Write the UCI handwritten digits (test part, 1,797 scans of 8x8) as IDX files.

Run:   pip install scikit-learn && python make_digits.py
Files: digits-images.idx3-ubyte, digits-labels.idx1-ubyte (next to this script)
Made with Python 3.11.7, numpy 2.4.6, scikit-learn 1.9.1 (no network access: the data
come with scikit-learn).
"""
import struct
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent


def write_idx(path, array):
    """IDX: 00 00, type 08 (unsigned byte), number of dimensions; sizes; data (big-endian)."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())


def read_idx(path):
    raw = path.read_bytes()
    zero, kind, ndim = struct.unpack(">HBB", raw[:4])
    assert (zero, kind) == (0, 8)
    shape = struct.unpack(f">{ndim}I", raw[4 : 4 + 4 * ndim])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def main():
    digits = load_digits()
    for name, source in (("digits-images.idx3-ubyte", digits.images),
                         ("digits-labels.idx1-ubyte", digits.target)):
        write_idx(HERE / name, np.ascontiguousarray(source, np.uint8))
        back = read_idx(HERE / name)
        assert back.shape == source.shape and (back == source).all()
        print(name, back.shape, "values", back.min(), "to", back.max())


if __name__ == "__main__":
    main()
