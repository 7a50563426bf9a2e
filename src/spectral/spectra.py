"""Spectra of a batch, for scripts/check_operators.py: plain composition, cases, what is refused."""
import torch

from operator_case import Case, normals


def plain_spectra(a):
    centered = a - a.mean(-2, keepdim=True)
    return torch.linalg.svdvals(a), torch.linalg.svdvals(centered)[..., 0]


def cases(ops):
    # Singular values near 1, 2, 3 and 4. Singular vectors, and so gradients, turn by a rounding times the largest
    # singular value over the distance to the next.
    apart = 0.1 * normals(2, 5, 4) + torch.diag(torch.arange(1.0, 6.0)).double()[:, :4]
    wide, patterns = normals(30, 12, 20), torch.softmax(3 * normals(2, 20, 50, 50), -1)
    cases = [Case(ops.spectra, plain_spectra, [apart.float().double()], 5 * 4)]
    for a in (wide, patterns.float().double()):
        cases.append(Case(ops.spectra, plain_spectra, [a], max(a.shape[-2:]), gradients=False))
    return cases


def refusals(ops, device):
    return [
        (lambda: ops.spectra(torch.ones(5, device=device)), "[.., rows, columns]"),
    ]


OPERATORS = {
    "spectra": (cases, refusals),
}
