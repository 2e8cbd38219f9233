"""What counts as a CUDA-specific site, found by a walk of its own: nothing here comes from torchport.

Not counted, since they mean the same on every device: ``non_blocking=True``, an autocast to bfloat16 for a computed
device type, DistributedDataParallel without ``device_ids``, a flag ``args.cuda``, docstrings and messages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

FAMILIES: dict[str, tuple[str, ...]] = {
    "torch.cuda": ("TP1", "TP2", "TP3", "TP4", "TP5", "TP9"),
    "backend flags": ("TP5",),
    "imports": ("TP",),
    ".cuda()": ("TP1", "TP6"),
    "is_cuda": ("TP1",),
    "device texts": ("TP",),
    "tensor types": ("TP1",),
    "amp": ("TP2",),
    "distributed": ("TP3",),
    "pinned memory": ("TP6",),
    "libraries": ("TP9",),
    "environment": ("TP5", "TP19"),
    "profiler": ("TP4",),
    "out of memory": ("TP5",),
    "options": ("TP1",),
}
"""Each family with the beginnings of the codes of rules that may speak of it from further out."""
CUDA = re.compile(r"torch\.(cuda|backends\.cuda|backends\.cudnn|version\.cuda|_C\._cuda\w*)(\.|$)|torch\._C\._cuda")
DEVICE = re.compile(r"cuda(:|:\d+|:%[ds]|:\{.*\})?")
TYPE = re.compile(r"torch\.cuda\.\w+Tensor")
VARIABLE = re.compile(
    r"CUDA_(VISIBLE_DEVICES|LAUNCH_BLOCKING|DEVICE_\w+|HOME|PATH)(=.*)?|CUBLAS_WORKSPACE_CONFIG|NCCL_[A-Z_]+(=\S*)?"
    r"|PYTORCH_CUDA_ALLOC_CONF|TORCH_CUDA_ARCH_LIST|TORCH_NCCL_\w+"
)
NCCL = re.compile(r"nccl|\w+:nccl(,.*)?|.*,\w+:nccl")
OPTION = re.compile(r"--?[\w-]*(gpu|cuda|nccl)[\w-]*", re.IGNORECASE)
MEASURE = re.compile(r"(self_)?cuda_(time|memory)(_total|_usage)?")
LIBRARIES = (
    *("triton", "flash_attn", "flash_attn_interface", "flashinfer", "xformers", "bitsandbytes", "apex", "deepspeed"),
    *("transformer_engine", "transformer_engine_torch", "cupy", "cupyx", "numba.cuda", "pycuda", "pynvml", "tensorrt"),
    *("torch_tensorrt", "torch2trt", "torch.utils.cpp_extension", "amp_C", "causal_conv1d", "mamba_ssm", "deep_ep"),
    *("deep_gemm", "cutlass", "nvshmem", "cuda.bindings", "cuda.core", "nvtx", "nvidia.dali", "flash_attn_2_cuda"),
)
AMP = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.amp.GradScaler")
DISTRIBUTED = (
    *("torch.distributed.init_process_group", "torch.nn.DataParallel", "torch.nn.parallel.DataParallel"),
    *("torch.nn.SyncBatchNorm", "torch.distributed.is_nccl_available", "torch.distributed.ProcessGroupNCCL"),
    *(
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.distributed.Backend.NCCL",
        "torch.multiprocessing.spawn",
    ),
)
METHODS = {"is_cuda": "is_cuda", "record_stream": "torch.cuda"}
PROFILER = re.compile(r"torch\.(profiler|autograd)\.(profiler\.)?(ProfilerActivity\.CUDA|emit_nvtx)")


@dataclass(frozen=True)
class Site:
    """One place, with line and column (both from 1, in characters) of its start and its end."""

    family: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def sites(module: ast.Module, data: bytes) -> Iterator[Site]:
    """All sites of one parsed file, in no order."""
    return _Walk(module, data).found()


def lines(data: bytes) -> list[bytes]:
    """The lines of a file as Python counts them, without their ends and a byte order mark."""
    return re.split(rb"\r\n|\n|\r", data.removeprefix(b"\xef\xbb\xbf"))


class _Walk:
    def __init__(self, module: ast.Module, data: bytes) -> None:
        self.lines = lines(data)
        self.module = module
        self.parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
        self.nodes = list(ast.walk(module))
        self.aliases = self._aliases()
        self.read = {n.id for n in self.nodes if isinstance(n, ast.Name)}

    def _aliases(self) -> dict[str, str]:
        """Every imported name of the file, whatever its scope, to what it stands for."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name if alias.asname else alias.name.partition(".")[0]
                    found.setdefault(alias.asname or root, root)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    origin = "." if node.level else f"{node.module}.{alias.name}"
                    found.setdefault(alias.asname or alias.name, origin)
        return found

    def found(self) -> Iterator[Site]:
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._import(node)
            elif isinstance(node, ast.Attribute | ast.Name):
                yield from self._name(node)
            elif isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._text(node, node.value)
            elif isinstance(node, ast.JoinedStr):
                text = "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
                yield from self._text(node, text)

    def _site(self, family: str, node: ast.expr | ast.stmt | ast.keyword | ast.alias) -> Site:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        text = ast.unparse(node) if not isinstance(node, ast.alias) else node.name
        start = self._place(node.lineno, node.col_offset)
        return Site(family, start, self._place(node.end_lineno, node.end_col_offset), text[:80])

    def _place(self, line: int, offset: int) -> tuple[int, int]:
        return line, len(self.lines[line - 1][:offset].decode(errors="replace")) + 1

    def _qualified(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        origin = self.aliases.get(node.id, "torch" if node.id == "torch" else "")
        return ".".join([origin, *reversed(parts)]) if origin else ""

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Site]:
        if isinstance(node, ast.ImportFrom) and node.level:
            return
        names = [(a, a.name if isinstance(node, ast.Import) else f"{node.module}.{a.name}") for a in node.names]
        if any(name == library or name.startswith(f"{library}.") for _, name in names for library in LIBRARIES):
            yield self._site("libraries", node)
            return
        for alias, name in names:
            plain = isinstance(node, ast.Import) and not alias.asname  # its uses are the sites
            if CUDA.match(name) and not plain and ((alias.asname or alias.name) not in self.read or alias.name == "*"):
                yield self._site("imports", node)

    def _name(self, node: ast.Attribute | ast.Name) -> Iterator[Site]:
        parent = self.parents[node]
        outermost = not isinstance(parent, ast.Attribute) and isinstance(node.ctx, ast.Load | ast.Store)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            return
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in METHODS:
            yield self._site(METHODS[node.attr], node)
            return
        name = self._qualified(node) if outermost else ""
        if self._sets_default(parent):
            return
        if CUDA.match(name):
            yield self._site("backend flags" if name.startswith("torch.backends") else "torch.cuda", node)
        elif any(name == known or name.startswith(f"{known}.") for known in DISTRIBUTED):
            if not self._other_backend(name, parent):
                yield self._site("distributed", node)
        elif PROFILER.match(name):
            yield self._site("profiler", node)
        elif name in ("torch.Tensor.cuda", "torch.nn.Module.cuda"):
            yield self._site(".cuda()", node)
        elif name == "torch.OutOfMemoryError":
            yield self._site("out of memory", node)

    def _sets_default(self, node: ast.AST) -> bool:
        """The shim reads a device and a dtype from the type that it is given."""
        return isinstance(node, ast.Call) and self._qualified(node.func) == "torchport.shim.set_default_tensor_type"

    def _call(self, node: ast.Call) -> Iterator[Site]:
        name = self._qualified(node.func) if isinstance(node.func, ast.Attribute | ast.Name) else ""
        if isinstance(node.func, ast.Attribute):
            if name.startswith("torchport"):
                return
            if node.func.attr == "cuda" and not name.startswith(("torch.cuda", "numba", "cupy")):
                yield self._site(".cuda()", node)
            elif node.func.attr == "pin_memory":
                yield self._site("pinned memory", node)
            elif node.func.attr in ("add_argument", "option") and self._option(node):
                yield self._site("options", node)
        if name in AMP and self._amp(node):
            yield self._site("amp", node)
        for keyword in node.keywords:
            off = isinstance(keyword.value, ast.Constant) and keyword.value.value in (False, None)
            off = off or any(self._qualified(n).startswith("torchport") for n in ast.walk(keyword.value) if _named(n))
            if keyword.arg in ("pin_memory", "pin_memory_device") and not off:
                yield self._site("pinned memory", keyword)
            elif keyword.arg == "device_ids" and not off and name not in DISTRIBUTED:  # else the call is the site
                yield self._site("distributed", keyword)
            elif keyword.arg == "use_cuda" and "profile" in name:
                yield self._site("profiler", keyword)

    @staticmethod
    def _option(node: ast.Call) -> bool:
        return any(isinstance(a, ast.Constant) and OPTION.fullmatch(str(a.value)) for a in node.args)

    def _amp(self, node: ast.Call) -> bool:
        given = {k.arg: k.value for k in node.keywords}
        device = node.args[0] if node.args else given.get("device_type", given.get("device"))
        if isinstance(device, ast.Constant):
            return str(device.value).startswith("cuda")
        enabled, dtype = given.get("enabled"), given.get("dtype")
        off = isinstance(enabled, ast.Constant) and enabled.value is False
        return not off and not (dtype is not None and self._qualified(dtype) == "torch.bfloat16")

    def _text(self, node: ast.Constant | ast.JoinedStr, text: str) -> Iterator[Site]:
        parent = self.parents[node]
        if isinstance(parent, ast.Expr | ast.JoinedStr | ast.FormattedValue):
            return
        if DEVICE.fullmatch(text) and not self._for_shim(node):
            yield self._site("device texts", node)
        elif TYPE.fullmatch(text) and not self._sets_default(parent):
            yield self._site("tensor types", node)
        elif NCCL.fullmatch(text) and not self._for_shim(node):
            yield self._site("distributed", node)
        elif VARIABLE.fullmatch(text) or text.startswith("nvidia-smi"):
            yield self._site("environment", node)
        elif MEASURE.fullmatch(text):
            yield self._site("profiler", node)
        elif "out of memory" in text and isinstance(parent, ast.Compare):
            yield self._site("out of memory", node)

    def _other_backend(self, name: str, call: ast.AST) -> bool:
        """Whether a process group names a backend that is not NCCL's, there or where its variable is assigned."""
        if not name.endswith("init_process_group") or not isinstance(call, ast.Call):
            return False
        backend = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "backend"), None)
        return backend is not None and self._is_other(backend, 3)

    def _is_other(self, backend: ast.expr, depth: int) -> bool:
        if isinstance(backend, ast.IfExp):  # a name translated: "cpu:gloo,tpu:tpu_dist" if name == "nccl" else name
            return isinstance(backend.body, ast.Constant) and "tpu_dist" in str(backend.body.value)
        if isinstance(backend, ast.Call):
            return self._qualified(backend.func).endswith("get_default_backend_for_device")
        if isinstance(backend, ast.Name) and depth:
            nodes = (n for n in self.parents if isinstance(n, ast.Assign))
            values = [n.value for n in nodes if any(ast.unparse(t) == backend.id for t in n.targets)]
            return bool(values) and all(self._is_other(value, depth - 1) for value in values)
        return isinstance(backend, ast.Constant) and isinstance(backend.value, str) and "nccl" not in backend.value

    def _for_shim(self, node: ast.AST) -> bool:
        """Whether the text is handed to a function of the shim, which knows what to do with it."""
        while not isinstance(node, ast.stmt):
            if isinstance(node, ast.Call) and self._qualified(node.func).startswith("torchport"):
                return True
            node = self.parents[node]
        return False


def _named(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name)
