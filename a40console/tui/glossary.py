"""What each figure and mark means, in the words of the help screen."""

from __future__ import annotations

MARKS: tuple[tuple[str, str], ...] = (
    ("–", "Not known. Move the cursor or the focus there: the line above the keys says why."),
    ("≈", "Estimated, not counted."),
    ("!", "An outlier: more than three times the median of the last five."),
    ("✓", "The slots add up to the engine's counter."),
    ("·", "Something that happened."),
    ("▲", "A warning."),
    ("✖", "Something failed."),
    ("◆", "A note of yours."),
    ("•", "An event that is new since you last read them."),
    ("●", "In the list of sessions: its text is written to files."),
    ("*", "In a run's settings: not as its preset has it."),
    ("│", "In a session's window: where its client sums its history up by itself."),
    ("« »", "In a turn's bar: it is longer than drawn."),
)

FIGURES: tuple[tuple[str, str], ...] = (
    (
        "tok/s of a slot",
        (
            "Tokens emitted in the last 5 s over the seconds of those spent in decode; "
            "– in queue, prefill and the client's turn."
        ),
    ),
    (
        "pass/s × tok/pass",
        (
            "Engine passes the slot took part in, times tokens emitted in each, the verified one "
            "included: their product is its tok/s."
        ),
    ),
    ("Σ", "The slots' tokens over one window, beside the engine's own counter."),
    ("prefill", "Prompt tokens computed a second; tokens from the cache are not among them."),
    ("context", "Tokens of the request's prompt."),
    (
        "queue s",
        (
            "Seconds held at the gateway and queued in the engine, as this console saw it; < is "
            "the most it can have been where it was never seen waiting."
        ),
    ),
    ("reused", "Share of the prompt that came from the prefix cache."),
    (
        "re-read",
        "Tokens shared with the session's previous request and answer that were computed again.",
    ),
    ("TTFT", "From the request's arrival at the gateway to the first content byte."),
    ("pass", "Time of an engine pass: with speculation one pass yields several tokens."),
    (
        "acceptance curve",
        (
            "Share of drafts accepted at each position; how much of the last one is accepted "
            "is told from 100 drafts on."
        ),
    ),
    ("without", "Speed without speculation, last measured at this load."),
    (
        "prefix cache",
        (
            "Hit tokens over queried tokens of the prompts admitted in the window; "
            "only whole blocks can hit, so the share of what was reusable stands beside it."
        ),
    ),
    ("KV cache", "Tokens held by running requests, reusable ones (free to evict), and all."),
    ("more fit", "How many more sessions of the present mean context fit."),
    ("vCPU", "Used of the container's quota, never of the host's cores unless it says so."),
    ("throttled", "Milliseconds in each second in which the quota stopped the container."),
    (
        "$/1M now",
        "The price of an hour over the tokens that the present rate makes in one.",
    ),
    (
        "limit",
        "The ranked cause of the present speed with its evidence, what was ruled out, or unknown.",
    ),
)
