"""Statistics of an attention pattern, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals


def plain_pattern(p):
    counted = torch.where(p > 0, p, torch.ones_like(p))
    return -(counted * torch.log(counted)).sum(-1), p.sum(-2)


def cases(ops):
    def case(shape, masked=False):
        p = torch.softmax(normals(*shape), -1)
        p = (torch.tril(p) if masked else p).float().double()
        # A masked entry has no slope here and an infinite one by differences.
        return Case(ops.pattern_statistics, plain_pattern, [p], max(shape[-2:]), gradcheck=not masked)

    return [case((2, 3, 5, 6)), case((4, 2, 33, 50)), case((2, 16, 16), masked=True)]


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    return [
        (lambda: ops.pattern_statistics(x.half()), "float32"),
    ]


OPERATORS = {
    "pattern_statistics": (cases, refusals),
}
