"""Linear attention, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals, turned


def kept_between(keep):
    """keep_{j+1} ... keep_i on and below the diagonal."""
    sums = torch.log(keep).cumsum(-1)
    return torch.exp((sums.unsqueeze(-1) - sums.unsqueeze(-2)).clamp(max=0)).tril()


def plain_linear_attention(q, k, v, keep=None, degree=0):
    s = q @ k.transpose(-1, -2)
    f = s if degree == 0 else sum(s**power / [1, 1, 2, 6][power] for power in range(degree + 1))
    return (f.tril() if keep is None else f * kept_between(keep)) @ v


def cases(ops):
    def case(sequences, tokens, width, width_v, degree, forgets):
        keep = torch.sigmoid(normals(sequences, tokens) + 2).float().double() if forgets else None

        def fused(q, k, v):
            return ops.linear_attention(turned(q), k, v, None if keep is None else keep.to(q), degree)

        def plain(q, k, v):
            return plain_linear_attention(q, k, v, keep, degree)

        inputs = [normals(sequences, tokens, w) * s for w, s in ((width, 0.25), (width, 0.25), (width_v, 1))]
        return Case(fused, plain, inputs, max(tokens, width) * max(degree, 1))

    return [case(2, 5, 3, 4, degree, forgets) for degree in (0, 1, 2, 3) for forgets in (False, True)] + [
        case(3, 130, 8, 16, 0, True),
        case(2, 200, 5, 7, 2, False),
    ]


def refusals(ops, device):
    x = torch.ones(2, 8, 6, device=device)
    wide = torch.ones(1, 80, 4000, device=device)
    return [
        (lambda: ops.linear_attention(x, x[:, :5], x), "shape of q"),
        (lambda: ops.linear_attention(x, x, x, x[:, 0]), "keep must be [2, 8]"),
        (lambda: ops.linear_attention(x, x, x, None, 4), "degree"),
        (lambda: ops.linear_attention(wide, wide, wide, None, 3), "a state of 1.07e+10 rows by 4000"),
    ]


OPERATORS = {
    "linear_attention": (cases, refusals),
}
