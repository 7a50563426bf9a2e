"""The delta rule, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals, turned


def plain_delta_attention(q, k, v, write, keep=None):
    """Token by token."""
    state, out = torch.zeros(q.shape[0], k.shape[2], v.shape[2]).to(q), []
    for t in range(q.shape[1]):
        if keep is not None:
            state = state * keep[:, t, None, None]
        u = write[:, t, None, None] * (v[:, t, None] - k[:, t, None] @ state)
        state = state + k[:, t, :, None] * u
        out.append((q[:, t, None] @ state)[:, 0])
    return torch.stack(out, 1)


def cases(ops):
    def case(sequences, tokens, width, width_v, forgets):
        def gate(shift):
            return torch.sigmoid(normals(sequences, tokens) + shift).float().double()

        def fused(q, k, v, write, *keep):
            return ops.delta_attention(turned(q), k, v, write, *keep)

        k = normals(sequences, tokens, width)
        inputs = [normals(sequences, tokens, width), (k / k.norm(dim=-1, keepdim=True)).float().double()]
        inputs += [normals(sequences, tokens, width_v), gate(0)] + ([gate(2)] if forgets else [])
        return Case(fused, plain_delta_attention, inputs, 4 * max(tokens, width))

    return [case(2, 5, 3, 4, False), case(2, 5, 3, 4, True), case(3, 130, 8, 16, True), case(2, 200, 5, 7, False)]


def refusals(ops, device):
    x = torch.ones(2, 8, 6, device=device)
    return [
        (lambda: ops.delta_attention(x, x, x[:1], x[:, :, 0]), "v must be [2, 8, width]"),
        (lambda: ops.delta_attention(x, x, x, x[:, 0]), "write must be [2, 8]"),
    ]


OPERATORS = {
    "delta_attention": (cases, refusals),
}
