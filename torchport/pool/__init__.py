"""Run a function over many tasks in processes of its own, so that a task that kills its process costs only itself."""

from __future__ import annotations

from torchport.pool.run import PoolError, run_tasks
from torchport.pool.start import StartMethod
from torchport.pool.work import Failure

__all__ = ["Failure", "PoolError", "StartMethod", "run_tasks"]
