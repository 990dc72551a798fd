"""Settings that cannot work are refused with their key."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.config import (
    ConsoleSettings,
    RentSettings,
    Settings,
    lenient_settings,
    load_settings,
)
from a40console.errors import UsageError
from a40console.model.codec import decode, encode


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "0.001"])
def test_an_interval_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[service]\ninterval_s = {value}\n")
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert "service.interval_s" in refused.value.evidence


def test_an_interval_that_fits(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[service]\ninterval_s = 0.25\n")
    assert load_settings(file).service.interval_s == 0.25


def test_the_route_of_the_messages_api(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert load_settings(file).gateway.messages_route == "auto"
    file.write_text('[gateway]\nmessages_route = "translated"\n')
    assert load_settings(file).gateway.messages_route == "translated"
    file.write_text('[gateway]\nmessages_route = "direct"\n')
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert "gateway.messages_route" in refused.value.evidence


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2026-11-29T10:00:00Z", "2026-11-29T10:00:00Z"),
        ("2026-11-29 10:00:00+02:00", "2026-11-29T08:00:00Z"),
        ('"2026-11-29T10:00:00-05:00"', "2026-11-29T15:00:00Z"),
    ],
)
def test_when_the_rent_began(tmp_path: Path, text: str, since: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[rent]\nsince = {text}\nusd_per_hour = 0.44\ndisk_usd_per_hour = 0.01\n")
    settings = load_settings(file)
    assert settings.rent == RentSettings(
        since=since, usd_per_hour=Decimal("0.44"), disk_usd_per_hour=Decimal("0.01")
    )
    assert decode(Settings, json.loads(json.dumps(encode(settings)))) == settings


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("since = 2026-11-29T10:00:00", "has no time zone"),
        ("since = 2026-11-29", "rent.since"),
        ('since = "last monday"', "rent.since"),
        ("since = 1795946400", "rent.since"),
        ("usd_per_hour = -0.1", "rent.usd_per_hour"),
        ("usd_per_hour = inf", "rent.usd_per_hour"),
        ("usd_per_hour = nan", "rent.usd_per_hour"),
        ("usd_per_hour = 1e400", "rent.usd_per_hour"),
        ('usd_per_hour = "1e999999"', "rent.usd_per_hour"),
        (f"usd_per_hour = {'9' * 400}", "rent.usd_per_hour"),
        ("disk_usd_per_hour = 1_000_000", "rent.disk_usd_per_hour"),
        ('disk_usd_per_hour = "cheap"', "rent.disk_usd_per_hour"),
        ("usd_per_day = 9", "rent.usd_per_day"),
    ],
)
def test_a_rent_that_is_none_is_refused(tmp_path: Path, line: str, key: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[rent]\n{line}\n")
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert key in refused.value.evidence


def test_depth_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"x = {'[' * 100_000}\n")
    with pytest.raises(UsageError):
        load_settings(file)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_rent_before_all_time_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[rent]\nsince = {text}\n")
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert "rent.since" in refused.value.evidence


LOOK_FAULTS = [
    "[console]\nalarms = 'siren'",
    "[console]\nalarms = true",
    "[console]\nglyphs = 7",
    "[console]\ntheme = ['midnight']",
    "[console]\nbell = 'bell'",
    "console = 'dark'",
    "[keys]\n'engine.restart' = 5",
    "[keys]\nengine.restart = 'f5'",
    "keys = ['f5']",
]


@pytest.mark.parametrize("text", LOOK_FAULTS)
def test_a_wrong_look_has_its_default_and_is_told_once(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"profile = 'mine'\n{text}\n")
    settings, [problem] = lenient_settings(file)
    assert text.split("\n")[0].strip("[]").split()[0] in problem.text
    assert not problem.refused
    assert str(problem) == f"{problem.text}; the default is used"
    assert settings == load_settings(file) == Settings(profile="mine")


def test_what_is_right_beside_it_counts(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[console]\nalarms = 'siren'\ntheme = 'daylight'\nglyphs = 'no'\n")
    settings, problems = lenient_settings(file)
    assert settings.console == ConsoleSettings(theme="daylight")
    assert [problem.text.split(":")[0] for problem in problems] == [
        "console.glyphs",
        "console.alarms",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "profile = 3",
        "[gateway]\nport = 99999",
        "[service]\ninterval_s = 0",
        "[install]\ntorch_cpu_index = false",
        "[rent]\nusd_per_hour = 'x'",
        "nonsense = 1",
        "problems = ['none']",
        "this is no TOML",
        "x = " + "[" * 5000,
        "\udcff",
        "[rent]\nusd_per_hour = " + "9" * 5000,
        "[gateway]\nport = 0x" + "f" * 5000,
    ],
)
def test_a_screen_opens_whatever_is_wrong_and_a_service_refuses(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError):
        load_settings(file)
    settings, [problem] = lenient_settings(file)
    assert str(problem) == f"{problem.text}; the service refuses it when it next starts"
    assert settings == Settings()


def test_an_editor_that_writes_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[keys]\n"engine.restart" = "f5"\n', encoding="utf-8-sig")
    assert load_settings(file).keys == {"engine.restart": "f5"}
    assert lenient_settings(file) == (load_settings(file), ())


def test_a_number_of_thousands_of_digits_is_refused_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[rent]\nusd_per_hour = " + "9" * 5000)
    with pytest.raises(UsageError) as refused:
        load_settings(file)
    assert str(file) in refused.value.message
    assert refused.value.evidence == "an integer has more than 64 bits"
