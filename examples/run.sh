#!/usr/bin/env bash
# Migrate a copy of train_cuda.py and train it on whatever is here: an NVIDIA GPU, a TPU, or a plain CPU.
# Needs torch and torchport in the environment of $PYTHON. Arguments are handed to the program.
set -euo pipefail
python=${PYTHON:-python}
here=$(dirname "$0")

mkdir -p "$here/migrated"
cp "$here/train_cuda.py" "$here/migrated/"
"$python" -m torchport migrate --allow-dirty "$here/migrated/train_cuda.py"
"$python" "$here/migrated/train_cuda.py" --output "$here/migrated/net.pt" "$@"
