"""An MLP with a ReLU, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from linear import plain_linear
from operator_case import Case, grid, normals


def plain_mlp(x, W_in, b_in, W_out, b_out):
    return plain_linear(torch.relu(plain_linear(x, W_in, b_in)), W_out, b_out)


def cases(ops):
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


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    W = torch.ones(5, 6, device=device)
    return [
        (lambda: ops.mlp(x, W, x[0], W.t(), None), "b_in must be [5]"),
    ]


OPERATORS = {
    "mlp": (cases, refusals),
}
