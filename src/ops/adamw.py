"""The update of AdamW, for scripts/check_operators.py: plain composition, cases, what is refused."""
import math

import torch

from operator_case import Case, normals, turned


def plain_adamw(parameter, gradient, m, v, steps, rates, alive, beta1, beta2, eps, weight_decay):
    """Parameter and both moments behind the update; steps and alive are lists, rates [trials, rates]."""
    trials = []
    for p, g, m, v, step, rate, lives in zip(parameter, gradient, m, v, steps, rates, alive):
        if lives and 0 <= step < len(rate):
            lr, number = rate[step], step + 1
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            slope = (m / (1 - beta1**number)) / (torch.sqrt(v / (1 - beta2**number)) + eps)
            p = p - lr * weight_decay * p - lr * slope
        trials.append((p, m, v))
    return tuple(torch.stack(each) for each in zip(*trials))


def cases(ops):
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


def refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    alive = torch.ones(8, dtype=torch.int32, device=device)

    def adamw(gradient, beta2):
        state, steps = [x.clone() for _ in range(3)], torch.zeros_like(alive, dtype=torch.int64)
        ops.adamw_(state[0], gradient, *state[1:], steps, x[:, :1], alive, 0.9, beta2, 1e-8, 0.1)

    return [
        (lambda: adamw(x[:4], 0.99), "shape of parameter"),
        (lambda: adamw(x, 1.0), "beta of 1 is not in [0, 1)"),
    ]


OPERATORS = {
    "adamw_": (cases, refusals),
}
