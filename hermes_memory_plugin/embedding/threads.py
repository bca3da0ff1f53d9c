"""One thread for arithmetic: on a busy machine the default pools spin and a 12 ms query takes seconds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_lock = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Libraries first loaded inside use one thread, unless the user's environment says another number.

    They read the environment when they are loaded. It is put back afterwards: the host's own child
    processes must not inherit the limit.
    """
    with _lock:
        ours = [name for name in _NAMES if name not in os.environ]
        os.environ.update(dict.fromkeys(ours, "1"))
        try:
            yield
        finally:
            for name in ours:
                os.environ.pop(name, None)


def load_numpy() -> None:
    """Import NumPy, its BLAS with one thread when nobody in this process has loaded it before."""
    if "numpy" not in sys.modules:
        with one_thread():
            import numpy  # noqa: F401 - the callers import what is loaded now
