"""What a container may do at a `mango up` with the development key: it reaches the server, and nothing by that key."""

from __future__ import annotations

import json
from pathlib import Path

import docker
import pytest

from tests.support.deployment import KEY, Deployment

pytestmark = pytest.mark.docker

ASK = """
import json, sys, urllib.error, urllib.request
answers = []
for path, key in (("/healthz", ""), ("/v1/agents", sys.argv[2]), ("/v1/agents", "sess_mango_unknown")):
    try:
        request = urllib.request.Request(sys.argv[1] + path, headers={"x-api-key": key} if key else {})
        answers.append(urllib.request.urlopen(request, timeout=10).status)
    except urllib.error.HTTPError as error:
        answers.append([error.code, json.load(error)["error"]["type"]])
print(json.dumps(answers))
"""


def test_the_development_key_opens_nothing_from_a_container(
    engine: docker.DockerClient, image: str, tmp_path: Path
) -> None:
    with Deployment(tmp_path / "data") as running:
        said = engine.containers.run(
            image,
            ["-c", ASK, f"http://host.docker.internal:{running.port}", KEY],
            entrypoint="python3",
            extra_hosts={"host.docker.internal": "host-gateway"},
            remove=True,
        )
    assert json.loads(said) == [200, [403, "permission_error"], [401, "authentication_error"]]
