"""What is reported in files of settings and launchers, for whom, and what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.lint.linter import Linter
from torchport.model import TARGETS, Finding, Rule, Target
from torchport.rewrite import Migrator

Read = Callable[..., list[Finding]]


@pytest.fixture
def read(migrators: dict[Target, Migrator]) -> Read:
    def run(text: str, path: str = "train.yaml", target: Target = "portable") -> list[Finding]:
        return migrators[target].read(path, text).left

    return run


@pytest.fixture(scope="session")
def linter(rules: tuple[Rule, ...]) -> Linter:
    return Linter(rules, "portable")


INNOCENT = (
    ("train.yaml", "device: cpu\ndevice_count: 2\nname: cuda\npath: /data/cuda/train\nurl: https://x.org/cuda:0/a\n"),
    ("train.yaml", "# device: cuda, backend: nccl, fp16: true\n"),
    ("train.yaml", "about: |\n  device: cuda\n  CUDA_VISIBLE_DEVICES=0 torchrun\ntitle: how to use device cuda\n"),
    (
        "train.yaml",
        "fp16: false\nhalf: 0.5\nprecision: 32\ndtype: bfloat16\namp: true\nprecision: 16\nfp16_init_scale: 4\n",
    ),
    (
        "train.yaml",
        "no_fp16: true\nbackend: gloo\nbackend: matplotlib\naccelerator: tpu\ndevices: auto\nenabled: true\n",
    ),
    ("train.yaml", "tests: [moe_cudagraph, gpt_4gpu]\nimage: nvidia\nkeywords: [gpu]\nos: linux\n"),
    ("data.json", '{"category": "gpu", "text": "device: cuda", "cuda": {"driver": "intel"}}'),
    ("pyproject.toml", '[project]\nname = "x-cuda"\nkeywords = ["gpu", "nvidia"]\ndescription = "runs on cuda"\n'),
    ("setup.cfg", "[flake8]\nignore = E1\n# device = cuda\n"),
    ("run.sh", "# python train.py --device cuda\necho 'python train.py --device cuda'\npython train.py --device cpu\n"),
    ("run.sh", "cd /cuda && ls nccl; grep nvidia-smi x; command -v nvidia-smi; source cuda.sh\n"),
    (
        "run.sh",
        "case $1 in\n  --fp16) shift ;;\n  --half|--cuda) shift ;;\nesac\nusage() { cat <<EOF\n--device cuda\nEOF\n}\n",
    ),
    ("run.sh", "python train.py --fp16 false --fp16=0 --half-life 3 --cuda-graph x --mixed_precision bf16\n"),
    ("run.sh", "cmake -DCUDA=1 . && make cuda && ./bench --backend matplotlib --runtime nvidia-smi-like\n"),
    ("requirements.txt", "# torch==2.1.0+cu118\ntorch==2.9.1\ntorch-triton-x\nmy-flash-attn\napex==1\n-r gpu.txt\n"),
    ("requirements.txt", "--index-url https://x.org/whl/cpu\ntorch==2.9.1+cpu\n"),
    ("run.sh", "apt-get install -y triton; npm install apex; make install flash-attn; pip uninstall -y flash-attn\n"),
    ("pyproject.toml", '[project]\nname = "flash-attn"\ndependencies = ["torch"]\nkeywords = ["mamba-ssm"]\n'),
    ("environment.yml", "name: cudatoolkit\nchannels: [nvidia, flash-attn]\ndependencies: [python, pytorch]\n"),
    ("Dockerfile", "FROM python:3.11 AS cuda12\nLABEL a=b\n"),
    ("Makefile", "cuda: cuda.o\n\techo --device cuda\n"),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("path", "text"), INNOCENT)
def test_nothing_is_reported(path: str, text: str, target: Target, read: Read) -> None:
    assert [f for f in read(text, path, target) if f.left_for_a_person] == []


FOUND = (
    ("train.yaml", "device: cuda\n", "TP118", "cuda", "error"),
    ("train.yaml", "trainer:\n  devices: [cuda:0]\n", "TP118", "cuda:0", "error"),
    ("train.yaml", "teacher: cuda:1\n", "TP118", "cuda:1", "error"),
    ("train.yaml", "map_location: GPU\n# gpu\n", "TP118", "GPU", "error"),
    ("train.yaml", "accelerator: gpu\n", "TP118", "gpu", "error"),
    ("train.yaml", "distributed_type: MULTI_GPU\n", "TP118", "MULTI_GPU", "error"),
    ("train.json", '{"a": {"map_location": "cuda:0"}}', "TP118", "cuda:0", "error"),
    ("train.toml", '[a]\ndevice = "cuda"\n', "TP118", "cuda", "error"),
    ("train.ini", "[a]\ndevice = cuda\n", "TP118", "cuda", "error"),
    ("run.sh", "python train.py --device cuda:0\n", "TP118", "--device cuda:0", "error"),
    ("run.sh", "python train.py --eval-device=cuda\n", "TP118", "--eval-device=cuda", "error"),
    ("run.sh", "python train.py model.device=cuda\n", "TP118", "model.device=cuda", "error"),
    ("train.yaml", "device: ${oc.env:DEVICE,cuda}\n", "TP118", "${oc.env:DEVICE,cuda}", "error"),
    ("run.sh", "for d in cuda:0; do python train.py --device $d; done\n", "TP118", "cuda:0", "error"),
    ("run.sh", "singularity exec --nv x.sif python train.py\n", "TP119", "--nv x.sif", "error"),
    ("run.sh", "DEVICE=${DEVICE:-cuda}\n", "TP118", "DEVICE=${DEVICE:-cuda}", "error"),
    ("Dockerfile", 'CMD ["python", "train.py", "--device", "cuda"]\n', "TP118", '--device", "cuda', "error"),
    ("Makefile", "DEVICE := cuda\n", "TP118", "DEVICE := cuda", "error"),
    ("run.sh", "docker run --gpus all image\n", "TP119", "--gpus all", "error"),
    ("run.sbatch", "#SBATCH --gres=gpu:2\n", "TP119", "--gres=gpu:2", "error"),
    ("run.sh", "srun --gpus-per-task=1 python train.py\n", "TP119", "--gpus-per-task=1", "error"),
    ("pod.yaml", "limits:\n  nvidia.com/gpu: 2\n", "TP119", "2", "error"),
    ("docker-compose.yml", "runtime: nvidia\n", "TP119", "nvidia", "error"),
    ("docker-compose.yml", "devices:\n- driver: nvidia\n", "TP119", "nvidia", "error"),
    ("train.yaml", "gpus: 8\n", "TP120", "8", "none"),
    ("train.yaml", "use_cuda: true\n", "TP120", "true", "none"),
    ("run.sh", "python train.py --num-gpus $N\n", "TP120", "--num-gpus $N", "none"),
    ("train.yaml", "fp16: true\n", "TP209", "true", "error"),
    ("train.yaml", "common:\n  memory_efficient_fp16: True\n", "TP209", "True", "error"),
    ("config.json", '{"train": {"fp16_run": true}}', "TP209", "true", "none"),
    ("train.yaml", "trainer:\n  precision: 16-mixed\n", "TP209", "16-mixed", "error"),
    ("train.yaml", "trainer:\n  precision: 16\n", "TP209", "16", "error"),
    ("train.yaml", "mixed_precision: fp16\n", "TP209", "fp16", "error"),
    ("train.yaml", "torch_dtype: torch.float16\n", "TP209", "torch.float16", "error"),
    ("ds.json", '{"fp16": {"enabled": "auto", "loss_scale": 0}}', "TP209", "auto", "error"),
    ("run.sh", "python train.py --fp16 data/\n", "TP209", "--fp16 data/", "error"),
    ("run.sh", "python train.py --half\n", "TP209", "--half", "error"),
    ("train.yaml", "dist: {backend: nccl}\n", "TP318", "nccl", "none"),
    ("train.yaml", "dist_backend: 'cpu:gloo,cuda:nccl'\n", "TP318", "cpu:gloo,cuda:nccl", "none"),
    ("run.sh", "python train.py --dist-backend=nccl\n", "TP318", "--dist-backend=nccl", "none"),
    ("run.sh", "CUDA_VISIBLE_DEVICES=0,1 python train.py\n", "TP522", "CUDA_VISIBLE_DEVICES=0,1", "silent"),
    ("run.sh", "export NCCL_DEBUG=INFO\n", "TP522", "NCCL_DEBUG=INFO", "none"),
    ("pod.yaml", "env:\n  - name: CUDA_VISIBLE_DEVICES\n    value: '0'\n", "TP522", "CUDA_VISIBLE_DEVICES", "silent"),
    ("docker-compose.yml", "environment:\n  - CUDA_VISIBLE_DEVICES=0\n", "TP522", "CUDA_VISIBLE_DEVICES=0", "silent"),
    ("train.yaml", "env: {PYTORCH_CUDA_ALLOC_CONF: 'a:b'}\n", "TP522", "a:b", "none"),
    ("Dockerfile", "ENV TORCH_CUDA_ARCH_LIST 8.0\n", "TP522", "TORCH_CUDA_ARCH_LIST 8.0", "none"),
    ("run.sh", "N=$(nvidia-smi -L | wc -l)\n", "TP902", "nvidia-smi", "error"),
    ("run.sh", "deepspeed --num_gpus 8 train.py\n", "TP917", "deepspeed", "error"),
    ("run.sh", "python train.py --deepspeed ds.json\n", "TP917", "--deepspeed ds.json", "error"),
    ("ds.json", '{"zero_optimization": {"stage": 3}}', "TP917", "3", "error"),
    ("requirements.txt", "torch==2.1.0+cu118  # gpu\n", "TP904", "torch==2.1.0+cu118", "error"),
    (
        "requirements.txt",
        "--index-url=https://x.org/whl/cu121\n",
        "TP904",
        "--index-url=https://x.org/whl/cu121",
        "error",
    ),
    (
        "environment.yml",
        "dependencies:\n  - pytorch::pytorch-cuda=11.8\n",
        "TP904",
        "pytorch::pytorch-cuda=11.8",
        "error",
    ),
    ("requirements.txt", "nvidia_cublas_cu12==12.1\n", "TP904", "nvidia_cublas_cu12==12.1", "none"),
    (
        "pyproject.toml",
        '[[tool.uv.index]]\nurl = "https://x.org/whl/cu128"\n',
        "TP904",
        "https://x.org/whl/cu128",
        "error",
    ),
    ("Dockerfile", "FROM --platform=x nvidia/cuda:12.1 AS base\n", "TP905", "nvidia/cuda:12.1", "none"),
    (
        "compose.yaml",
        "image: pytorch/pytorch:2.8.0-cuda12.8-runtime\n",
        "TP905",
        "pytorch/pytorch:2.8.0-cuda12.8-runtime",
        "none",
    ),
    ("pyproject.toml", '[project]\ndependencies = ["mamba-ssm>=2"]\n', "TP901", "mamba-ssm>=2", "error"),
    ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["triton"]\n', "TP911", "triton", "none"),
    ("Dockerfile", "RUN cd x && pip install -U 'flash-attn==2.5' a\n", "TP913", "flash-attn==2.5", "error"),
    ("pyproject.toml", '[tool.poetry.dependencies]\nflash-attn = "^2"\n', "TP913", "^2", "error"),
    ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    xformers\n", "TP914", "xformers", "none"),
    ("environment.yml", "dependencies:\n- pip:\n  - bitsandbytes\n", "TP915", "bitsandbytes", "none"),
    (
        "requirements.txt",
        "git+https://github.com/NVIDIA/apex.git@a1\n",
        "TP916",
        "git+https://github.com/NVIDIA/apex.git@a1",
        "error",
    ),
    ("requirements.txt", "transformer_engine[pytorch]\n", "TP918", "transformer_engine[pytorch]", "error"),
    ("run.sh", "conda install -y cupy\n", "TP919", "cupy", "none"),
    ("run.sh", "uv add tensorrt\n", "TP920", "tensorrt", "none"),
    ("requirements-gpu.txt", "nvidia-ml-py\n", "TP921", "nvidia-ml-py", "none"),
    ("train.sh", "horovodrun -np 4 python train.py\n", "TP922", "horovodrun", "error"),
    ("requirements.txt", "torchrec\n", "TP923", "torchrec", "none"),
    ("requirements.txt", "torch-scatter\n", "TP925", "torch-scatter", "none"),
    ("requirements.txt", "colossalai\n", "TP926", "colossalai", "none"),
    ("job.yaml", "command: accelerate launch train.py\n", "TP316", "launch", "none"),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("path", "text", "code", "old", "effect"), FOUND)
def test_a_site_is_reported_with_its_place(
    path: str, text: str, code: str, old: str, effect: str, target: Target, read: Read, linter: Linter
) -> None:
    (finding,) = [f for f in read(text, path, target) if f.code == code]
    assert (finding.old, finding.effect) == (old, effect)
    line = text.splitlines()[finding.line - 1]
    assert line[finding.column - 1 : finding.end_column - 1] == old
    assert finding.reason
    assert not finding.edits
    assert code in {f.code for f in linter.finder.read(path, text).left}


def test_every_rule_that_reads_settings_has_a_case(rules: tuple[Rule, ...]) -> None:
    assert {code for _, _, code, _, _ in FOUND} == {rule.code for rule in rules if rule.settings}


@pytest.mark.parametrize(("target", "effect"), [("portable", "none"), ("xla", "none"), ("tpu", "error")])
def test_torchrun_needs_variables_for_torchtpu(target: Target, effect: str, read: Read) -> None:
    (finding,) = read("srun torchrun --nproc_per_node=8 train.py\n", "run.sh", target)
    assert (finding.code, finding.old, finding.effect) == ("TP316", "torchrun", effect)
    assert ("torch.tpu.distributed" in finding.reason) == (target == "tpu")


@pytest.mark.parametrize(("target", "word"), [("portable", "shim.device("), ("xla", "write xla"), ("tpu", "write tpu")])
def test_the_reason_says_what_to_write(target: Target, word: str, read: Read) -> None:
    (finding,) = read("device: cuda\n", "train.yaml", target)
    assert word in finding.reason


@pytest.mark.parametrize("path", [".github/workflows/ci.yml", "a/.gitlab-ci.yml", ".circleci/config.yml"])
def test_what_checks_the_project_is_a_note(path: str, read: Read) -> None:
    (finding,) = read("run: python train.py --device cuda\n", path)
    assert (finding.code, finding.effect) == ("TP118", "none")
    assert not finding.left_for_a_person
    assert "checks of the project" in finding.reason


def test_columns_count_characters(read: Read) -> None:
    (finding,) = read("é: {ü: ö, device: cuda}\r\n")
    assert (finding.line, finding.column, finding.end_column) == (1, 19, 23)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.yaml", "device: cuda  # torchport: ignore[TP118] for GPUs alone\n"),
        ("a.yaml", "# torchport: ignore[device-in-settings] for GPUs alone\n\n# more\ndevice: cuda\n"),
        ("a.toml", '# torchport: skip-file for GPUs alone\n[a]\ndevice = "cuda"\n'),
        ("a.sh", "# torchport: ignore[TP1] for GPUs alone\npython t.py \\\n  --x \\\n  --device cuda\n"),
    ],
)
def test_a_comment_silences(path: str, text: str, linter: Linter) -> None:
    outcome = linter.finder.read(path, text)
    assert (outcome.left, outcome.silenced) == ([], 1)


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# torchport: ignore[TP101] no such finding", ["TP001", "TP118"]),
        ("# torchport: ignore[TP118]", ["TP002"]),
        ("# torchport: ignor[TP118] a typing error", ["TP003", "TP118"]),
    ],
)
def test_a_comment_that_is_wrong_is_reported(comment: str, codes: list[str], linter: Linter) -> None:
    text = f"a: b\ndevice: cuda  {comment}\n"
    found = linter.finder.read("a.yaml", text).left
    assert sorted(f.code for f in found) == codes
    assert all(f.line == 2 for f in found)


def test_rules_that_nobody_asked_for_say_nothing(rules: tuple[Rule, ...]) -> None:
    chosen = tuple(rule for rule in rules if rule.code == "TP120")
    outcome = Linter(chosen, "portable", every=rules).finder.read(
        "a.sh", "docker run --gpus all a\npython t.py --gpus 2\n"
    )
    assert [(f.code, f.line) for f in outcome.left] == [("TP120", 2)]
