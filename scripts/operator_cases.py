"""What check_operators.py compares: the operators of librankscope.so beside plain compositions of torch's own."""
import math
from dataclasses import dataclass
from typing import Callable, List

import torch

from plain_operators import (
    plain_adamw,
    plain_attention,
    plain_linear,
    plain_mlp,
    plain_neighbours,
    plain_norm,
    plain_normals,
    plain_pattern,
    plain_projected_self_attention,
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


def projected_self_attention_cases(ops):
    def case(x, W, b, tokens, heads, scale, width_v, hard=False):
        how = (tokens, heads, scale, width_v, hard)
        terms = max(*x.shape[-2:], *W.shape[-2:])
        if b is None:
            return Case(
                lambda x, W: ops.projected_self_attention(turned(x), turned(W), None, *how),
                lambda x, W: plain_projected_self_attention(x, W, None, *how),
                [x, W],
                terms,
            )
        return Case(
            lambda x, W, b: ops.projected_self_attention(x, W, b, *how),
            lambda x, W, b: plain_projected_self_attention(x, W, b, *how),
            [x, W, b],
            terms,
        )

    # On CUDA under TF32 Q, K and V never reach memory where heads are 8 wide or wider: all trials but the third.
    x, W, b = normals(4, 9 * 16, 64), normals(4, 3 * 64, 64) / 8, normals(4, 3 * 64)
    large = (16, [8, 1, 32, 2], [0.25, 0.125, 0.5, 0.25], 64)
    # Queries and keys in steps of 2^-8, for the largest score.
    coarse = [grid(2**-5, 10, 4), grid(1 / 4, 14, 4) / 2, grid(2**-8, 14)]
    return [
        case(normals(2, 6, 4), normals(2, 14, 4) / 2, normals(2, 14), 3, [1, 2], [0.5, 1.0], 6),
        case(normals(10, 3), normals(12, 3) / 2, None, 5, [2], [0.5], 4),
        case(x, W, b, *large),
        case(x, W, None, *large),
        case(*coarse, 5, [2], [0.5], 6, True),
    ]


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


def adamw_cases(ops):
    # The operator keeps these in float32, which holds them as they are. Epsilon is so large that its place shows.
    rule = (1 - 2**-3, 1 - 2**-6, 2**-5, 2**-3)
    steps, alive = [0, 7, 3, 8, -1], [1, 1, 0, 1, 1]  # the third is dropped, the last two have no rate
    moved, stayed = [0, 1], [2, 3, 4]
    rates = torch.rand(5, 8).double() / 4

    def fused(parameter, gradient, m, v, layout):
        where, before = parameter.device, (parameter, m, v)
        after = [x.clone() for x in before]
        told = (
            torch.tensor(steps, device=where),
            rates.to(parameter),
            torch.tensor(alive, dtype=torch.int32, device=where),
        )
        ops.adamw_(after[0], layout(gradient), *after[1:], *told, *rule)
        changed = [(x.view(torch.int32) != y.view(torch.int32))[stayed].sum() for x, y in zip(before, after)]
        return [x[moved] for x in after] + changed

    def plain(*state):
        none = torch.tensor(0.0, dtype=torch.float64)
        return [x[moved] for x in plain_adamw(*state, steps, rates, alive, *rule)] + [none] * 3

    def case(size, layout):
        gradient = normals(5, size)
        gradient[stayed] = math.nan  # why a trial is dropped, most often
        state = [normals(5, size), gradient, normals(5, size), (normals(5, size) ** 2).float().double()]
        # Roundings on the way to the parameter: 3 of m, 4 of v, both corrections and dividing by them, then root,
        # epsilon, quotient, rate and difference.
        return Case(lambda *x: fused(*x, layout), plain, state, 3 + 4 + 2 + 2 + 5, gradients=False)

    return [case(37, lambda g: g), case(37, turned), case(4000, lambda g: g)]


CASES = {
    "small_attention": small_attention_cases,
    "small_self_attention": small_self_attention_cases,
    "projected_self_attention": projected_self_attention_cases,
    "skip_norm": skip_norm_cases,
    "linear": linear_cases,
    "mlp": mlp_cases,
    "squared_error": squared_error_cases,
    "unit_neighbours": unit_neighbours_cases,
    "pattern_statistics": pattern_statistics_cases,
    "spectra": spectra_cases,
    "normals": normals_cases,
    "adamw_": adamw_cases,
}
