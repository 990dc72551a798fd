"""`a40console serve`: the service in the foreground."""

from __future__ import annotations

from dataclasses import replace

import click

from a40console.commands.demo_ending import ending_command
from a40console.commands.invocation import Invocation
from a40console.commands.output import note
from a40console.profiles.loader import load_profiles
from a40console.service.parent import run


@click.command()
@click.option("--profile", metavar="NAME", help="Start this profile; else what ran before.")
@click.option("--no-engine", is_flag=True, help="Start no engine.")
@click.option("--host", metavar="ADDRESS", help="Where the gateway listens; default loopback.")
@click.option("--port", type=click.IntRange(0, 65535), help="The gateway's port; 0 takes any.")
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    profile: str | None,
    no_engine: bool,
    host: str | None,
    port: int | None,
) -> int:
    """Run the service in the foreground: gateway, telemetry, and the engine it looks after.

    Other commands start it by themselves. An engine outlives it, and is taken up again.
    """
    settings = invocation.settings()
    if profile is not None:
        load_profiles(invocation.paths.profiles).find(profile)
    gateway = settings.gateway
    if host is not None:
        gateway = replace(gateway, host=host)
    if port is not None:
        gateway = replace(gateway, port=port)
    note(f"The service starts; its log is {invocation.paths.service_log}. End it with Ctrl-C.")
    return run(
        invocation.paths,
        replace(settings, gateway=gateway),
        profile=profile,
        engine=not no_engine,
        demo_ending=ending_command(invocation.paths),
    )
