"""What ``torchport run`` starts: a program that cannot be edited, with everything installed.

    python -m torchport.shim.patching.run '{"pretend_cuda": true}' SCRIPT ARGS...

The first argument holds the options, as JSON: ``pretend_cuda``, ``module`` (SCRIPT is a module, as for ``python -m``),
``log`` (a file instead of stderr), ``log_format`` ("text" or "json").
"""

from __future__ import annotations

import atexit
import builtins
import json
import os
import pathlib
import sys
import types
from dataclasses import dataclass

FAILED = 2


@dataclass(frozen=True, slots=True)
class Options:
    """How to run the program."""

    pretend_cuda: bool = False
    module: bool = False
    log: str | None = None
    log_format: str = "text"


def main(arguments: list[str]) -> None:
    """Install, run ``arguments[1]`` as ``__main__`` with the rest as its arguments, and report at exit."""
    options = Options(**json.loads(arguments[0]))
    _install(options)
    sys.argv = arguments[1:]
    if options.module:
        import runpy

        sys.path[0] = str(pathlib.Path.cwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        _run_script(sys.argv[0])


def _install(options: Options) -> None:
    from torchport import shim
    from torchport.shim.patching import installed, report

    try:
        stream = sys.stderr if options.log is None else open(options.log, "w", encoding="utf-8")  # noqa: SIM115
        as_json = options.log_format == "json"
        report.send_to(stream, as_json)
        shim.install(pretend_cuda=options.pretend_cuda)
    except (OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(FAILED)
    session = installed()
    assert session is not None
    report.head(session, stream, as_json)
    owner = os.getpid()

    def finish() -> None:
        if os.getpid() == owner:  # a forked worker has no report of its own
            report.summary(session, stream, as_json)

    atexit.register(finish)


def _run_script(path: str) -> None:
    """As ``python path``: the folder of the script is searched first, and its module is ``__main__``."""
    script = pathlib.Path(path).absolute()
    sys.path[0] = str(script.resolve().parent)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(script), __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    exec(compile(script.read_bytes(), str(script), "exec", dont_inherit=True), module.__dict__)


def _without_our_frames(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    """A traceback that begins in the program."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    sys.excepthook = _without_our_frames
    main(sys.argv[1:])
