# docker build -t tfrctrace . && docker run --rm -v "$PWD:/data" tfrctrace flows capture.pcap
FROM rust:1-slim-bookworm AS build
RUN apt-get update && apt-get install --no-install-recommends -y python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python3 -m venv /build && /build/bin/pip install --no-cache-dir build \
    && /build/bin/python -m build --wheel --outdir /wheels /source

FROM python:3.12-slim-bookworm
LABEL org.opencontainers.image.title="tfrctrace" \
    org.opencontainers.image.description="Post-hoc trace analysis for TCP and TFRC" \
    org.opencontainers.image.licenses="Apache-2.0"
# Workflow engines watch the processes of a container with ps.
RUN apt-get update && apt-get install --no-install-recommends -y procps && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 tfrctrace
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt /wheels/*.whl && rm -r /wheels
USER tfrctrace
WORKDIR /data
ENTRYPOINT ["tfrctrace"]
CMD ["--help"]
