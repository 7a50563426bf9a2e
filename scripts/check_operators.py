#!/usr/bin/env python3
"""Calls every operator of librankscope.so from Python and holds it to a plain composition in float64.

    python3 scripts/check_operators.py build/librankscope.so [--device cuda]

Needs nothing but the torch the library was built against. One line an operator: how far its float32 results
and gradients are from the composition's, as a part of the largest number of each tensor; whether
torch.autograd.gradcheck agrees in float64 on the CPU; and what it says to input that does not fit. Exits
with 1 where something is off, or where an operator has no case. docs/OPERATORS.md describes the operators.

How far they may be: a sum of n terms is off by up to n roundings of 2^-23. FACTOR is for what that leaves
out: stages one behind the other (scores, softmax, sum over the keys, and the way back), and sums whose terms
partly cancel. Under TF32 each factor of a product is rounded to 2^-10 before its terms are summed in float32,
so that part does not grow with n.
"""
import argparse
import importlib
import math
import os
import pathlib
import sys

import torch

sys.dont_write_bytecode = True  # the tree stays as it is
TREE = pathlib.Path(__file__).resolve().parent.parent
ROOMS = [TREE / "src" / room for room in ("ops", "spectral")]
sys.path += [str(room) for room in ROOMS]

FACTOR = 4
FLOAT32, TF32 = 2.0**-23, 2.0**-10
GRADCHECK_NUMBERS = 500  # gradcheck moves each number of the input twice
# A file beside each operator's: {name: (its cases, what it refuses)}.
OPERATORS = {}
for file in sorted(file for room in ROOMS for file in room.glob("*.py")):
    OPERATORS.update(importlib.import_module(file.stem).OPERATORS)
WIDTH = max(len(name) for name in OPERATORS)


def as_list(results):
    return [r for r in (results if isinstance(results, (tuple, list)) else [results]) if r is not None]


def weights_for(y):
    """Fixed numbers to weigh a result with, the same for every precision."""
    return torch.randn(y.shape, generator=torch.Generator().manual_seed(4)).to(y)


def gradients_of(function, inputs):
    leaves = [x.detach().clone().requires_grad_(True) for x in inputs]
    results = as_list(function(*leaves))
    total = sum((y * weights_for(y)).sum() for y in results)
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return results, [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]


def distance(found, exact):
    """The largest one over pairs of tensors, as a part of the largest number of each exact one."""
    if [y.shape for y in found] != [y.shape for y in exact]:
        return math.nan
    parts = []
    for ours, theirs in zip(found, exact):
        apart = (ours.detach().cpu().double() - theirs.detach()).abs().max().item()
        size = theirs.detach().abs().max().item()
        parts.append(apart / size if size > 0 else apart)
    return max(parts, key=lambda part: math.inf if math.isnan(part) else part)


class Report:
    def __init__(self):
        self.failures = []

    def hold(self, name, what, value, limit):
        if not value <= limit:  # NaN included
            self.failures.append(f"{name}: {what} off by {value:.1e} of the largest number, {limit:.1e} allowed")

    def fail(self, name, what):
        self.failures.append(f"{name}: {what}")


def check_values(name, case, device, products, report):
    """The largest distances of results and of gradients; the latter None where there are none."""
    limit = FACTOR * (products + case.terms * FLOAT32)
    inputs = [x.to(device=device, dtype=torch.float32) for x in case.inputs]
    with torch.no_grad():  # what no gradient is wanted of may take another way
        exact = as_list(case.plain(*case.inputs))
        results = as_list(case.fused(*inputs))
    slope = None
    if case.gradients:
        beside, found = gradients_of(case.fused, inputs)
        results, exact = results + beside, exact + exact
        slope = distance(found, gradients_of(case.plain, case.inputs)[1])
        report.hold(name, "gradients are", slope, limit)
    value = distance(results, exact)
    report.hold(name, "results are", value, limit)
    return value, slope


def check_gradients(name, case, report):
    leaves = [x.detach().clone().requires_grad_(True) for x in case.inputs]
    try:
        torch.autograd.gradcheck(case.fused, tuple(leaves))
    except RuntimeError as error:  # GradcheckError is one
        report.fail(name, f"gradcheck: {error}")
        return False
    return True


def check_refusals(name, refused, report):
    """The first sentence, for the table."""
    first = None
    for call, part in refused:
        try:
            call()
            report.fail(name, f'took what it should refuse with "{part}"')
        except Exception as error:  # whatever Python makes of the library's own
            sentence = str(error).split("\n")[0]
            if part not in sentence:
                report.fail(name, f'should refuse with "{part}", but says "{sentence}"')
            first = first or sentence
    if first is None:
        report.fail(name, "refused nothing")
    return first


def check_operator(name, ops, device, report):
    torch.manual_seed(1)
    values, slopes, checked = [], [], []
    for case in OPERATORS[name][0](ops):
        value, slope = check_values(name, case, device, 0.0, report)
        values.append(value)
        if slope is None:
            continue
        slopes.append(slope)
        if case.gradcheck and sum(x.numel() for x in case.inputs) <= GRADCHECK_NUMBERS:
            checked.append(check_gradients(name, case, report))
    if slopes and not checked:
        report.fail(name, "no case is small enough for gradcheck")
    line = f"{name:<{WIDTH}} value {max(values):.0e}"
    if slopes:
        line += f"  gradients {max(slopes):.0e}  gradcheck {'ok' if all(checked) else 'FAILED'}"
    else:
        line += f"  {'no gradients':<29}"
    return f"{line}  refuses: {check_refusals(name, OPERATORS[name][1](ops, device), report)}"


def check_tf32(name, ops, device, report):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    try:
        pairs = [check_values(f"{name} (TF32)", case, device, TF32, report) for case in OPERATORS[name][0](ops)]
    finally:
        torch.set_float32_matmul_precision("highest")
    slopes = [slope for _, slope in pairs if slope is not None]
    value = max(value for value, _ in pairs)
    return f"{name:<{WIDTH}} value {value:.0e}  gradients {max(slopes):.0e}  under TF32"


def without_case():
    """Operators that are registered and not checked here; none where this torch does not list operators."""
    space = "rankscope::"
    names = [schema.name for schema in getattr(torch._C, "_jit_get_all_schemas", list)()]
    return sorted({name[len(space) :] for name in names if name.startswith(space)} - set(OPERATORS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="librankscope.so, built against this torch")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    if not os.path.isfile(options.library):
        parser.error(f"there is no {options.library}")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("this torch has no CUDA device")
    try:
        torch.ops.load_library(options.library)
    except OSError as error:
        sys.exit(f"error: {error}\n  try  make build TORCH=pip, which builds the library against this torch")

    device, report, ops = torch.device(options.device), Report(), torch.ops.rankscope
    print(f"torch {torch.__version__}, {device.type}, float32 beside float64")
    for name in OPERATORS:
        if not hasattr(ops, name):
            report.fail(name, "is not registered")
            continue
        try:
            print(check_operator(name, ops, device, report), flush=True)
        except Exception as error:
            report.fail(name, f"{type(error).__name__}: {error}")
    if device.type == "cuda":
        for name in ("linear", "mlp", "projected_self_attention"):
            print(check_tf32(name, ops, device, report), flush=True)
    for name in without_case():
        report.fail(name, "is registered but has no case")
    for failure in report.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
