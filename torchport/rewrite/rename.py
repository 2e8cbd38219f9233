"""Names: what a rule gives as data. A dotted chain is renamed where it is used, a name imported alone at its import.

What ``rename`` gives in place of a name has one of these forms:

- ``torch.accelerator.synchronize``: another name, the arguments kept; the same name, where it stays;
- ``(lambda t: t.to("xla"))``: an expression in place of the name, called or not;
- ``= bool(torch_xla.runtime.device_type())``: an expression in place of the whole call, its arguments dropped;
- ``= torch_xla.sync(); torch_xla.step()``: statements in place of a call that is one.

``drop`` lists names whose calls are taken out where they are statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.analysis.names import Qualified, canonical, line_mark
from torchport.lazy import pattern
from torchport.model import Finding, Rule
from torchport.rewrite.context import NO_SPELLING, Context, New
from torchport.rewrite.cst import TooDeep, replace_name
from torchport.rewrite.guards import chooses_cuda
from torchport.rewrite.imports import without
from torchport.rewrite.mocks import why_it_stays
from torchport.rewrite.spread import COUNT, scales_with_gpus
from torchport.rewrite.statements import block_of, removal, replacement

TORCH = pattern(r"(?<![\w.])torch\.")
PATCHED = "the program puts its own function in this place on {}; decide which of the two is meant"
WITH_THE_CALL = "it stays with the call around it"
ANNOTATION = "a type annotation: it is not run"
UNCALLED = "it is handed on without a call, and for this target the whole call is written anew"
VALUE = "its value is used, or it stands in an expression; for this target there are only statements in its place"
DROP = "="
"""What a name becomes whose calls are taken out."""
NEUTRAL = "torch.profiler."
"""What is there for every device needs no import of a back end."""
STORED = "the program replaces it; a migrated caller no longer goes through it"


class Index:
    """Qualified name to its rule and what it becomes, an empty text where it is left for a person."""

    def __init__(self) -> None:
        self.exact: dict[str, tuple[Rule, str]] = {}
        self.modules: dict[str, Rule] = {}
        self.prefixes: dict[str, Rule] = {}
        """Beginnings of names, ``torch._C._cuda``."""
        self.roots: frozenset[str] = frozenset()
        self.dropped: tuple[str, ...] = ()
        """Functions whose calls are taken out without anything in their place."""

    def find(self, name: str) -> tuple[Rule, str, int] | None:
        """The rule for ``name`` or its longest known beginning, what it becomes, and the number of parts matched."""
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            start = ".".join(parts[:count])
            if (hit := self.exact.get(start)) is not None:
                return *hit, count
            for prefix, rule in self.prefixes.items() if count == len(parts) else ():
                if name.startswith(prefix):
                    return rule, "", len(parts)
            if (found := self.modules.get(start)) is not None:
                return found, "", len(parts)
        return None


def build_index(rules: tuple[Rule, ...], target: str) -> Index:
    """All names of all rules that say what to do with them by data alone."""
    index = Index()
    for rule in rules:
        for name in rule.match:
            if name.endswith(".*"):
                index.modules[name[:-2]] = rule
            elif name.endswith("*"):
                index.prefixes[name[:-1]] = rule
            else:
                index.exact.setdefault(name, (rule, ""))
        for name in {name for table in rule.rename.values() for name in table}:
            index.exact[name] = (rule, rule.rename.get(target, {}).get(name, ""))
        for name in {name for names in rule.drop.values() for name in names}:
            new = DROP if name in rule.drop.get(target, ()) else rule.rename.get(target, {}).get(name, "")
            index.exact[name] = (rule, new)
    index.dropped = tuple(name for name, (_, new) in index.exact.items() if new == DROP)
    index.roots = frozenset(name.partition(".")[0] for name in [*index.exact, *index.modules, *index.prefixes])
    return index


def rename_uses(index: Index, context: Context) -> Iterator[Finding]:
    """Every use of a known name that no transformer has claimed."""
    context.dropped = index.dropped
    if not context.spell.portable:
        for rule, func in _in_what_stays(index, context):
            context.claimed.add(func)
            yield context.leave(rule, func, WITH_THE_CALL, effect="none")
    for name, places in context.resolved.items():
        hit = index.find(name) if name.partition(".")[0] in index.roots else None
        if hit is not None:
            yield from _uses(places, *hit, context)


def _in_what_stays(index: Index, context: Context) -> Iterator[tuple[Rule, ast.expr]]:
    """``current_device`` in ``torch.cuda.get_device_properties(torch.cuda.current_device())``, which stays whole."""
    for call in context.calls("torch.cuda.current_device"):
        around = context.tree.parents[call]
        around = context.tree.parents[around] if isinstance(around, ast.keyword) else around
        found = context.qualify(around.func) if isinstance(around, ast.Call) else None
        hit = index.find(found.name) if found is not None and found.name.startswith("torch.cuda.") else None
        own = index.find("torch.cuda.current_device")
        if hit is not None and not hit[1] and own is not None and call.func not in context.claimed:
            yield own[0], call.func


def _uses(
    places: list[tuple[ast.Name | ast.Attribute, Qualified]], rule: Rule, new: str, count: int, context: Context
) -> Iterator[Finding]:
    for node, found in places:
        if node in context.claimed:
            continue
        site: ast.expr = node
        for _ in range(found.name.count(".") + 1 - count):
            if not isinstance(site, ast.Attribute):
                break
            site = site.value
        if site in context.claimed:
            continue
        if isinstance(node, ast.Name) and shim_name(new) and _imported_alone(context, node):
            continue
        finding = _use(rule, new, node, site, found, context) if new != found.name else None
        if finding is not None:
            yield finding


def _use(rule: Rule, new: str, node: ast.expr, site: ast.expr, found: Qualified, context: Context) -> Finding | None:
    ctx = node.ctx if isinstance(node, ast.Name | ast.Attribute) else ast.Load()
    if not isinstance(ctx, ast.Load):
        return context.leave(rule, node, rule.reason if rule.effect == "none" else STORED)
    if in_annotation(context, node):
        return context.leave(rule, node, ANNOTATION, effect="none")
    if not new:
        left = context.leave(rule, node, found.doubt or rule.reason or NO_SPELLING.format(context.target))
        return left if left.effect == "none" else left._replace(support="manual")
    if new == "shim.device_context" and not (
        isinstance(up := context.tree.parents[site], ast.Call) and up.func is site
    ):
        return context.leave(rule, node, "the shim has a function in its place, so it cannot stand as a class")
    if reason := chooses_cuda(context, node):
        return context.leave(rule, node, reason)
    if found.name == "torch.cuda.device_count" and scales_with_gpus(context, node):
        return context.leave(rule, node, COUNT)
    if found.name in context.patched:
        return context.leave(rule, node, PATCHED.format(line_mark(context.patched[found.name])))
    if b"test" in context.text.bytes and (reason := why_it_stays(context, node, found.name)):
        return context.leave(rule, node, reason)
    if new.startswith(DROP):
        return _whole(rule, new.removeprefix(DROP).strip(), site, found, context)
    try:
        parent = context.tree.parents[site]
        if new.startswith("(") and isinstance(parent, ast.Call) and site in parent.args:
            new = new[1:-1]
        text = replace_name(context.source(site), _in_this_file(new, context))
    except TooDeep as error:
        return context.leave(rule, node, str(error))
    return context.rewrite(rule, site, New(site, text, accelerator=not new.startswith(NEUTRAL)), doubt=found.doubt)


def _in_this_file(new: str, context: Context) -> str:
    """``torch.`` under the name that PyTorch has in the file."""
    return TORCH.sub(f"{context.spell.torch}.", new)


def _dropped_beside(context: Context, statement: ast.stmt) -> tuple[ast.stmt, ...]:
    """Statements of the same block that go as well: a block must not be left without any."""
    return tuple(
        other
        for other in block_of(context.tree, statement)
        if isinstance(other, ast.Expr)
        and isinstance(other.value, ast.Call)
        and context.named(other.value.func, *context.dropped)
    )


def _whole(rule: Rule, new: str, site: ast.expr, found: Qualified, context: Context) -> Finding:
    """What takes the place of a whole call: an expression, statements, or nothing; its arguments are dropped."""
    call = context.tree.parents[site]
    if not (isinstance(call, ast.Call) and call.func is site):
        return context.leave(rule, site, UNCALLED)
    statement = context.tree.parents[call]
    lines = [line.strip() for line in new.split(";") if line.strip()]
    if len(lines) == 1:
        return context.rewrite(rule, call, New(call, _in_this_file(new, context)), doubt=found.doubt)
    if not isinstance(statement, ast.Expr):
        left = context.leave(rule, call, VALUE if lines or not rule.reason else rule.reason)
        return left._replace(support="manual")
    if not lines:
        edit = removal(context.tree, context.text, statement, gone=_dropped_beside(context, statement))
        return context.edited(rule, statement, [edit], doubt=found.doubt)
    fresh = [_in_this_file(line, context) for line in lines]
    needs = {module for line in fresh for module in context.spell.needs(line)}
    edits = [replacement(context.text, statement, fresh)]
    return context.edited(rule, statement, edits, "; ".join(fresh), needs=needs, doubt=found.doubt)


def in_annotation(context: Context, node: ast.AST) -> bool:
    """Whether ``node`` stands in an annotation of a variable, a parameter or a result."""
    child: ast.AST = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.AnnAssign):
            return child is parent.annotation
        if isinstance(parent, ast.arg):
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return child is parent.returns or any(
                child is arg.annotation
                for arg in (
                    *parent.args.posonlyargs,
                    *parent.args.args,
                    *parent.args.kwonlyargs,
                    parent.args.vararg,
                    parent.args.kwarg,
                )
                if arg is not None
            )
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False


def in_type_checking(context: Context, node: ast.AST) -> bool:
    """Whether ``node`` stands in ``if TYPE_CHECKING:``."""
    return any(
        isinstance(parent, ast.If) and ast.unparse(parent.test).rpartition(".")[2] == "TYPE_CHECKING"
        for parent in context.tree.ancestors(node)
    )


def shim_name(new: str) -> str:
    """The name that can be imported from the shim in place of another, or an empty text."""
    name = new.removeprefix("shim.")
    return name if name != new and name.isidentifier() else ""


def _imported_alone(context: Context, node: ast.Name) -> bool:
    """A bare name whose import statement is rewritten: its uses stay as they are."""
    scope = context.tree.scopes.get(node)
    home = scope.find(node.id) if scope else None
    if home is None:
        return False
    return any(b.kind == "import" and isinstance(b.node, ast.ImportFrom) for b in home.names[node.id])


def rename_imports(index: Index, context: Context) -> Iterator[Finding]:
    """``from torch.cuda.amp import autocast`` becomes ``from torchport.shim import autocast``."""
    for node in context.tree.imports:
        if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
            continue
        moving: list[tuple[ast.alias, str, Rule]] = []
        for alias in node.names:
            hit = index.exact.get(canonical(f"{node.module}.{alias.name}"))
            if alias.name == "*" or hit is None:
                continue
            if name := shim_name(hit[1]):
                moving.append((alias, name, hit[0]))
        if moving:
            yield _import(node, moving, context)


def _import(node: ast.ImportFrom, moving: list[tuple[ast.alias, str, Rule]], context: Context) -> Finding:
    rule = moving[0][2]
    if in_type_checking(context, node):
        return context.leave(rule, node, ANNOTATION, effect="none")
    source = context.source(node)
    fresh = ", ".join(_alias(new, alias) for alias, new, _ in moving)
    if len(moving) == len(node.names):
        if "#" in source or "(" in source:
            text = _module_only(source, node, moving)
            if text is None:
                return context.leave(
                    rule, node, "a comment or a change of name stands inside this import; rewrite it by hand"
                )
            return context.rewrite(rule, node, New(node, text, accelerator=False))  # type: ignore[arg-type]
        return context.rewrite(rule, node, New(node, f"from torchport.shim import {fresh}", accelerator=False))  # type: ignore[arg-type]
    line = context.text.line_text(node.lineno).strip()
    if "#" in source or not line.startswith(b"from") or b";" in line:
        return context.leave(
            rule, node, "only some of the names of this import move; write them on a line of their own"
        )
    indent, newline = context.text.indent(node.lineno), context.text.newline(node.lineno)
    if "\n" in source:  # the list keeps its lines
        kept = without(source, [alias for alias, _, _ in moving], newline)
    else:
        staying = ", ".join(_alias(a.name, a) for a in node.names if all(a is not m for m, _, _ in moving))
        kept = f"from {node.module} import {staying}"
    text = f"{kept}{newline}{indent}from torchport.shim import {fresh}"
    return context.rewrite(rule, node, New(node, text, accelerator=False))  # type: ignore[arg-type]


def _alias(name: str, old: ast.alias) -> str:
    """``as`` stays where it was written, also in ``import x as x``, which hands a name on."""
    used = old.asname or old.name
    return name if name == used and not old.asname else f"{name} as {used}"


def _module_only(source: str, node: ast.ImportFrom, moving: list[tuple[ast.alias, str, Rule]]) -> str | None:
    """Change the module alone, so that the shape of the brackets and the comments in them stay."""
    if any(new != alias.name for alias, new, _ in moving) or node.module is None:
        return None
    head, _, rest = source.partition("import")
    return head.replace(node.module, "torchport.shim", 1) + "import" + rest if node.module in head else None
