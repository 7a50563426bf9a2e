"""A product with a bias, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals, turned


def plain_linear(x, W, b):
    y = x @ W.transpose(-1, -2)
    return y if b is None else y + b.unsqueeze(-2)


def cases(ops):
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


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    W, b = torch.ones(5, 6, device=device), torch.ones(5, device=device)
    always = [
        (lambda: ops.linear(x, W.t(), b), "W must be [6, 6]"),
        (lambda: ops.linear(x, W.double(), b), "type"),
    ]
    on_cuda = [
        (lambda: ops.linear(x.double(), W.double(), None), "float64 on the CPU"),
        (lambda: ops.linear(x, W.cpu(), None), "device"),
    ]
    return always + (on_cuda if device.type == "cuda" else [])


OPERATORS = {
    "linear": (cases, refusals),
}
