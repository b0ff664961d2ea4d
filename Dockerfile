# The GPU check in a container: what only a GPU can show, in 8 minutes at most.
#   docker build -t specfit-check .
#   docker run --rm --gpus all --ulimit memlock=-1 \
#       -v "$PWD/results/device:/specfit/results/device" specfit-check
# --ulimit memlock=-1: a container limits page-locked memory, and the driver may then refuse to lock the
# expert weights. The check would go on with bounced copies, which are slower and not what is asked for.
# Any image with Python 3.11 or 3.12, torch with CUDA, and a C compiler (Triton needs one) will do:
#   docker build --build-arg BASE=<image> -t specfit-check .
ARG BASE=pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel
FROM ${BASE}

WORKDIR /specfit
COPY pyproject.toml setup.py README.md LICENSE constraints.txt ./
COPY conf conf
COPY specfit specfit
# torch and triton are the image's own, so their pins do not apply; what else a run needs is pinned.
RUN grep -viE '^(torch|triton|nvidia)' constraints.txt > /tmp/pins.txt \
    && python -m pip install --no-cache-dir -c /tmp/pins.txt '.[run]'
COPY scripts scripts

ENTRYPOINT ["scripts/device/check.sh"]
