#!/usr/bin/env bash
# Everything that only a GPU can show, in one command of at most 8 minutes on a bare machine.
#   scripts/device/check.sh [--out FOLDER] [--wheels FOLDER] [--small] [--device cpu]
# Needs python3 with torch and transformers; Hydra and the like come from the wheel folder that
# scripts/device/wheels.sh made. No network, no .git. --small --device cpu rehearses it on a CPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
wheels=.whl
out="${OUT:-results/device}"
pass=()
while [ $# -gt 0 ]; do
    case "$1" in
        --wheels) wheels="$2"; shift 2 ;;
        --out) out="$2"; shift 2 ;;
        *) pass+=("$1"); shift ;;
    esac
done
python="${PYTHON:-python3}"
site="$(mktemp -d)"
trap 'rm -rf "$site"' EXIT
if compgen -G "$wheels/*.whl" >/dev/null; then
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir \
        --disable-pip-version-check --upgrade --target "$site" "$wheels"/*.whl
fi
export PYTHONPATH="$PWD:$site${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$out"
"$python" scripts/device/check.py --out "$out" "${pass[@]}" 2>&1 | tee "$out/device_check.log"
exit "${PIPESTATUS[0]}"
