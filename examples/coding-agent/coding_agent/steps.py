"""The seven steps of the example, in their order."""

from __future__ import annotations

import asyncio

from anthropic import AsyncAnthropic

from coding_agent.artifacts import SOURCE, TESTS, Artifacts, Pair, accept, fixture, read_pair
from coding_agent.checks import choose_checker, require_baseline, require_success
from coding_agent.console import say
from coding_agent.failures import ExampleFailed
from coding_agent.observer import converse, history
from coding_agent.resources import Resources
from coding_agent.settings import Settings
from coding_agent.worker import Worker

REPAIR = (
    f"Your working directory has a Python module, {SOURCE}, and its tests, {TESTS}. First run the tests with "
    f"`python3 -B -m unittest -v` and see what fails. Then repair {SOURCE} until all tests pass; {TESTS} must stay as "
    "it is. End with a run of the tests that passes, and say in a few sentences what was wrong."
)
EXPLAIN = (
    "Another worker serves this session now; your files are where you left them. Run the same tests again, then show "
    f"the functions of {SOURCE} as they are and explain them. Change nothing."
)


class Steps:
    """One walk through the example. `worker` and `resources` are what has to be cleared away afterwards."""

    def __init__(self, settings: Settings, client: AsyncAnthropic, artifacts: Artifacts) -> None:
        self._settings, self._client, self._artifacts = settings, client, artifacts
        self._checker = choose_checker(settings)
        self._original = fixture()
        self.resources = Resources(client, artifacts)
        self.worker: Worker | None = None

    async def walk(self) -> None:
        """Raises `ExampleFailed` when the outcome is not the promised one."""
        session_id = await self._create()
        await self._stage(session_id)
        await self._baseline()
        await self._work(session_id)
        repaired = await self._verify(session_id)
        await self._publish(repaired)
        self._artifacts.save_json("events.json", await history(self._client, session_id))
        say(
            f"Verified: 4 pristine tests pass in {self._checker.place}; File upload/download bytes match.\n"
            f"Artifacts kept in {self._artifacts.folder}"
        )

    async def _create(self) -> str:
        await self._checker.prepare()
        environment_id = await self.resources.create_environment()
        self.worker = Worker(self._settings, environment_id, self._artifacts)
        await self.resources.create_agent(self._settings.model_id)
        session_id = await self.resources.create_session()
        say(f"Session: {session_id}")
        return session_id

    async def _stage(self, session_id: str) -> None:
        """Input goes the way it would go in earnest: into Files, and from there into the worker's workspace."""
        source = await self.resources.transfer(SOURCE, self._original.source)
        tests = await self.resources.transfer(TESTS, self._original.tests)
        workspace = self._artifacts.workspace(session_id)
        self._artifacts.stage(workspace.name, Pair(source, tests))

    async def _baseline(self) -> None:
        ended = await self._checker.run(self._artifacts.stage("before", self._original))
        self._artifacts.save("before-tests.txt", ended.output.encode())
        require_baseline(ended)
        say("Baseline: 4 tests, 3 failures.")

    async def _work(self, session_id: str) -> None:
        assert self.worker is not None
        await self._turn(self.worker, session_id, REPAIR)
        say("Worker stopped; starting a replacement for the same Session...")
        await self._turn(self.worker, session_id, EXPLAIN)

    async def _turn(self, worker: Worker, session_id: str, text: str) -> None:
        """One message and all that follows from it, under a supervisor of its own."""
        await worker.start()
        turn = asyncio.create_task(converse(self._client, session_id, text))
        watch = asyncio.create_task(worker.ended())
        try:
            await asyncio.wait({turn, watch}, return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                raise ExampleFailed(watch.result())
            turn.result()
        finally:
            turn.cancel()
            watch.cancel()
            await asyncio.wait({turn, watch})
        await worker.stop()

    async def _verify(self, session_id: str) -> bytes:
        """Nothing that the agent left behind takes part but the module itself."""
        repaired = accept(self._original, read_pair(self._artifacts.workspace(session_id)))
        ended = await self._checker.run(self._artifacts.stage("after", Pair(repaired, self._original.tests)))
        self._artifacts.save("after-tests.txt", ended.output.encode())
        say(ended.output.rstrip())
        require_success(ended)
        return repaired

    async def _publish(self, repaired: bytes) -> None:
        downloaded = await self.resources.transfer("invoice-fixed.py", repaired)
        self._artifacts.save("invoice-fixed.py", downloaded)
