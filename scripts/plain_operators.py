"""librankscope.so's operators as plain compositions of torch's own, which check_operators.py holds them to."""
import math

import torch


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


def plain_projected_self_attention(x, W, b, tokens, heads, scale, width_v, hard=False):
    qkv = plain_linear(x, W, b)
    stack = qkv.reshape(-1, *qkv.shape[-2:])
    return plain_self_attention(stack, tokens, heads, scale, width_v, hard).reshape(*x.shape[:-1], width_v)


def plain_norm(x, u, gain, bias, kind):
    s = x if u is None else x + u
    gain = gain.unsqueeze(-2)
    if kind == "unit":
        return s / unit_lengths(s) * gain
    if kind == "rms":
        return s / torch.sqrt((s * s).mean(-1, keepdim=True) + 1e-5) * gain
    s = s - s.mean(-1, keepdim=True)
    return s / torch.sqrt((s * s).mean(-1, keepdim=True) + 1e-5) * gain + bias.unsqueeze(-2)


def plain_linear(x, W, b):
    y = x @ W.transpose(-1, -2)
    return y if b is None else y + b.unsqueeze(-2)


def plain_mlp(x, W_in, b_in, W_out, b_out):
    return plain_linear(torch.relu(plain_linear(x, W_in, b_in)), W_out, b_out)


def plain_squared_error(answers, target, weight, stacked):
    squares = (answers - target) ** 2
    return weight * (squares.flatten(1).sum(1) if stacked else squares.sum())


def unit_lengths(x):
    return torch.sqrt((x * x).sum(-1, keepdim=True))


def plain_neighbours(points, asks, farthest):
    points = points / unit_lengths(points)
    asked = points if asks is None else asks / unit_lengths(asks)
    products = asked @ points.transpose(-1, -2)
    found = (-products if farthest else products).argmax(-1, keepdim=True)
    target = points.gather(-2, found.expand(asked.shape))
    return points, None if asks is None else asked, target


def plain_pattern(p):
    counted = torch.where(p > 0, p, torch.ones_like(p))
    return -(counted * torch.log(counted)).sum(-1), p.sum(-2)


def plain_spectra(a):
    centered = a - a.mean(-2, keepdim=True)
    return torch.linalg.svdvals(a), torch.linalg.svdvals(centered)[..., 0]


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
