"""The real torch_tpu, computing on the CPU through an XLA:CPU PJRT plug-in: no TPU, no stand-in for torch_tpu.

As a launcher it runs an unmodified script as ``__main__``: ``python tests/support/tpu_on_cpu.py script.py args...``
As a module: call ``bring_up()`` before torch is imported.

Needs ``torch-tpu`` and one of two plug-ins: ``lammps-jax-pjrt-cpu`` (preferred: it also takes torch.compile) or
``xla-cpu-pjrt``. ``TPU_LIBRARY_PATH`` names another. Neither can do what only a TPU can: the Mosaic kernels of
scaled_dot_product_attention with gradients (so the MATH kernel is chosen here), the cumsum family (it aborts the
process), page-locked memory, memory statistics, more than one device.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import runpy
import sys
import sysconfig
import warnings

_PLUGINS = ("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so")
_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",  # else a query of the cloud's metadata server stalls for minutes
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "NPROC": "16",  # threads of the plug-in; with two, computations that wait for each other can take both and hang
}
_EXACT = "--xla_cpu_use_xnnpack=false"  # XNNPACK keeps the weights of its first call: later gradients use stale ones
# PJRT_Api is a header of 40 bytes and then function pointers; PJRT_Client_Create is the eleventh
_CLIENT_CREATE = 40 + 10 * ctypes.sizeof(ctypes.c_void_p)
_OPTIONS, _NUMBER_OF_OPTIONS = 16, 24  # offsets in PJRT_Client_Create_Args
_INT64 = 1

_alive: list[object] = []


class _NamedValue(ctypes.Structure):
    """PJRT_NamedValue with an integer."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("value", ctypes.c_int64),
        ("value_size", ctypes.c_size_t),
    )


def find_plugin() -> pathlib.Path:
    """The PJRT plug-in to use. Raises FileNotFoundError where none is installed."""
    given = os.environ.get("TPU_LIBRARY_PATH")
    candidates = [pathlib.Path(given)] if given else []
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}:
        candidates += [pathlib.Path(site, name) for name in _PLUGINS]
    candidates.sort(key=lambda path: _PLUGINS[-1].endswith(path.name))
    for path in candidates:
        if path.is_file():
            return path
    raise FileNotFoundError("no XLA:CPU PJRT plug-in: pip install lammps-jax-pjrt-cpu==0.11.2 (or xla-cpu-pjrt==0.0.1)")


def bring_up() -> None:
    """Make ``torch.device("tpu")`` work in this process, with one device. Call it before torch is imported."""
    if "torch" in sys.modules:
        raise RuntimeError("bring_up() must run before torch is imported")
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    plugin = find_plugin()
    os.environ["TPU_LIBRARY_PATH"] = str(plugin)
    if plugin.name == "xla_cpu_pjrt.so" and "xnnpack" not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_EXACT}".strip()
    _ask_for_one_device(plugin)
    warnings.filterwarnings("ignore", message="<TorchTpu/")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a test run that turns warnings into errors must get this far
        import torch
        from torch_tpu import _loader
        from torch_tpu._internal.utils import hardware

    hardware.get_tpu_device_count = lambda: 1  # the PCI bus shows none
    _loader._init_device("tpu")
    torch._C._set_sdp_use_flash(False)
    torch._C._set_sdp_use_overrideable(False)


def _ask_for_one_device(plugin: pathlib.Path) -> None:
    """Replace the options of a TPU client, which the plug-in rejects, by ``cpu_device_count=1``."""
    library = ctypes.CDLL(str(plugin), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    library.GetPjrtApi.restype = ctypes.c_void_p
    slot = ctypes.c_void_p.from_address(library.GetPjrtApi() + _CLIENT_CREATE)
    function_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    original = function_type(slot.value)
    name = b"cpu_device_count"
    option = _NamedValue(ctypes.sizeof(_NamedValue), None, name, len(name), _INT64, 1, 1)

    def create(arguments: int) -> int | None:
        ctypes.c_void_p.from_address(arguments + _OPTIONS).value = ctypes.addressof(option)
        ctypes.c_size_t.from_address(arguments + _NUMBER_OF_OPTIONS).value = 1
        result: int | None = original(arguments)
        return result

    replacement = function_type(create)
    _alive.extend([library, original, option, replacement])
    slot.value = ctypes.cast(replacement, ctypes.c_void_p).value


def main(arguments: list[str]) -> None:
    """Run ``arguments[0]`` as ``__main__``, with the other arguments as its own."""
    if not arguments:
        sys.exit("usage: python tpu_on_cpu.py script.py [argument ...]")
    bring_up()
    sys.argv = arguments
    sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
