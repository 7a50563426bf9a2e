"""Nearest and farthest points, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals, unit_lengths


def plain_neighbours(points, asks, farthest):
    points = points / unit_lengths(points)
    asked = points if asks is None else asks / unit_lengths(asks)
    products = asked @ points.transpose(-1, -2)
    found = (-products if farthest else products).argmax(-1, keepdim=True)
    target = points.gather(-2, found.expand(asked.shape))
    return points, None if asks is None else asked, target


def cases(ops):
    def case(farthest, inputs):
        def with_asks(function):
            return lambda points, asks=None: function(points, asks, farthest)

        return Case(with_asks(ops.unit_neighbours), with_asks(plain_neighbours), inputs, 20, gradients=False)

    points, asks = normals(2, 3, 9, 20), normals(2, 3, 4, 20)
    return [case(False, [points]), case(True, [points, asks]), case(False, [points[0], asks[0]])]


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    return [
        (lambda: ops.unit_neighbours(x, x[:1, :5]), "width of points"),
        (lambda: ops.unit_neighbours(x, x[:0]), "at least one row"),
    ]


OPERATORS = {
    "unit_neighbours": (cases, refusals),
}
