"""Every port in memory: for tests, the simulator, and whoever needs a bell or a clock within one process."""

from mango.memory.blobs import MemoryBlobs
from mango.memory.clock import ManualClock
from mango.memory.doorbell import MemoryDoorbell
from mango.memory.faults import Fault, Faults
from mango.memory.ids import SeededIds
from mango.memory.orchestrator import RecordingOrchestrator, Start
from mango.memory.store import MemoryStore

__all__ = [
    "Fault",
    "Faults",
    "ManualClock",
    "MemoryBlobs",
    "MemoryDoorbell",
    "MemoryStore",
    "RecordingOrchestrator",
    "SeededIds",
    "Start",
]
