"""How many draft tokens a pass proposes, changed while the engine runs: ``--worker-extension-cls``.

vLLM mixes the class into its worker, in the process that holds the model, and calls it between two
passes. The module needs the standard library only.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

PROVEN = {"NgramProposer": "ngram"}
"""Proposers whose drafts are plain lists of tokens, by the name of vLLM's class: shorter drafts, or
none, are what they give by themselves wherever they find no match."""

SAMPLED = "sampled_token_ids"
"""The parameter of ``propose`` that has one entry for each sequence of the batch."""

_ATTRIBUTE = "_a40console_depth"

_logger = logging.getLogger("vllm.plugins.a40console")


class DepthWorker:
    """What vLLM's worker gains: it tells its depth of speculation, and changes it.

    Both return plain values, as they cross to another process, and raise nothing.
    """

    model_runner: Any

    def a40console_depth(self) -> dict[str, Any]:
        """The depth in force, the deepest there is, and why it cannot be changed, if so."""
        try:
            return _depth_of(self.model_runner).told()
        except Exception as error:  # noqa: BLE001 - an error of ours must not stop the engine
            return _untold(f"the worker could not be asked: {error!r}")

    def a40console_set_depth(self, tokens: int) -> dict[str, Any]:
        """Proposes at most so many tokens from the next pass on; 0 for none.

        Beside the state it tells the depth before, so that one call between two passes is enough.
        """
        try:
            depth = _depth_of(self.model_runner)
            before = depth.tokens
            depth.turn(tokens)
            return {"before": before, **depth.told()}
        except Exception as error:  # noqa: BLE001 - an error of ours must not stop the engine
            return _untold(f"the worker could not be told: {error!r}")


class Depth:
    """Stands before one proposer's ``propose`` and keeps its drafts short.

    Anything that it does not expect puts the proposer back as it was and is told from then on:
    the engine goes on as it was started.
    """

    def __init__(self, drafter: Any) -> None:
        self.why_not = missing_parts(drafter)
        """Why the depth cannot be changed; empty where it can."""
        self.drafter = drafter
        self._kind = type(drafter).__name__
        self.deepest = _count(getattr(drafter, "k", None))
        self.tokens = self.deepest
        self._propose: Callable[..., Any] = getattr(drafter, "propose", _no_propose)
        self._position = 0
        if not self.why_not:
            self._position = list(inspect.signature(self._propose).parameters).index(SAMPLED)

    def turn(self, tokens: int) -> None:
        """Sets the depth, as far as it can be set at all."""
        if self.why_not or not 0 <= tokens <= self.deepest:
            return
        self.tokens = tokens
        if tokens == self.deepest:
            self._step_back()
        else:
            self.drafter.propose = self._shortened

    def told(self) -> dict[str, Any]:
        """The state as the console reads it."""
        return {
            "depth": self.tokens,
            "deepest": self.deepest,
            "method": PROVEN.get(self._kind, self._kind),
            "why_not": self.why_not or None,
        }

    def _shortened(self, *args: Any, **kwargs: Any) -> Any:
        """What the engine calls instead of ``propose`` while the depth is less than the deepest."""
        drafts = None
        try:
            if self.tokens == 0:
                sequences = kwargs[SAMPLED] if SAMPLED in kwargs else args[self._position]
                return [[] for _ in sequences]
            drafts = self._propose(*args, **kwargs)
            return _cut(drafts, self.tokens)
        except Exception as error:  # noqa: BLE001 - an error of ours must not stop the engine
            self._give_up(error)
        return self._propose(*args, **kwargs) if drafts is None else drafts

    def _give_up(self, error: Exception) -> None:
        self.why_not = f"speculation surprised us and runs as it was started: {error!r}"
        self.tokens = self.deepest
        _logger.warning("a40console: %s", self.why_not)
        self._step_back()

    def _step_back(self) -> None:
        # The class's own method is found again once nothing of ours hides it.
        if vars(self.drafter).get("propose") == self._shortened:
            del self.drafter.propose


def missing_parts(drafter: Any) -> str:
    """Why a proposer's depth cannot be changed; empty where it can."""
    kind = type(drafter).__name__
    if drafter is None:
        return "the engine was started without speculation, or keeps its proposer elsewhere"
    if kind not in PROVEN:
        return f"the drafts of {kind} were not proven to take another depth while it runs"
    if "propose" in vars(drafter):
        return "another plugin has taken the proposer over"
    propose = getattr(drafter, "propose", None)
    if not callable(propose) or SAMPLED not in inspect.signature(propose).parameters:
        return f"this vLLM's {kind} lacks propose({SAMPLED})"
    if not _count(getattr(drafter, "k", None)):
        return f"this vLLM's {kind} does not tell its depth"
    return ""


def _depth_of(runner: Any) -> Depth:
    """The runner's depth, made at the first call and kept as long as its proposer."""
    depth, drafter = getattr(runner, _ATTRIBUTE, None), getattr(runner, "drafter", None)
    if not isinstance(depth, Depth) or depth.drafter is not drafter:
        depth = Depth(drafter)
        setattr(runner, _ATTRIBUTE, depth)
    return depth


def _cut(drafts: Any, tokens: int) -> list[list[int]]:
    if not isinstance(drafts, list) or not all(isinstance(draft, list) for draft in drafts):
        raise TypeError(f"drafts are no lists of tokens but {type(drafts).__name__}")
    return [draft[:tokens] for draft in drafts]


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _untold(why: str) -> dict[str, Any]:
    return {"depth": None, "deepest": 0, "method": None, "why_not": why}


def _no_propose(*args: Any, **kwargs: Any) -> Sequence[Any]:
    raise TypeError("this proposer has no propose")
