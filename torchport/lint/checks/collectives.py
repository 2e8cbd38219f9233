"""Which calls of a file wait for the other processes, and which tests are true in some processes alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property

from torchport.analysis.names import chain
from torchport.analysis.ranks import FIRST, asks_for_several, is_rank
from torchport.analysis.reaching import LOOPS
from torchport.analysis.scopes import FUNCTIONS
from torchport.lazy import words
from torchport.lint.checks.facts import facts
from torchport.rewrite.context import Context

DIST = "torch.distributed."
OF_TORCH = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list",
    "gather", "gather_object", "monitored_barrier", "new_group", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "checkpoint.save", "checkpoint.load",
)  # fmt: skip
XLA = "torch_xla.core.xla_model."
OF_XLA = ("all_gather", "all_reduce", "all_to_all", "do_on_ordinals", "mesh_reduce", "optimizer_step",
          "reduce_gradients", "reduce_scatter", "rendezvous")  # fmt: skip
NAMES = (*(DIST + name for name in OF_TORCH), *(XLA + name for name in OF_XLA))
METHODS = ("wait_for_everyone", "gather_for_metrics")
"""Of an Accelerator; no other class has them."""
DDP = ("torch.nn.parallel.DistributedDataParallel", "torch.distributed.fsdp.FullyShardedDataParallel")
SEVERAL = words(r"distributed|initialized|world|ddp|dist\.|num_(gpu|proc)")
"""In a test that asks whether there are several processes at all."""


class Collectives:
    """The collectives of one file."""

    def __init__(self, context: Context) -> None:
        self.context, self.tree = context, context.tree
        self.flow = facts(context).flow

    @cached_property
    def direct(self) -> list[ast.Call]:
        """Calls of a collective."""
        named = facts(self.context).named(*METHODS)
        return [*self.context.calls(*NAMES), *(call for call in named if isinstance(call.func, ast.Attribute))]

    @cached_property
    def steps(self) -> list[ast.Call]:
        """Backward passes, in a file whose model averages its gradients over the processes in each."""
        wrapped = any(True for _ in self.context.calls(*DDP))
        named = facts(self.context).named("backward") if wrapped else ()
        return [call for call in named if isinstance(call.func, ast.Attribute)]

    @cached_property
    def whole(self) -> list[ast.Call]:
        """Calls that wait for all processes, and calls of what does: not those that are given a group."""
        direct = [call for call in self.direct if not self._has_group(call)]
        return self._with_callers(direct, lambda call: self.guard(call) is None)

    @cached_property
    def every(self) -> list[ast.Call]:
        """Calls that wait for other processes, and calls of what does."""
        return self._with_callers([*self.direct, *self.steps])

    @cached_property
    def functions(self) -> set[ast.AST | None]:
        """The functions of the file that wait for other processes somewhere."""
        return {self.tree.function(call) for call in self.every}

    def _with_callers(
        self, calls: Iterable[ast.Call], wanted: Callable[[ast.Call], bool] = lambda _: True
    ) -> list[ast.Call]:
        """The calls, and those of the functions that hold a wanted one."""
        waiting = list(calls)
        found: dict[ast.Call, None] = {}
        seen: set[ast.AST | None] = set()
        while waiting:
            call = waiting.pop()
            found[call] = None
            function = self.tree.function(call)
            if function is not None and function not in seen and wanted(call):
                seen.add(function)
                waiting += self.flow.callers.get(function, ())
        return sorted(found, key=lambda c: (c.lineno, c.col_offset))

    def _has_group(self, call: ast.Call) -> bool:
        """Whether a collective is told which processes take part: the test around it may name the same ones."""
        given = [*call.args, *(k.value for k in call.keywords if k.arg in ("group", "process_group", "groups"))]
        named = any(k.arg in ("group", "process_group", "groups") for k in call.keywords)
        return named or any("group" in (chain(a) or [""])[-1].lower() for a in given)

    def loops(self) -> dict[ast.AST, list[ast.Call]]:
        """The loops in whose turns processes wait for each other, with the calls that do."""
        found: dict[ast.AST, list[ast.Call]] = {}
        for call in self.every:
            for parent in self.tree.ancestors(call):
                if isinstance(parent, (*FUNCTIONS, ast.Lambda)):
                    break
                if isinstance(parent, LOOPS):
                    found.setdefault(parent, []).append(call)
        return found

    def guard(self, node: ast.AST) -> ast.If | None:
        """The ``if rank == 0:`` around ``node`` within its function."""
        for parent in self.tree.ancestors(node):
            if isinstance(parent, FUNCTIONS):
                return None
            if isinstance(parent, ast.If) and node is not parent.test and self.names_rank(parent.test):
                return parent
        return None

    def names_rank(self, test: ast.expr, deep: bool = True) -> bool:
        """Whether a test is true in some processes and false in others, by their numbers."""
        match test:
            case ast.BoolOp():
                others = [value for value in test.values if not self.names_rank(value, deep)]
                if isinstance(test.op, ast.Or) and not all(SEVERAL.search(ast.unparse(v)) for v in others):
                    return False
                return len(others) < len(test.values)
            case ast.UnaryOp(op=ast.Not()):
                return self.names_rank(test.operand, deep)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if any(map(is_rank, (left, right))):
                    return not asks_for_several(op, left, right)
                return False
            case ast.Call(func=func):
                return bool(FIRST.search((chain(func) or [""])[-1]))
            case ast.Attribute():
                return bool(FIRST.search(test.attr))
            case ast.Name():
                if FIRST.search(test.id):
                    return True
                made = self.flow.made_by(test) if deep else []
                return len(made) == 1 and self.names_rank(made[0], deep=False)
        return False
