"""What check_operators.py checks: the operators of librankscope.so beside plain compositions of torch's own, and
input that does not fit them."""
from dataclasses import dataclass
from typing import Callable, List

import torch

from plain_operators import (
    plain_attention,
    plain_linear,
    plain_mlp,
    plain_neighbours,
    plain_norm,
    plain_normals,
    plain_pattern,
    plain_self_attention,
    plain_spectra,
    plain_squared_error,
)


@dataclass
class Case:
    fused: Callable
    plain: Callable
    inputs: List[torch.Tensor]  # float64, of numbers that float32 holds
    terms: int  # of the longest sum, gradients included
    gradients: bool = True
    gradcheck: bool = True


# ---- cases ---------------------------------------------------------------------------------------------------


def normals(*shape):
    return torch.randn(*shape).double()


def grid(step, *shape):
    """Normals on a grid so coarse that float32 and TF32 compute short sums of products exactly: then no
    precision sees another largest score or another sign than float64 does."""
    return torch.round(torch.randn(*shape).double() / step) * step


def turned(x):
    """The same numbers, with columns side by side."""
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def small_attention_cases(ops):
    def one(q, k, v):
        return ops.small_attention(q, k, v, 4, 6, [3], [0.5])

    def ranks(q, k, v):
        return ops.small_attention(turned(q), k, turned(v), 16, 16, [2, 32], [0.25, 1.0])

    def hard(q, k, v):
        return ops.small_attention(q, k, v, 4, 6, [3], [0.5], True)

    def shared(q, k, v):
        return ops.small_attention(q, k, v, 1, 7, [4], [0.5], False, True)

    def plain(*how):
        return lambda q, k, v: plain_attention(q[None], k[None], v[None], *how)[0]

    return [
        Case(one, plain(4, 6, [3], [0.5]), [normals(8, 6), normals(12, 6), normals(12, 9)], 6),
        Case(
            ranks,
            lambda q, k, v: plain_attention(q, k, v, 16, 16, [2, 32], [0.25, 1.0]),
            [normals(2, 320, 32), normals(2, 320, 32), normals(2, 320, 64)],
            32,
        ),
        Case(hard, plain(4, 6, [3], [0.5], True), [grid(2**-8, 8, 6), grid(2**-8, 12, 6), normals(12, 9)], 6),
        Case(shared, plain(1, 7, [4], [0.5], False, True), [normals(3, 8), normals(21, 8), normals(21, 5)], 7),
    ]


