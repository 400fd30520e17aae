"""What a rank is told of the world that it is in."""

import json
from dataclasses import asdict, dataclass

__all__ = ["Settings"]


@dataclass
class Settings:
    rank: int
    world: int
    local_world: int  # ranks of a host
    # "any", or "neuron" or "cuda" alone: tensors there are fake, and recorded; "cpu": those of the host, which are real
    device: str
    step: int  # the one to record, from 1; 0: the first that is like those after it
    memory: int  # bytes of the device
    command: list[str]
    routing: str = ""  # "uniform": data that the job splits by is as if it were spread evenly
    address: str = ""  # of the coordinator
    key: str = ""

    def line(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of_line(line: str) -> "Settings":
        return Settings(**json.loads(line))
