"""What a transformer is given: the file's facts, and the one way to make a finding."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

from torchport.analysis.names import Qualified, qualify
from torchport.analysis.parameters import Signatures
from torchport.analysis.project import ProjectFacts
from torchport.analysis.scopes import Tree
from torchport.lazy import NamedTuple, pattern
from torchport.model import Edit, Effect, Finding, Review, Rule, Target
from torchport.rewrite.comments import comments
from torchport.rewrite.cst import TooDeep
from torchport.rewrite.spelling import SHIM, Spelling
from torchport.rewrite.text import Text, minimal

T = TypeVar("T")
Transformer = Callable[[Rule, "Context"], Iterator[Finding]]
SHOWN = 100
UNPROVED = "it cannot be proved from this file; --unsafe rewrites it all the same"
NO_SPELLING = "there is no spelling of it for the target {} alone; the target portable has one"
OWN_SHIM = pattern(r"(?<![\w.])shim\.")


class New(NamedTuple):
    """What a node becomes. ``accelerator`` says that the text speaks of it, and so may need an import."""

    node: ast.expr | ast.pattern
    text: str
    accelerator: bool = True


class Context:
    """One file during one pass. Read-only for transformers, but for ``claimed``."""

    def __init__(
        self,
        tree: Tree,
        text: Text,
        target: Target,
        unsafe: bool,
        shim: str,
        project: ProjectFacts,
        original: Tree,
        path: str = "",
        draft: bool = False,
    ) -> None:
        self.tree, self.text, self.target, self.unsafe, self.project = tree, text, target, unsafe, project
        self.shim = shim
        """What the shim is called in this file: ``shim`` unless the file uses that name for something else."""
        self.original = original
        """The file as it was before the first pass: what it knows by itself, not by this run."""
        self.path = path
        self.draft = draft
        """Only the places are asked for: what LibCST would make of them is not written out."""
        self.claimed: set[ast.AST] = set()
        """Names that a transformer rewrites or reports together with what is around them."""
        self.dropped: tuple[str, ...] = ()
        """Functions whose calls are taken out."""
        self._found: dict[Callable[[Context], object], Any] = {}

    def once(self, find: Callable[[Context], T]) -> T:
        """What ``find`` finds in this file: it is run once in each pass, however many ask."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found

    @cached_property
    def signatures(self) -> Signatures:
        """The parameters of the functions of the file."""
        return Signatures(self.tree)

    @cached_property
    def spell(self) -> Spelling:
        """How the target's words are written in this file."""
        names = [
            name
            for name, bindings in self.tree.scope.names.items()
            if any(binding.kind == "import" and binding.target == "torch" for binding in bindings)
        ]
        return Spelling(self.target, names[0] if names and "torch" not in names else "torch")

    def qualify(self, node: ast.expr) -> Qualified | None:
        """The qualified name of a dotted chain, or None."""
        return qualify(self.tree, node)

    def named(self, node: ast.AST, *names: str) -> bool:
        """Whether ``node`` certainly stands for one of ``names``."""
        if node.__class__ is not ast.Name and node.__class__ is not ast.Attribute:
            return False
        found = qualify(self.tree, node)
        return found is not None and not found.doubt and found.name in names

    @cached_property
    def resolved(self) -> dict[str, list[tuple[ast.Name | ast.Attribute, Qualified]]]:
        """Every dotted chain and name that has a qualified name, by that name, in order of the source."""
        found: dict[str, list[tuple[ast.Name | ast.Attribute, Qualified]]] = {}
        chains = self.tree.chains()
        known = [node for base in sorted({*self.tree.imported, "torch"}) for node in chains.get(base, ())]
        known.sort(key=attrgetter("lineno", "col_offset"))
        for node in known:
            if (qualified := qualify(self.tree, node)) is not None:
                found.setdefault(qualified.name, []).append((node, qualified))
        return found

    def uses(self, *names: str) -> Iterator[tuple[ast.Name | ast.Attribute, Qualified]]:
        """Places where one of ``names`` is read, and what is known of it."""
        resolved = self.resolved
        for name in [name for name in names if name in resolved]:
            for node, qualified in resolved[name]:
                if isinstance(node.ctx, ast.Load):
                    yield node, qualified

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Calls of functions of these qualified names."""
        for node, _ in self.uses(*names):
            parent = self.tree.parents[node]
            if isinstance(parent, ast.Call) and parent.func is node:
                yield parent

    def methods(self, *names: str) -> Iterator[tuple[ast.Call, ast.Attribute]]:
        """Calls of methods of these names on a value, not on a module or a class that is imported."""
        for call in self.tree.called().get(names[0], ()) if len(names) == 1 else self.tree.calls:
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in names and self.qualify(func) is None:
                yield call, func

    @cached_property
    def stored(self) -> frozenset[str]:
        """Names of attributes that the file assigns: they are its own, whatever they are called."""
        return frozenset(a.attr for a in self.tree.attributes if isinstance(a.ctx, ast.Store))

    @cached_property
    def patched(self) -> dict[str, int]:
        """Qualified names that the file replaces by its own, with the line."""
        found = {}
        for node in self.tree.names:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and (name := self.qualify(node)):
                found[name.name] = node.lineno
        return found

    def source(self, node: ast.expr | ast.stmt | ast.pattern) -> str:
        """The text of ``node`` as it stands."""
        return self.text.of(node)

    def leave(self, rule: Rule, node: ast.expr | ast.stmt, reason: str, *, effect: Effect | None = None) -> Finding:
        """A finding that is left for a person."""
        return self._finding(rule, self.text.span(node), reason=reason, effect=effect)

    def at(self, rule: Rule, start: int, end: int, reason: str) -> Finding:
        """A finding that is left for a person, at bytes that are no node: a comment."""
        return self._finding(rule, (start, end), reason=reason)

    def rewrite(
        self,
        rule: Rule,
        node: ast.expr | ast.stmt,
        *news: New,
        group: str = "",
        review: Review | None = None,
        certain: bool = True,
        doubt: str = "",
    ) -> Finding:
        """A finding with edits. Left for a person where it rests on a heuristic and ``--unsafe`` is not given."""
        if (not certain or rule.safety == "unsafe" or doubt) and not self.unsafe:
            return self.leave(rule, node, doubt or UNPROVED)
        edits: list[Edit] = []
        texts: list[str] = []
        for new in news:
            text = new.text
            if not self.spell.portable and len(OWN_SHIM.findall(text)) > len(OWN_SHIM.findall(self.source(new.node))):
                return self.leave(rule, node, rule.reason or NO_SPELLING.format(self.target))._replace(support="manual")
            if self.shim != "shim" and new.accelerator:
                if OWN_SHIM.search(self.source(new.node)):
                    return self.leave(rule, node, "the file uses the name 'shim' itself, here as well")
                text = OWN_SHIM.sub(f"{self.shim}.", text)
            if loses_comment(self.source(new.node), text):
                return self.leave(
                    rule,
                    node,
                    "a comment stands inside it, at a place that would go; move the comment or rewrite by hand",
                )
            start, end = self.text.span(new.node)
            if text[0].isidentifier() and self.text.bytes[max(start - 1, 0) : start].isalnum():
                text = f" {text}"  # `return"cuda"` needs no blank before its text, a name does
            edits += minimal(self.text, start, end, text)
            texts.append(text)
        needs = {module for new in news if new.accelerator for module in self.spell.needs(new.text)}
        return self.edited(rule, node, edits, ", ".join(texts), needs=needs, group=group, review=review)

    def edited(
        self,
        rule: Rule,
        node: ast.expr | ast.stmt,
        edits: Iterable[Edit],
        new: str = "",
        *,
        needs: Iterable[str] = (),
        group: str = "",
        review: Review | None = None,
        doubt: str = "",
    ) -> Finding:
        """A finding with edits of any kind; left for a person where a module that they need has no name here."""
        if (doubt or rule.safety == "unsafe") and not self.unsafe:
            return self.leave(rule, node, doubt or UNPROVED)
        wanted = tuple(sorted(needs))
        if taken := next((module for module in wanted if not self._importable(module, node)), ""):
            name = taken.partition(".")[0]
            return self.leave(rule, node, f"the file uses the name {name!r} for something else; rename one of the two")
        return self._finding(
            rule, self.text.span(node), new=new, edits=tuple(edits), needs=wanted, group=group, review=review
        )

    def _importable(self, module: str, node: ast.AST) -> bool:
        """Whether the name of ``module`` stands for it where ``node`` is, or for nothing yet."""
        name = module.partition(".")[0]
        if module == SHIM:
            return True  # it is imported under another name then
        inner = next((n for n in (node, *ast.walk(node), *self.tree.ancestors(node)) if n in self.tree.scopes), None)
        scope = self.tree.scopes[inner] if inner is not None else self.tree.scope
        home = scope.find(name)
        bindings = home.names[name] if home is not None else []
        return all(b.kind == "import" and b.target.partition(".")[0] == name for b in bindings)

    def change(
        self,
        rule: Rule,
        node: ast.expr,
        make: Callable[[], str],
        *,
        accelerator: bool = True,
        certain: bool = True,
        doubt: str = "",
    ) -> Finding:
        """A finding whose new text LibCST makes; one too deep for it is left for a person."""
        if (doubt or not certain) and not self.unsafe:
            return self.rewrite(rule, node, certain=certain, doubt=doubt)
        try:
            text = self.source(node) if self.draft else make()
        except TooDeep as error:
            return self.leave(rule, node, str(error))
        return self.rewrite(rule, node, New(node, text, accelerator))

    def _finding(
        self,
        rule: Rule,
        span: tuple[int, int],
        *,
        new: str = "",
        edits: tuple[Edit, ...] = (),
        needs: tuple[str, ...] = (),
        group: str = "",
        reason: str = "",
        effect: Effect | None = None,
        review: Review | None = None,
    ) -> Finding:
        start, end = span
        line, column = self.text.position(start)
        end_line, end_column = self.text.position(end)
        return Finding(
            code=rule.code,
            name=rule.name,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            message=rule.summary,
            effect=effect or rule.effect,
            support=rule.support[self.target],
            safety=rule.safety,
            review=review or rule.review,
            old=shorten(self.text.bytes[start:end].decode(errors="replace")),
            new=shorten(new),
            edits=edits,
            needs=needs,
            group=group,
            reason=self.spell.advice(reason),
            start=start,
            end=end,
        )


def loses_comment(old: str, new: str) -> bool:
    """Whether a comment inside ``old`` is not in ``new``."""
    return "#" in old and comments(f"({old})") != comments(f"({new})")


def shorten(text: str) -> str:
    """One line, not too long for a report."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."
