"""Regular expressions that are compiled when they are first used: a run over one file uses few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub")


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What ``re.compile`` returns, by its methods; what is wrong in ``text`` shows at the first use.

    Raises re.error, at the first use, where ``text`` is no regular expression.
    """
    return cast("re.Pattern[AnyStr]", _Later(text, flags))


class _Later:
    """Has no methods until one is asked for; from then on they are those of the compiled pattern itself."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        for method in METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(self, name)
