"""What programs ask of the service beside the operator's commands: runs and what is kept of them.

They have no key and stand in no palette: screens and `a40console runs` put them into words.
"""

from __future__ import annotations

from a40console.model.command import BY_ID, Command

CALLS: tuple[Command, ...] = (
    Command(
        id="run.start",
        title="Start an experiment",
        help="Queue a controlled experiment; it starts when nothing runs before it.",
        argument="spec",
        options=("key",),
        available="service",
    ),
    Command(
        id="run.cancel",
        title="Cancel an experiment",
        help="End a run; what was measured till then is kept.",
        argument="id",
        available="service",
    ),
    Command(
        id="run.restart",
        title="Restart the engine for an experiment",
        help="A run's own arm: its engine anew, without speculation or as it was.",
        argument="id",
        options=("speculation",),
        available="service",
    ),
    Command(
        id="runs.note",
        title="Note on a run",
        help="Write a line about a run.",
        argument="id",
        options=("text",),
        available="service",
    ),
    Command(
        id="runs.invalidate",
        title="Mark a run invalid",
        help="Say why nothing of a run may be believed.",
        argument="id",
        options=("reason",),
        available="service",
    ),
    Command(
        id="runs.import",
        title="Import a run",
        help="Take a run's document into the ledger.",
        argument="document",
        available="service",
    ),
    Command(
        id="runs.copied",
        title="Mark runs copied",
        help="Note which runs another machine has.",
        argument="ids",
        options=("machine",),
        available="service",
    ),
    Command(
        id="hypotheses.add",
        title="Write down a hypothesis",
        help="A claim that runs are to confirm or refute.",
        argument="text",
        available="service",
    ),
    Command(
        id="hypotheses.conclude",
        title="Conclude a hypothesis",
        help="Confirm, refute, retract or reopen a claim, with the runs that did it.",
        argument="id",
        options=("state", "runs", "why"),
        available="service",
    ),
)
"""`ids` and `runs` are separated by commas; `spec` and `document` are JSON.

`key` is what the server at a URL asks for. An id of `ids` may end with `@` and the revision of the
document that was copied. The document `reference` takes the rows that are shipped.
"""

CALLABLE = BY_ID | {call.id: call for call in CALLS}
"""Everything that the service may be told by id."""
