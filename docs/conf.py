"""How the documentation is built: Sphinx with MyST, every warning an error (see the ``docs`` target of the Makefile)."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SOURCE = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(_SOURCE))

project = "Lapwing"
copyright = "the Lapwing authors"
try:
    release = metadata.version("lapwing")
except metadata.PackageNotFoundError:  # built from a tree that is not installed
    release = "unreleased"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "deflist", "dollarmath", "fieldlist", "tasklist"]
myst_heading_anchors = 3

autosummary_generate = True
# A package's list of public names must not hide its modules.
autosummary_ignore_module_all = True
# Which modules are packages; the template does not know by itself.
_PACKAGES = {".".join(path.parent.relative_to(_SOURCE).parts) for path in _SOURCE.rglob("__init__.py")}
autosummary_context = {
    "packages_in": {name: [other.rpartition(".")[2] for other in _PACKAGES if other.rpartition(".")[0] == name] for name in _PACKAGES},
}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

nitpicky = True
# Names of other projects are not looked up (that would need their inventories at build time); names of ours must all resolve.
# Private names turn up in annotations and have no entry to point at; so does what routes of the server say in theirs, which is no type.
nitpick_ignore_regex = [
    ("py:.*", r"(?!lapwing\b).*"),
    ("py:.*", r"lapwing\.(.*\.)?_\w+"),
    ("py:class", r"lapwing\.server\.(.*\.)?(Annotated|[a-z]\w*)"),
]

html_theme = "furo"
html_title = f"Lapwing {release}"
html_show_sourcelink = False


def _escape_signs(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Let docstrings write mathematics: outside literals a bar is only a bar (|x|), and a star by itself is only a star (+, -, *, /)."""
    pieces = re.split(r"(``.*?``)", "\n".join(lines), flags=re.DOTALL)
    pieces[::2] = [re.sub(r"(?<=\s)\*(?=[^\w\s*`\"'(])|\|", r"\\\g<0>", piece) for piece in pieces[::2]]
    lines[:] = "".join(pieces).split("\n")


def _type_variable(app: Sphinx, env: object, node: Any, text: Any) -> Any:
    """A type variable in a signature has no entry to point at, so its name is shown as it is; every other missing name stays a warning.

    (Docutils publishes no types, hence ``Any`` for its nodes.)
    """
    module, _, name = str(node.get("reftarget", "")).rpartition(".")
    return text if isinstance(getattr(sys.modules.get(module), name, None), TypeVar) else None


def setup(app: Sphinx) -> None:
    """Called by Sphinx when it starts."""
    app.connect("autodoc-process-docstring", _escape_signs)
    app.connect("missing-reference", _type_variable)
