"""`doctor.run`: what the service finds out about the machine it runs on."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping

from a40console.config import lenient_settings
from a40console.model.codec import encode
from a40console.paths import Paths
from a40console.service.tasks import Handler


def doctor_handler(paths: Paths) -> Handler:
    """What carries the command out; it answers with each check's JSON by its number.

    Names are not keys: two programs of vLLM have a check of the same name each.
    """

    async def run(arguments: Mapping[str, str]) -> dict[str, str]:
        # Imported when it is asked for: the checks know installers and models, which take memory.
        from a40console.operations.doctor import examine

        # The file's settings, which may be newer than those that the service runs with.
        settings, problems = lenient_settings(paths.config_file)
        checks = await asyncio.to_thread(examine, paths, settings, os.environ, problems=problems)
        return {f"{number:03d}": json.dumps(encode(each)) for number, each in enumerate(checks)}

    return run
