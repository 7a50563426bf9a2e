"""Skip and norm, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals, turned, unit_lengths


def plain_norm(x, u, gain, bias, kind):
    s = x if u is None else x + u
    gain = gain.unsqueeze(-2)
    if kind == "unit":
        return s / unit_lengths(s) * gain
    if kind == "rms":
        return s / torch.sqrt((s * s).mean(-1, keepdim=True) + 1e-5) * gain
    s = s - s.mean(-1, keepdim=True)
    return s / torch.sqrt((s * s).mean(-1, keepdim=True) + 1e-5) * gain + bias.unsqueeze(-2)


def cases(ops):
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


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    return [
        (lambda: ops.skip_norm(x, None, x[0], None, "batch"), "batch"),
        (lambda: ops.skip_norm(x, x[:5], x[0], None, "rms"), "shape of x"),
    ]


OPERATORS = {
    "skip_norm": (cases, refusals),
}
