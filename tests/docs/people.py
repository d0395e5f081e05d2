"""People at terminals: users of the operating system, each with a shell of their own, who find ``lapwing`` as a plain install puts it.

The interpreter and the libraries of the tests may lie where only root can go (its home, a private temporary directory). So what
``pip install 'lapwing[postgres]'`` would bring is put into a directory that everybody can read: the files of those distributions and
nothing else that the tests have installed, the checkout's own source, and the interpreter too if others cannot run it where it is.
"""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from tests.meta.tree import ROOT

_NOT_NEEDED = shutil.ignore_patterns("site-packages", "test", "idlelib", "tkinter", "ensurepip")
_END = "end-of-a-block"


class Person:
    """One user at one terminal. A command that fails ends it, with what was shown."""

    def __init__(self, user: str, umask: int, environment: Mapping[str, str]) -> None:
        self.user = user
        home = subprocess.run(["getent", "passwd", user], capture_output=True, text=True, check=True).stdout.split(":")[5]
        variables = {**environment, "HOME": home, "USER": user, "LOGNAME": user, "LANG": "C.UTF-8"}
        identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--inh-caps=-all", "--pdeathsig", "KILL"]
        self._shell = subprocess.Popen(
            [*identity, "env", "-i", *(f"{name}={value}" for name, value in variables.items()), "bash", "--norc", "-e"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            cwd="/",
        )
        self.types(f"umask {umask:03o}; cd")

    def types(self, text: str) -> str:
        """Type the lines; what they print. Every one of them must succeed."""
        assert self._shell.stdin is not None and self._shell.stdout is not None
        self._shell.stdin.write(f"{text}\necho; echo {_END}\n")
        self._shell.stdin.flush()
        said: list[str] = []
        for line in self._shell.stdout:
            if line.strip() == _END:
                return "".join(said)
            said.append(line)
        raise AssertionError(f"{self.user} typed\n{text}\nand it failed:\n{''.join(said)}")

    def cannot(self, command: str, because: str = "Permission denied") -> None:
        """Type a command that must fail, and say this."""
        said = self.types(f"if {{ {command}\n}} < /dev/null; then echo SUCCEEDED; fi")
        assert "SUCCEEDED" not in said.split() and because in said and "Traceback" not in said, f"{self.user} typed {command}\n{said}"

    def leaves(self) -> None:
        """Close the terminal."""
        self._shell.kill()
        self._shell.communicate()


def public_directory() -> Path:
    """A new directory that everybody can reach and read."""
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if _for_everybody(Path(place).resolve()):
            made = Path(tempfile.mkdtemp(prefix="lapwing-people-", dir=place))
            made.chmod(0o755)
            return made
    raise AssertionError("no temporary directory can be reached by other users")


def install_for_everybody(to: Path) -> Path:
    """Put Lapwing with its extra ``postgres`` there; gives the directory of the program ``lapwing``."""
    packages = to / "packages"
    for name in sorted(_distributions("lapwing", {"postgres"})):
        for file in importlib.metadata.distribution(name).files or ():
            source = Path(str(file.locate()))
            if ".." not in file.parts and file.suffix != ".pth" and source.is_file():
                _put_with_bytecode(source, packages / file)
    shutil.copytree(ROOT / "src" / "lapwing", packages / "lapwing", dirs_exist_ok=True)
    program = to / "bin" / "lapwing"
    program.parent.mkdir()
    command = " ".join(["env", f"PYTHONPATH={packages}", *_interpreter(to), "-P", "-S", "-m", "lapwing.interfaces.cli"])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    _open(to)
    subprocess.run([*shlex.split(command), "--version"], check=True, capture_output=True)
    for path in packages.rglob("*"):  # what that import compiled is for everybody too
        if path.is_dir():
            path.chmod(0o755)
    return program.parent


def _distributions(name: str, extras: set[str]) -> set[NormalizedName]:
    """A distribution and all that it requires here."""
    found, waiting = {canonicalize_name(name)}, [(name, extras)]
    while waiting:
        of, wanted = waiting.pop()
        for text in importlib.metadata.requires(of) or ():
            requirement = Requirement(text)
            marker, required = requirement.marker, canonicalize_name(requirement.name)
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                if required not in found or requirement.extras:
                    found.add(required)
                    waiting.append((required, requirement.extras))
    return found


def _interpreter(to: Path) -> Iterator[str]:
    """The words that start Python for any user: where it is, or as a copy if others cannot run it there."""
    real = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    if _for_everybody(real) and _for_everybody(library):
        yield str(real)
        return
    home = to / "python"
    (home / "bin").mkdir(parents=True)
    _put(str(real), str(home / "bin" / real.name))
    shutil.copytree(library, home / "lib" / library.name, ignore=_NOT_NEEDED, copy_function=_put)
    for shared in library.parent.glob("libpython*.so*"):
        _put(str(shared), str(home / "lib" / shared.name))
    yield f"LD_LIBRARY_PATH={home / 'lib'}"
    yield str(home / "bin" / real.name)


def _for_everybody(path: Path) -> bool:
    """Whether other users can reach this path, and enter it or run it."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))


def _put_with_bytecode(source: Path, target: Path) -> None:
    """As pip puts it, which compiles what it installs: others may not write there, and would compile each module each time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _put(str(source), str(target))
    if source.suffix == ".py":
        compiled, there = Path(cache_from_source(str(source))), Path(cache_from_source(str(target)))
        if compiled.is_file() and not there.exists():
            there.parent.mkdir(exist_ok=True)
            _put(str(compiled), str(there))


def _put(source: str, target: str) -> str:
    """A link if others may read the file, which takes no room; else a copy."""
    if os.stat(source).st_mode & stat.S_IROTH:
        try:
            os.link(os.path.realpath(source), target)
            return target
        except OSError:  # another disk
            pass
    return str(shutil.copy2(source, target))  # bytecode is of a source with its time


def _open(directory: Path) -> None:
    """Let everybody enter all directories and read all files below this one."""
    for folder, _, files in os.walk(directory):
        os.chmod(folder, 0o755)
        for name in files:
            path = Path(folder) / name
            mode = path.stat().st_mode
            if not mode & stat.S_IROTH:
                path.chmod(mode | stat.S_IRGRP | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
