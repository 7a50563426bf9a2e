"""Self-attention from the tokens and the weights, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from linear import plain_linear
from operator_case import Case, grid, normals, turned
from small_attention import plain_self_attention


def plain_projected_self_attention(x, W, b, tokens, heads, scale, width_v, hard=False):
    qkv = plain_linear(x, W, b)
    stack = qkv.reshape(-1, *qkv.shape[-2:])
    return plain_self_attention(stack, tokens, heads, scale, width_v, hard).reshape(*x.shape[:-1], width_v)


def cases(ops):
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


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    W = torch.ones(5, 6, device=device)
    return [
        (lambda: ops.projected_self_attention(x, W, None, 4, [1], [1.0], 2), "5 rows of W are not Q, K and a V of 2"),
        (lambda: ops.projected_self_attention(x, W, x[0], 4, [1], [1.0], 1), "b must be [5]"),
    ]


OPERATORS = {
    "projected_self_attention": (cases, refusals),
}