def small_self_attention_cases(ops):
    def case(trials, sequences, tokens, heads, width, width_v):
        return Case(
            lambda qkv: ops.small_self_attention(qkv, tokens, [heads], [2.0], width_v),
            lambda qkv: plain_self_attention(qkv, tokens, [heads] * trials, [2.0] * trials, width_v),
            [normals(trials, sequences * tokens, 2 * width + width_v) * 0.5],
            max(tokens, width // heads),
        )

    return [case(1, 2, 5, 2, 4, 6), case(2, 1, 1, 1, 3, 2), case(3, 9, 16, 8, 64, 64), case(1, 2, 129, 4, 12, 20)]


def skip_norm_cases(ops):
    def case(kind, trials, rows, width, skip):
        shape = (*trials, rows, width)
        inputs = [normals(*shape), normals(*trials, 1 if kind == "unit" else width)]
        inputs += [normals(*shape)] if skip else []
        inputs += [normals(*trials, width)] if kind == "layer" else []

        def arranged(function, seen=lambda x: x):
            def call(x, gain, *rest):
                u, bias = rest[0] if skip else None, rest[-1] if kind == "layer" else None
                return function(seen(x), u, gain, bias, kind)

            return call

        terms = rows * width if kind == "unit" else max(rows, width)  # of the gain's gradient, or of a norm
        return Case(arranged(ops.skip_norm, turned), arranged(plain_norm), inputs, terms)

    shapes = [((2,), 5, 6, True), ((3,), 100, 64, True), ((), 7, 9, False)]
    return [case(kind, *shape) for kind in ("unit", "rms", "layer") for shape in shapes]


def linear_cases(ops):
    shapes = [((), 5, 6, 7), ((2,), 3, 4, 9), ((3,), 200, 64, 160), ((2,), 130, 96, 33)]
    cases = []
    for trials, rows, width, out in shapes:
        x, W, b = normals(*trials, rows, width), normals(*trials, out, width) / 8, normals(*trials, out)
        terms = max(rows, width, out)
        cases.append(Case(ops.linear, plain_linear, [x, W, b], terms))
        cases.append(
            Case(
                lambda x, W: ops.linear(turned(x), W, None),
                lambda x, W: plain_linear(x, W, None),
                [x, W],
                terms,
            )
        )
    return cases


def mlp_cases(ops):
    cases = []
    for trials, rows, width, hidden, out in [((), 4, 3, 5, 2), ((2,), 3, 4, 8, 3), ((2,), 150, 64, 512, 64)]:
        # The bias lies between two points of the products' grid: no hidden unit sits on its corner.
        b_in = grid(1 / 64, *trials, hidden) + 1 / 128
        inputs = [
            grid(1 / 8, *trials, rows, width),
            grid(1 / 8, *trials, hidden, width),
            b_in,
            normals(*trials, out, hidden) / 16,
            normals(*trials, out),
        ]
        cases.append(Case(ops.mlp, plain_mlp, inputs, max(rows, width, hidden)))
    # Without biases sums may be zero, where a slope has no one value.
    x, W_in, _, W_out, _ = inputs
    without = [
        lambda x, W_in, W_out, function=function: function(x, W_in, None, W_out, None)
        for function in (ops.mlp, plain_mlp)
    ]
    return cases + [Case(*without, [x, W_in, W_out], hidden, gradients=False)]


def squared_error_cases(ops):
    cases = []
    for shape in [(2, 3, 5), (3, 40, 64)]:
        target = normals(*shape)
        for stacked in (False, True):
            cases.append(
                Case(
                    lambda a, target=target, stacked=stacked: ops.squared_error(a, target.to(a), 0.25, stacked),
                    lambda a, target=target, stacked=stacked: plain_squared_error(a, target, 0.25, stacked),
                    [normals(*shape)],
                    target.numel(),
                )
            )
    return cases


def unit_neighbours_cases(ops):
    def case(farthest, inputs):
        def with_asks(function):
            return lambda points, asks=None: function(points, asks, farthest)

        return Case(with_asks(ops.unit_neighbours), with_asks(plain_neighbours), inputs, 20, gradients=False)

    points, asks = normals(2, 3, 9, 20), normals(2, 3, 4, 20)
    return [case(False, [points]), case(True, [points, asks]), case(False, [points[0], asks[0]])]


def pattern_statistics_cases(ops):
    def case(shape, masked=False):
        p = torch.softmax(normals(*shape), -1)
        p = (torch.tril(p) if masked else p).float().double()
        # A masked entry has no slope here and an infinite one by differences.
        return Case(ops.pattern_statistics, plain_pattern, [p], max(shape[-2:]), gradcheck=not masked)

    return [case((2, 3, 5, 6)), case((4, 2, 33, 50)), case((2, 16, 16), masked=True)]


def spectra_cases(ops):
    # Singular values near 1, 2, 3 and 4. Singular vectors, and so gradients, turn by a rounding times the largest
    # singular value over the distance to the next.
    apart = 0.1 * normals(2, 5, 4) + torch.diag(torch.arange(1.0, 6.0)).double()[:, :4]
    wide, patterns = normals(30, 12, 20), torch.softmax(3 * normals(2, 20, 50, 50), -1)
    cases = [Case(ops.spectra, plain_spectra, [apart.float().double()], 5 * 4)]
    for a in (wide, patterns.float().double()):
        cases.append(Case(ops.spectra, plain_spectra, [a], max(a.shape[-2:]), gradients=False))
    return cases


def normals_cases(ops):
    seeds, steps = [5, 2**40 + 7], [0, 9]

    def fused(like):
        where = like.device
        return ops.normals(torch.tensor(seeds, device=where), 3, torch.tensor(steps, device=where), 37)

    # The input is there for its device only. Logarithm, root, cosine and their product: a rounding each.
    return [Case(fused, lambda like: plain_normals(seeds, 3, steps, 37), [torch.zeros(1)], 4, gradients=False)]


# ---- what does not fit: (operator, call, part of the sentence it is refused with) ----------------------------


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    W, b = torch.ones(5, 6, device=device), torch.ones(5, device=device)
    seeds = torch.zeros(2, dtype=torch.int64, device=device)
    all_of_them = [
        ("small_attention", lambda: ops.small_attention(x, x, x[:4], 4, 4, [2], [1.0]), "number of sequences"),
        ("small_attention", lambda: ops.small_attention(x, x, x, 4, 4, [4], [1.0]), "do not divide"),
        ("small_self_attention", lambda: ops.small_self_attention(x, 3, [1], [1.0], 2), "not a multiple of 3"),
        ("skip_norm", lambda: ops.skip_norm(x, None, x[0], None, "batch"), "batch"),
        ("skip_norm", lambda: ops.skip_norm(x, W, x[0], None, "rms"), "shape of x"),
        ("linear", lambda: ops.linear(x, W.t(), b), "W must be [6, 6]"),
        ("linear", lambda: ops.linear(x, W.double(), b), "type"),
        ("mlp", lambda: ops.mlp(x, W, x[0], W.t(), None), "b_in must be [5]"),
        ("squared_error", lambda: ops.squared_error(x, x[:4], 1.0), "shape of answers"),
        ("unit_neighbours", lambda: ops.unit_neighbours(x, b[None]), "width of points"),
        ("unit_neighbours", lambda: ops.unit_neighbours(x, x[:0]), "at least one row"),
        ("pattern_statistics", lambda: ops.pattern_statistics(x.half()), "float32"),
        ("spectra", lambda: ops.spectra(b), "[.., rows, columns]"),
        ("normals", lambda: ops.normals(seeds, -1, seeds, 4), "32 bits"),
    ]
    if device.type == "cuda":
        all_of_them += [
            ("linear", lambda: ops.linear(x.double(), W.double(), None), "float64 on the CPU"),
            ("linear", lambda: ops.linear(x, W.cpu(), None), "device"),
        ]
    return all_of_them


CASES = {
    "small_attention": small_attention_cases,
    "small_self_attention": small_self_attention_cases,
    "skip_norm": skip_norm_cases,
    "linear": linear_cases,
    "mlp": mlp_cases,
    "squared_error": squared_error_cases,
    "unit_neighbours": unit_neighbours_cases,
    "pattern_statistics": pattern_statistics_cases,
    "spectra": spectra_cases,
    "normals": normals_cases,
}
