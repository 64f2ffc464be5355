"""The few operations that the maths of advantages needs, for numpy and for torch on the device that a tensor is on.

A `Home` is the library, float type and device of one array; whatever else a function is given is brought there.
Nothing loops over groups, and nothing that has one entry for each episode leaves the device: the host reads the range
of each kind of integer id, how many episodes are chosen, and in the end whether the input was right. That is at most
four reads of a few bytes in one call, for a batch of any size.

Sums over groups are made in float64 (float32 on a device that has none, as MPS). numpy and torch on a CPU add in the
order of the episodes and give the same bits every time. CUDA adds in whatever order its threads come, so that the last
bit of a float64 may differ between two runs; `torch.use_deterministic_algorithms(True)` makes it the same, more slowly.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any  # numpy array, torch tensor or list; None where that is the default
Host: TypeAlias = NDArray[Any]

_WORDS = {"b": "booleans", "i": "integers"}


def require(ok: Host | bool, name: str, value: Array, rule: str) -> None:
    """Raise ValueError unless all of `ok` holds; names the first entry that does not."""
    if not np.all(ok):
        at = int(np.argmin(ok))
        name, value = (f"{name}[{at}]", value[at]) if np.ndim(ok) else (name, value)
        raise ValueError(f"{name} must be {rule}, got {value}")


def is_tensor(value: Array) -> bool:
    """Whether it is a torch tensor; torch is not imported for that."""
    return hasattr(value, "detach")


class Home:
    """Library, float type and device of the last array of floats, else of the last array.

    Attributes:
        dtype: Of results.
        inner: What is computed in.
        info: `finfo` of `dtype`.
    """

    def __init__(self, *values: Array) -> None:
        floats = [value for value in values if "float" in str(getattr(value, "dtype", ""))]
        value = (floats or values)[-1]
        self._torch: Any = sys.modules["torch"] if is_tensor(value) else None
        self._pending: list[tuple[Array, str, Array, str]] = []
        self._where: dict[str, Any] = {}
        self.xp: Any = self._torch or np
        self.inner: Any = self.xp.float64
        default = np.dtype(float)
        if self._torch is not None:
            self._where = {"device": value.device}
            self.inner = self._torch.float32 if value.device.type == "mps" else self.inner
            default = self._torch.get_default_dtype()
        self._types = {"b": np.bool_ if self._torch is None else self._torch.bool, "i": self.xp.int64, "f": self.inner}
        self.dtype = value.dtype if floats else default
        self.info = self.xp.finfo(self.dtype)

    # --- reading what was given ---

    def flags(self, value: Array, name: str, n: int | None) -> Array:
        """Booleans `(n,)`; None is all True."""
        if value is None and n is not None:
            return self.xp.ones((n,), dtype=self._types["b"], **self._where)
        return self._put(self._vector(value, name, n, "b"), "b")

    def integers(self, value: Array, name: str, n: int | None) -> Array:
        """Integers `(n,)`, as int64; None is all 0."""
        if value is None and n is not None:
            return self.xp.zeros((n,), dtype=self._types["i"], **self._where)
        return self._put(self._vector(value, name, n, "iu"), "i")

    def numbers(self, value: Array, name: str, where: Array, n: int | None = None) -> Array:
        """Numbers in the inner type, finite inside `where` with 0 outside; `where` None is everywhere."""
        n = n if where is None else len(where)
        value = self.full(n, np.nan) if value is None and n is not None else value
        out = self._put(self._vector(value, name, n, "fiubO"), "f")
        if where is not None:
            out = self.xp.where(where, out, 0.0)
        self.require(self.xp.isfinite(out), name, out, "finite" if where is None else "finite for a valid member")
        return out

    def _vector(self, value: Array, name: str, n: int | None, kinds: str) -> Array:
        """`value` where it was, or as a numpy array if it is no tensor, when its shape and type are right."""
        if is_tensor(value):
            array, shape = value.detach(), tuple(value.shape)
            kind = "f" if value.is_floating_point() else "c" if value.is_complex() else "i"
            kind = "b" if str(value.dtype) == "torch.bool" else kind
        else:
            array = np.asarray(value)
            shape, kind = array.shape, array.dtype.kind
        fits = len(shape) == 1 and n in (None, shape[0])
        require(fits, f"shape of {name}", shape, f"({'n' if n is None else n},)")
        require(kind in kinds or not shape[0], name, f"dtype {array.dtype}", _WORDS.get(kinds[0], "numbers"))
        return array

    def _put(self, array: Array, kind: str) -> Array:
        """Here, as booleans, int64 or numbers of the inner type."""
        if self._torch is not None:
            if not is_tensor(array):
                single = self.inner == self._torch.float32
                plain = {"b": np.bool_, "i": np.int64, "f": np.float32 if single else np.float64}
                array = self._torch.from_numpy(np.array(array, plain[kind]))
            return array.to(dtype=self._types[kind], **self._where)
        if is_tensor(array):
            array = array.cpu()
            array = (array.double() if array.is_floating_point() else array).numpy()  # numpy has no bfloat16
        return array.astype(self._types[kind])

    # --- making and reducing ---

    def full(self, n: int, value: float) -> Array:
        """`n` times `value`, in the inner type."""
        return self.xp.full((n,), float(value), dtype=self.inner, **self._where)

    def to_inner(self, values: Array) -> Array:
        """Booleans or integers as numbers."""
        return values.astype(self.inner, copy=False) if self._torch is None else values.to(self.inner)

    def copied(self, values: Array) -> Array:
        """What was given, in the dtype of results: bit for bit where it has that already."""
        if self._torch is None:
            return np.array(values, self.dtype)
        return values.detach().to(self.dtype, copy=True)

    def places(self, mask: Array) -> Array:
        """Where it is True."""
        return np.flatnonzero(mask) if self._torch is None else self._torch.nonzero(mask).flatten()

    def sum(self, index: Array, values: Array, n: int) -> Array:
        """Sum of `values` for each of `n` places, `index` saying where each belongs."""
        if self._torch is None:
            return np.bincount(index, values, n)
        return self.full(n, 0.0).index_add_(0, index, self.to_inner(values))

    def highest(self, index: Array, values: Array, n: int) -> Array:
        """The largest for each place; 0 where none is above."""
        out = self.full(n, 0.0)
        if self._torch is None:
            np.maximum.at(out, index, self.to_inner(values))
            return out
        return out.scatter_reduce_(0, index, self.to_inner(values), "amax")

    def lowest(self, index: Array, values: Array, n: int, start: float = np.inf) -> Array:
        """The smallest for each place; `start` where none is below."""
        out = self.full(n, start)
        if self._torch is None:
            np.minimum.at(out, index, self.to_inner(values))
            return out
        return out.scatter_reduce_(0, index, self.to_inner(values), "amin")

    def seen(self, index: Array, n: int) -> Array:
        """Integer 1 at each of `n` places that `index` names, 0 at the others."""
        out = self.xp.zeros((n,), dtype=self.xp.int64, **self._where)
        if self._torch is not None:
            return out.index_fill_(0, index, 1)
        out[index] = 1
        return out

    def dense(self, values: Array) -> tuple[Array, int]:
        """Number integers from 0 in ascending order, perhaps with gaps: `(n,)`, and how many numbers there may be."""
        n = len(values)
        if not n:
            return values, 0
        low, high = self._range(values)
        if high - low >= 4 * n + 1024:
            return self._by_sorting(values)
        values, size = values - low, high - low + 1
        return (values, size) if size <= n else ((self.seen(values, size).cumsum(0) - 1)[values], n)

    def bounded(self, values: Array, size: int) -> tuple[Array, int]:
        """The same for integers that are known to be in [0, size)."""
        return (values, size) if size < 4 * len(values) + 1024 else self._by_sorting(values)

    def _range(self, values: Array) -> tuple[int, int]:
        if self._torch is None:
            return int(values.min()), int(values.max())
        low, high = self._torch.stack(self._torch.aminmax(values)).tolist()
        return low, high

    def _by_sorting(self, values: Array) -> tuple[Array, int]:
        if self._torch is None:
            return np.unique(values, return_inverse=True)[1], len(values)
        ordered, place = self._torch.sort(values)
        number = self._torch.zeros_like(values)
        number[1:] = (ordered[1:] != ordered[:-1]).cumsum(0)
        return self._torch.empty_like(values).scatter_(0, place, number), len(values)

    # --- checking, and handing out ---

    def require(self, ok: Array, name: str, value: Array, rule: str) -> None:
        """Raise ValueError unless all of `ok` holds: at once for numpy, in `settle` for torch."""
        if self._torch is None:
            require(ok, name, value, rule)
        else:
            self._pending.append((ok, name, value, rule))

    def settle(self) -> None:
        """Read, in one go, whether what was required holds.

        Raises:
            ValueError: Naming the first entry that is wrong.
        """
        if not self._pending:
            return
        good = self._torch.stack([ok.all() for ok, *_ in self._pending]).tolist()
        if not all(good):
            ok, name, value, rule = self._pending[good.index(False)]
            require(np.asarray(ok.cpu()), name, value, rule)
        self._pending.clear()

    def send(self, values: Array, name: str) -> Array:
        """Results in `dtype`, when they fit and all that was required holds."""
        if len(values):
            peak = self.xp.abs(values).max()
            rule = f"in the range of {self.dtype}"
            self.require(peak <= float(self.info.max), f"largest of {name}", peak, rule)
        self.settle()
        return values.astype(self.dtype) if self._torch is None else values.to(self.dtype)
