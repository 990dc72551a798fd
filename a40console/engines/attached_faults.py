"""What the forwarder of an attached endpoint writes when it fails, and what to do. Data only."""

from __future__ import annotations

from a40console.engines.faults import Fault

FAULTS = (
    Fault(
        "endpoint-key-refused",
        "rejected",
        r"endpoint refused the key: HTTP (?P<status>\d+)",
        "the endpoint refused the key (HTTP {status})",
        "Set the key that the endpoint gave you, and restart the service with it.",
    ),
    Fault(
        "endpoint-key-missing",
        "missing",
        r"endpoint key missing: (?P<why>.+)",
        "the endpoint's key is missing: {why}",
        "Set the variable for the service, or put the key into the file and chmod 600 it.",
    ),
    Fault(
        "endpoint-not-reached",
        "missing",
        r"endpoint not reached: (?P<why>.+)",
        "the endpoint was not reached: {why}",
        "See base_url in the profile, and whether this machine reaches the network.",
    ),
    Fault(
        "endpoint-fails",
        "unknown",
        r"endpoint fails: (?P<why>.+)",
        "the endpoint fails by itself: {why}",
        "Wait for it, and start again.",
    ),
)
