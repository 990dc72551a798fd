"""The one watch of an API server process, where vLLM loads the two entry points apart."""

from __future__ import annotations

from .watch import Watch  # noqa: TID252 - the folder is installed under another name

WATCH = Watch()
