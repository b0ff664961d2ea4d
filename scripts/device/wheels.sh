#!/usr/bin/env bash
# Makes the wheel folder that scripts/device/check.sh installs on a machine without a network.
#   scripts/device/wheels.sh [folder]        default: .whl, which git ignores
# The usual GPU image has torch, transformers, triton, numba, pyarrow, pandas and rich; what it lacks is
# Hydra, omegaconf and antlr4 (an sdist, built to a wheel here). No torch; a few MB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="${1:-.whl}"
python="${PYTHON:-python3}"
mkdir -p "$folder"
rm -f "$folder"/*.whl

"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --dest "$folder" hydra-core==1.3.8 omegaconf==2.3.1
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$folder" antlr4-python3-runtime==4.9.3
# What reads configs of others is compiled, so it is fetched for the machine's Python.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --python-version "${MACHINE_PYTHON:-3.12}" --implementation cp \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --dest "$folder" \
    pydantic==2.14.4 pydantic-core==2.50.5 annotated-types==0.8.0 typing-inspection==0.4.5

ls -l "$folder"
# What travels is what git tracks or would: caches and built things stay here.
bytes=$(git ls-files -coz --exclude-standard | xargs -0 du -cb 2>/dev/null | awk '/\ttotal$/ {s += $1} END {print s}')
size=$(((bytes + $(du -sb "$folder" | cut -f1)) / 1000000))
echo "checkout and wheels: $size MB (60 at most)"
[ "$size" -lt 60 ] || { echo "too large to travel" >&2; exit 2; }
