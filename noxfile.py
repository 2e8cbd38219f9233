"""Environments and checks. ``nox`` runs all of them, ``nox -s core`` one, ``nox -R -s core`` again without installing.

The environments in ``.nox/`` take about 15 GB on Linux, nearly all of it for ``xla`` and ``tpu``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True

PYPROJECT = nox.project.load_toml("pyproject.toml")
TEST = nox.project.dependency_groups(PYPROJECT, "test")
LINT = nox.project.dependency_groups(PYPROJECT, "lint")

NEED_TORCH = ("tests/shim", "tests/targets", "tests/programs", "tests/docs/test_example.py")
"""Run once on each back end; everything else in tests/ runs without torch."""
CHECKED = ("torchport", "tests", "benchmarks", "docs", "noxfile.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and types."""
    session.install(*LINT, "click", "libcst")
    session.run("ruff", "check", *CHECKED)
    session.run("ruff", "format", "--check", *CHECKED)
    session.run("mypy")


@nox.session
def core(session: nox.Session) -> None:
    """The engine and the command line, where there is no torch."""
    session.install("--editable", ".", *TEST)
    test_without_torch(session)


@nox.session
def lowest(session: nox.Session) -> None:
    """As ``core``, with the oldest releases that the dependencies allow."""
    requirements = [requirement.replace(">=", "==") for requirement in PYPROJECT["project"]["dependencies"]]
    session.install("--editable", ".", *TEST, *requirements)
    test_without_torch(session)


@nox.session
def xla(session: nox.Session) -> None:
    """The shim and migrated programs on PyTorch/XLA, and on plain CPU."""
    install_with_torch(session, "torch==2.9.1", "torch_xla==2.9.0")
    for backend in ("cpu", "xla"):
        test_on(session, backend, PJRT_DEVICE="CPU")


@nox.session
def tpu(session: nox.Session) -> None:
    """The shim and migrated programs on TorchTPU, whose device is here a CPU behind a PJRT plug-in."""
    install_with_torch(session, "torch==2.13.0", "torch-tpu==0.2.0", "xla-cpu-pjrt==0.0.1")
    test_on(session, "tpu")


@nox.session
def build(session: nox.Session) -> None:
    """The source distribution and the wheel that comes of it, installed where nothing else is."""
    folder = Path(session.create_tmp()).resolve() / "dist"
    session.install("build")
    session.run("python", "-m", "build", "--outdir", str(folder))
    wheel = newest(folder, "*.whl")
    session.run("python", "-m", "pip", "uninstall", "--yes", "--quiet", "torchport")
    session.install("--force-reinstall", wheel)
    example = str(Path("examples/train_cuda.py").resolve())
    with session.chdir(folder):
        session.run("python", "-c", "import torchport; assert 'site-packages' in torchport.__file__")
        session.run("torchport", "--version")
        session.run("torchport", "rules", silent=True)
        session.run("torchport", "migrate", "--check", example, success_codes=[1])


@nox.session
def hooks(session: nox.Session) -> None:
    """The hooks for pre-commit with the real one, as a user's repository has them: the last commit is what runs."""
    session.install("pre-commit")
    folder = Path(session.create_tmp()).resolve() / "hooks"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "tests/support/try_hooks.py", str(folder / "user"))


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Bring the pages in docs/rules/ up to date."""
    session.install("--editable", ".")
    session.run("python", "docs/build.py", *session.posargs)


def install_with_torch(session: nox.Session, torch: str, *backend: str) -> None:
    """Install torch first and alone: a back end that is resolved together with it may pull in another torch."""
    session.install(torch)
    session.install(torch, *backend, "numpy")
    session.install("--editable", ".", *TEST)


def test_on(session: nox.Session, backend: str, **environment: str) -> None:
    """Run the tests that need torch with one back end selected."""
    session.run("pytest", *NEED_TORCH, *session.posargs, env={"TORCHPORT_TEST_BACKEND": backend, **environment})


def test_without_torch(session: nox.Session) -> None:
    """Run the tests that need no torch, and make sure that none is there."""
    assert_lacks(session, "torch")
    session.run("pytest", *(f"--ignore={path}" for path in NEED_TORCH), *session.posargs)


def assert_lacks(session: nox.Session, module: str) -> None:
    """Fail where ``module`` can be imported."""
    session.run("python", "-c", f"import importlib.util as util, sys; sys.exit(util.find_spec({module!r}) is not None)")


def newest(folder: Path, pattern: str) -> str:
    """The last built file of that name."""
    return str(max(folder.glob(pattern), key=os.path.getmtime))
