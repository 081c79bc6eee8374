"""Edges of a photograph: a 5x5 blur, Sobel gradients and a contrast stretch, written to a PNG.

Run it:            python examples/edges.py [PHOTO] [-o edges.png]

Needs Pillow, and without PHOTO matplotlib, whose sample photograph it then uses:
`uv sync --group examples`.
"""

import argparse
from importlib import metadata
from pathlib import Path

import numpy as np

import loopwright as lw


def f(photo):
    """Edge strength 0..255 (uint8) of an RGB photograph (uint8, height x width x 3)."""
    xp = photo.__array_namespace__()
    rgb = xp.astype(photo, xp.float32)
    grey = 0.299 * rgb[:, :, 0] + 0.587 * rgb[:, :, 1] + 0.114 * rgb[:, :, 2]
    smooth = blur(blur(grey, 0), 1)
    dx = sobel(smooth, 1)
    dy = sobel(smooth, 0)
    strength = xp.sqrt(dx * dx + dy * dy)
    strength = strength / xp.max(strength)
    return xp.astype(255 * xp.sqrt(strength), xp.uint8)


def blur(x, axis):
    """1 4 6 4 1 along an axis; two elements fewer at either end."""
    a, b, c, d, e = shifted(x, axis, 5)
    return (a + e + 4 * (b + d) + 6 * c) / 16


def sobel(x, axis):
    """The gradient along an axis, smoothed along the other; one element fewer at every edge."""
    before, _, after = shifted(x, axis, 3)
    left, middle, right = shifted(after - before, 1 - axis, 3)
    return left + 2 * middle + right


def shifted(x, axis, n):
    """The n views of x, each one element further along the axis."""
    length = x.shape[axis] - n + 1
    spans = [slice(i, i + length) for i in range(n)]
    return [x[s] if axis == 0 else x[:, s] for s in spans]


def sample_photograph():
    """The photograph inside matplotlib's wheel, found without importing matplotlib."""
    try:
        files = metadata.files("matplotlib") or []
    except metadata.PackageNotFoundError:
        raise SystemExit("give a photograph, or: uv sync --group examples") from None
    for file in files:
        if file.name == "grace_hopper.jpg":
            return Path(file.locate())
    raise SystemExit("this matplotlib ships no sample photograph: give one")


def main():
    from PIL import Image

    parser = argparse.ArgumentParser(description="Edges of a photograph.")
    parser.add_argument("photo", nargs="?", type=Path, help="default: matplotlib's sample")
    parser.add_argument("-o", "--output", type=Path, default=Path("edges.png"))
    args = parser.parse_args()

    with Image.open(args.photo or sample_photograph()) as image:
        photo = np.asarray(image.convert("RGB"))

    want = f(photo)
    lazy = f(lw.asarray(photo))
    kernels = lw.kernels(lazy)
    for kernel in kernels:
        print(kernel.describe())
    got = lazy.numpy()

    # Rounding to 0..255 may fall either way where the last bit of a float32 differs.
    off = np.abs(got.astype(np.int16) - want)
    Image.fromarray(got).save(args.output)
    print(
        f"{photo.shape[1]}x{photo.shape[0]} in {len(kernels)} kernels, "
        f"{np.mean(off > 0):.2%} of the pixels off by one -> {args.output}"
    )
    if off.max() > 1:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
