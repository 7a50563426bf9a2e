"""What the check of an operator (a .py beside its .cpp) is made of."""
from dataclasses import dataclass
from typing import Callable, List

import torch


@dataclass
class Case:
    fused: Callable
    plain: Callable
    inputs: List[torch.Tensor]  # float64, of numbers that float32 holds
    terms: int  # of the longest sum, gradients included
    gradients: bool = True
    gradcheck: bool = True


def normals(*shape):
    return torch.randn(*shape).double()


def grid(step, *shape):
    """Normals on a grid so coarse that float32 and TF32 compute short sums of products exactly: then no
    precision sees another largest score or another sign than float64 does."""
    return torch.round(torch.randn(*shape).double() / step) * step


def turned(x):
    """The same numbers, with columns side by side."""
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def unit_lengths(x):
    return torch.sqrt((x * x).sum(-1, keepdim=True))
