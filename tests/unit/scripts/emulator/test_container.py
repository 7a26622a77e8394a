"""The emulator runs the function's container within Lambda's bounds, with no variable on a command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.emulator.container import Confinement, ContainerEmulator

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class FakeDocker:
    program: str = "/usr/bin/docker"

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": "/clients", "DOCKER_HOST": "unix:///a", "AWS_SECRET_ACCESS_KEY": "the caller's"}

    def entry(self, image: str, handler: str | None = None) -> tuple[str, ...]:
        return ("python3", "-m", "awslambdaric", handler or f"of-{image}")


def emulator(variables: Mapping[str, str], **options: Any) -> ContainerEmulator:
    docker: Any = FakeDocker()
    return ContainerEmulator(docker, "soal", variables, timeout_s=60, memory_mb=1024, binary=Path("/rie"), **options)


def test_the_container_has_lambda_s_bounds() -> None:
    """The container has a read-only root, no capabilities, user name or shared memory, and Lambda's limits."""
    words = emulator({})._command(("--address", "a"))
    for option, value in (
        ("--cap-drop", "ALL"),
        ("--user", "4711:4711"),
        ("--ipc", "none"),
        ("--memory", "1024m"),
        ("--memory-swap", "1024m"),
        ("--pids-limit", "1024"),
        ("--tmpfs", "/tmp:rw,exec,nosuid,nodev,size=1024m,mode=1777"),
    ):
        assert words[words.index(option) + 1] == value
    assert "--read-only" in words
    assert words[words.index("soal") :] == ["soal", "--address", "a", "python3", "-m", "awslambdaric", "of-soal"]


def test_a_bound_can_be_changed() -> None:
    """A test can change a limit."""
    words = emulator({}, confinement=Confinement(tmp_mb=5, tmp_is_executable=False))._command(())
    assert "/tmp:rw,noexec,nosuid,nodev,size=5m,mode=1777" in words


def test_the_function_s_variables_are_on_no_command_line() -> None:
    """The function's variables pass through the client's environment, except those that would change the client."""
    made = emulator({"AWS_SECRET_ACCESS_KEY": "hush", "DOCKER_HOST": "the function's"})
    words, passed = made._command(()), made._variables()
    assert not any("hush" in word for word in words)
    assert "AWS_SECRET_ACCESS_KEY" in words
    assert passed["AWS_SECRET_ACCESS_KEY"] == "hush"
    assert passed["DOCKER_HOST"] == "unix:///a"
    assert "DOCKER_HOST=the function's" in words
    assert passed["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "1024"
