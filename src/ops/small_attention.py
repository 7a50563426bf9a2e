"""Attention over short contexts, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, grid, normals, turned


def by_head(x, tokens, heads):
    return x.reshape(-1, tokens, heads, x.shape[-1] // heads).transpose(1, 2)


def plain_attention(q, k, v, queries, keys, heads, scale, hard=False, shared=False):
    """q, k and v are [trials, ...]; heads and scale have one entry a trial."""
    out = []
    for t in range(q.shape[0]):
        scores = by_head(q[t], queries, heads[t]) @ by_head(k[t], keys, heads[t]).transpose(-1, -2) * scale[t]
        if hard:
            pattern = torch.nn.functional.one_hot(scores.argmax(-1), keys).to(scores.dtype)
        else:
            pattern = torch.softmax(scores, -1)
        z = pattern @ by_head(v[t], keys, 1 if shared else heads[t])
        out.append(z.transpose(1, 2).reshape(q.shape[1], heads[t] * z.shape[-1]))
    return torch.stack(out)


def plain_self_attention(qkv, tokens, heads, scale, width_v, hard=False):
    width = (qkv.shape[-1] - width_v) // 2
    q, k, v = qkv[..., :width], qkv[..., width : 2 * width], qkv[..., 2 * width :]
    return plain_attention(q, k, v, tokens, tokens, heads, scale, hard)


def small_attention_cases(ops):
    def one(q, k, v):
        return ops.small_attention(q, k, v, 4, 6, [3], [0.5])

    def ranks(q, k, v):
        return ops.small_attention(turned(q), k, turned(v), 16, 16, [2, 32], [0.25, 1.0])

    def hard(q, k, v):
        return ops.small_attention(q, k, v, 4, 6, [3], [0.5], True)

    def shared(q, k, v):
        return ops.small_attention(q, k, v, 1, 7, [4], [0.5], False, True)

    def plain(*how):
        return lambda q, k, v: plain_attention(q[None], k[None], v[None], *how)[0]

    return [
        Case(one, plain(4, 6, [3], [0.5]), [normals(8, 6), normals(12, 6), normals(12, 9)], 6),
        Case(
            ranks,
            lambda q, k, v: plain_attention(q, k, v, 16, 16, [2, 32], [0.25, 1.0]),
            [normals(2, 320, 32), normals(2, 320, 32), normals(2, 320, 64)],
            32,
        ),
        Case(hard, plain(4, 6, [3], [0.5], True), [grid(2**-8, 8, 6), grid(2**-8, 12, 6), normals(12, 9)], 6),
        Case(shared, plain(1, 7, [4], [0.5], False, True), [normals(3, 8), normals(21, 8), normals(21, 5)], 7),
    ]


def small_self_attention_cases(ops):
    def case(trials, sequences, tokens, heads, width, width_v):
        return Case(
            lambda qkv: ops.small_self_attention(qkv, tokens, [heads], [2.0], width_v),
            lambda qkv: plain_self_attention(qkv, tokens, [heads] * trials, [2.0] * trials, width_v),
            [normals(trials, sequences * tokens, 2 * width + width_v) * 0.5],
            max(tokens, width // heads),
        )

    return [case(1, 2, 5, 2, 4, 6), case(2, 1, 1, 1, 3, 2), case(3, 9, 16, 8, 64, 64), case(1, 2, 129, 4, 12, 20)]


def small_attention_refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    return [
        (lambda: ops.small_attention(x, x, x[:4], 4, 4, [2], [1.0]), "number of sequences"),
        (lambda: ops.small_attention(x, x, x, 4, 4, [4], [1.0]), "do not divide"),
    ]


def small_self_attention_refusals(ops, device):
    x = torch.ones(8, 6, device=device)
    return [(lambda: ops.small_self_attention(x, 3, [1], [1.0], 2), "not a multiple of 3")]


OPERATORS = {
    "small_attention": (small_attention_cases, small_attention_refusals),
    "small_self_attention": (small_self_attention_cases, small_self_attention_refusals),
}
