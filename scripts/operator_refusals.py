"""What the operators of librankscope.so must refuse, for check_operators.py."""
import torch


def refusals(ops, device):
    """(operator, call, part of the sentence it is refused with)"""
    x = torch.ones(8, 6, device=device)
    W, b = torch.ones(5, 6, device=device), torch.ones(5, device=device)
    seeds = torch.zeros(2, dtype=torch.int64, device=device)
    alive = torch.ones(8, dtype=torch.int32, device=device)

    def adamw(gradient, beta2):
        state, steps = [x.clone() for _ in range(3)], torch.zeros_like(alive, dtype=torch.int64)
        ops.adamw_(state[0], gradient, *state[1:], steps, x[:, :1], alive, 0.9, beta2, 1e-8, 0.1)

    all_of_them = [
        ("small_attention", lambda: ops.small_attention(x, x, x[:4], 4, 4, [2], [1.0]), "number of sequences"),
        ("small_attention", lambda: ops.small_attention(x, x, x, 4, 4, [4], [1.0]), "do not divide"),
        ("small_self_attention", lambda: ops.small_self_attention(x, 3, [1], [1.0], 2), "not a multiple of 3"),
        (
            "projected_self_attention",
            lambda: ops.projected_self_attention(x, W, None, 4, [1], [1.0], 2),
            "5 rows of W are not Q, K and a V of 2",
        ),
        (
            "projected_self_attention",
            lambda: ops.projected_self_attention(x, W, x[0], 4, [1], [1.0], 1),
            "b must be [5]",
        ),
        ("skip_norm", lambda: ops.skip_norm(x, None, x[0], None, "batch"), "batch"),
        ("skip_norm", lambda: ops.skip_norm(x, W, x[0], None, "rms"), "shape of x"),
        ("linear", lambda: ops.linear(x, W.t(), b), "W must be [6, 6]"),
        ("linear", lambda: ops.linear(x, W.double(), b), "type"),
        ("mlp", lambda: ops.mlp(x, W, x[0], W.t(), None), "b_in must be [5]"),
        ("squared_error", lambda: ops.squared_error(x, x[:4], 1.0), "shape of answers"),
        ("unit_neighbours", lambda: ops.unit_neighbours(x, b[None]), "width of points"),
        ("unit_neighbours", lambda: ops.unit_neighbours(x, x[:0]), "at least one row"),
        ("pattern_statistics", lambda: ops.pattern_statistics(x.half()), "float32"),
        ("spectra", lambda: ops.spectra(b), "[.., rows, columns]"),
        ("normals", lambda: ops.normals(seeds, -1, seeds, 4), "32 bits"),
        ("adamw_", lambda: adamw(x[:4], 0.99), "shape of parameter"),
        ("adamw_", lambda: adamw(x, 1.0), "beta of 1 is not in [0, 1)"),
    ]
    if device.type == "cuda":
        all_of_them += [
            ("linear", lambda: ops.linear(x.double(), W.double(), None), "float64 on the CPU"),
            ("linear", lambda: ops.linear(x, W.cpu(), None), "device"),
        ]
    return all_of_them
