"""Normals from counters, for scripts/check_operators.py: plain composition, cases, what is refused."""
import math

import torch

from operator_case import Case


def philox(seed, stream, step, index):
    """Four 32-bit words: Philox4x32-10 with the seed as key and (index, step, stream) as counter."""
    word = 0xFFFFFFFF
    c = [index & word, index >> 32, step, stream]
    k = [seed & word, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & word, (a >> 32) ^ c[3] ^ k[1], a & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c


def plain_normals(seeds, stream, steps, count):
    rows = []
    for seed, step in zip(seeds, steps):
        row = []
        for index in range((count + 3) // 4):
            u = [(w + 0.5) / 2**32 for w in philox(seed, stream, step, index)]
            for radius, turn in ((u[0], u[1]), (u[2], u[3])):
                length, angle = math.sqrt(-2 * math.log(radius)), 2 * math.pi * turn
                row += [length * math.cos(angle), length * math.sin(angle)]
        rows.append(row[:count])
    return torch.tensor(rows, dtype=torch.float64)


def cases(ops):
    seeds, steps = [5, 2**40 + 7], [0, 9]

    def fused(like):
        where = like.device
        return ops.normals(torch.tensor(seeds, device=where), 3, torch.tensor(steps, device=where), 37)

    # The input is there for its device only. Logarithm, root, cosine and their product: a rounding each.
    return [Case(fused, lambda like: plain_normals(seeds, 3, steps, 37), [torch.zeros(1)], 4, gradients=False)]


def refusals(ops, device):
    seeds = torch.zeros(2, dtype=torch.int64, device=device)
    return [
        (lambda: ops.normals(seeds, -1, seeds, 4), "32 bits"),
    ]


OPERATORS = {
    "normals": (cases, refusals),
}
