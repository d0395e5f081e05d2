"""Products of all pairs of columns at once, in squares small enough that no linear-algebra library starts threads for them.

A mixture of K products with probabilities P (K x all values of all columns) has the pair tables P'P / K. Multiplied as a whole, these
matrices are large enough for OpenBLAS to share each of hundreds of small products among all processors; the threads then wait for one
another, and waiting is processor time as well. It leaves products of up to 2^18 multiplications to one thread. A setting of the library
would do as well, but it would affect the whole process.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Singles: TypeAlias = npt.NDArray[np.float32]

PRODUCT_MAX = 1 << 18
"""Multiplications of one product. OpenBLAS shares larger ones among threads."""


class Tiles:
    """``values`` values side by side, cut into squares; ``components`` rows of probabilities over them."""

    __slots__ = ("components", "count", "values", "width")

    def __init__(self, values: int, components: int) -> None:
        self.values, self.components = values, components
        self.width = max(1, min(values, int((PRODUCT_MAX / components) ** 0.5)))
        self.count = -(-values // self.width)

    def squares(self, matrix: npt.NDArray[np.float64]) -> list[Singles]:
        """The upper triangle of a matrix (values x values): for each row of squares those from the diagonal on. The rest is not kept."""
        side = self.count * self.width
        whole = np.zeros((side, side), dtype=np.float32)
        whole[: self.values, : self.values] = matrix
        cut = whole.reshape(self.count, self.width, self.count, self.width).transpose(0, 2, 1, 3)
        return [np.ascontiguousarray(cut[row, row:]) for row in range(self.count)]

    def cut(self, rows: Singles) -> Singles:
        """Rows (components x values) as a stack of squares' sides: (count, components, width)."""
        wide = np.zeros((self.components, self.count * self.width), dtype=np.float32)
        wide[:, : self.values] = rows
        return np.ascontiguousarray(wide.reshape(self.components, self.count, self.width).transpose(1, 0, 2))

    def joined(self, stack: Singles) -> Singles:
        """The inverse of :meth:`cut`."""
        return stack.transpose(1, 0, 2).reshape(self.components, -1)[:, : self.values]

    def gradient(self, rows: Singles, wanted: list[Singles], weights: list[Singles], *, with_loss: bool) -> tuple[float, Singles]:
        """Of the loss sum(weights * (rows' rows / components - wanted)^2): its value, if asked for, and its gradient by ``rows``.

        The gradient is without its factor 2 / components.
        """
        stack = self.cut(rows)
        # A separate array, also because multiplying an array by itself uses another routine, with another limit.
        across = np.ascontiguousarray(stack.transpose(0, 2, 1)) / np.float32(self.components)
        gradient = np.zeros_like(stack)
        loss = 0.0
        for row in range(self.count):
            difference = np.matmul(across[row], stack[row:])
            difference -= wanted[row]
            pull = difference * weights[row]
            if with_loss:
                loss += float(np.sum(difference * pull, dtype=np.float64))
            gradient[row:] += np.matmul(stack[row], pull)
            gradient[row] += np.matmul(stack[row:], pull.transpose(0, 2, 1)).sum(axis=0)
        return loss, self.joined(gradient)
