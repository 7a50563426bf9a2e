"""Polynomial attention, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from linear_attention import plain_linear_attention
from operator_case import Case, normals, turned


def plain_polynomial_attention(q, k, v, degree):
    weights = plain_linear_attention(q, k, torch.ones_like(v[..., :1]), None, degree)
    return plain_linear_attention(q, k, v, None, degree) / weights


def cases(ops):
    def case(sequences, tokens, width, width_v, degree):
        def fused(q, k, v):
            return ops.polynomial_attention(turned(q), k, v, degree)

        def plain(q, k, v):
            return plain_polynomial_attention(q, k, v, degree)

        inputs = [normals(sequences, tokens, w) * s for w, s in ((width, 0.25), (width, 0.25), (width_v, 1))]
        return Case(fused, plain, inputs, max(tokens, width) * degree)

    return [case(2, 5, 3, 4, degree) for degree in (1, 2, 3)] + [case(3, 130, 8, 16, 2), case(2, 200, 5, 7, 2)]


def refusals(ops, device):
    x = torch.ones(2, 8, 6, device=device)
    wide = torch.ones(1, 80, 4000, device=device)
    return [
        (lambda: ops.polynomial_attention(x, x[:, :5], x, 2), "shape of q"),
        (lambda: ops.polynomial_attention(x, x, x, 0), "degree"),
        (lambda: ops.polynomial_attention(x, x, x, 4), "degree"),
        (lambda: ops.polynomial_attention(wide, wide, wide, 3), "a state of 1.07e+10 rows by 4000"),
    ]


OPERATORS = {
    "polynomial_attention": (cases, refusals),
}
