# The image in which a session's tools run. Build it with infra/docker/build-worker-image, which also works without
# access to a registry; or, where there is one, from the project's folder with
#     docker build -f infra/docker/worker.Dockerfile -t mango-self-hosted-worker:local .
ARG BASE=python:3.13-slim
FROM ${BASE}

# ripgrep and git are conveniences: without them grep is slower and the agent has no git.
RUN if ! command -v rg >/dev/null || ! command -v git >/dev/null; then \
        (apt-get update && apt-get install -y --no-install-recommends git ripgrep && rm -rf /var/lib/apt/lists/*) \
        || echo "warning: git and ripgrep could not be installed"; \
    fi

# infra/docker/wheels is made by build-worker-image; without it the index is asked.
COPY infra/docker/worker-requirements.txt infra/docker/wheels* /build/wheels/
RUN set -eu; \
    pip="python3 -m pip"; \
    for wheel in /build/wheels/pip-*.whl; do \
        if [ -e "$wheel" ]; then pip="python3 $wheel/pip"; fi; \
    done; \
    from=""; \
    for wheel in /build/wheels/*.whl; do \
        if [ -e "$wheel" ]; then from="--no-index --find-links=/build/wheels"; fi; \
    done; \
    $pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore $from \
        --target=/opt/mango-worker/lib -r /build/wheels/worker-requirements.txt; \
    rm -rf /build

# Apart from the tools' own Python: what the agent runs sees neither our packages nor our code on its path.
COPY worker/mango_worker /opt/mango-worker/lib/mango_worker
COPY infra/docker/mango-worker /usr/local/bin/mango-worker

# A fresh volume takes its owner from this directory.
RUN set -eu; \
    chmod 0755 /usr/local/bin/mango-worker; \
    python3 -m compileall -q /opt/mango-worker/lib; \
    command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python; \
    mkdir -p /workspace; \
    chown 65532:65532 /workspace; \
    chmod 0755 /workspace

ENV PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8
WORKDIR /workspace
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/mango-worker", "run"]
ARG INPUTS=unknown
LABEL io.mango.inputs=${INPUTS}
