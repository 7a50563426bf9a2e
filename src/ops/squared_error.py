"""Squared errors, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals


def plain_squared_error(answers, target, weight, stacked):
    squares = (answers - target) ** 2
    return weight * (squares.reshape(len(squares), -1).sum(1) if stacked else squares.sum())


def cases(ops):
    cases = []
    for shape in [(2, 3, 5), (3, 40, 64), (7,), ()]:
        target = normals(*shape)
        for stacked in (False, True) if shape else (False,):
            cases.append(
                Case(
                    lambda a, target=target, stacked=stacked: ops.squared_error(a, target.to(a), 0.25, stacked),
                    lambda a, target=target, stacked=stacked: plain_squared_error(a, target, 0.25, stacked),
                    [normals(*shape)],
                    target.numel(),
                )
            )
    return cases


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    return [
        (lambda: ops.squared_error(x, x[:4], 1.0), "shape of answers"),
        (lambda: ops.squared_error(x[0, 0], x[0, 0], 1.0, True), "dimension of trials"),
    ]


OPERATORS = {
    "squared_error": (cases, refusals),
}
