"""How the documentation is built: Sphinx with MyST, every warning an error (see the ``docs`` target of the Makefile)."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.domains.python import PythonDomain
from sphinx.ext.autodoc._dynamic import _preserve_defaults
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

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
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist", "tasklist"]
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
# There are none; looking for them takes a sixth of the reading.
autodoc_use_type_comments = False
# Defaults as they are written: the value of one is all variables of whoever builds the pages.
autodoc_preserve_defaults = True

nitpicky = True
# Names of other projects are not looked up (that would need their inventories at build time); names of ours must all resolve.
# Private names turn up in annotations and have no entry to point at; so does what routes of the server say in theirs, which is no type.
nitpick_ignore_regex = [
    ("py:.*", r"(?!lapwing\b).*"),
    ("py:.*", r"lapwing\.(.*\.)?_\w+"),
    ("py:class", r"lapwing\.interfaces\.(console|http)\.(.*\.)?(Annotated|[a-z]\w*)"),
]

html_theme = "furo"
html_title = f"Lapwing {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["lapwing.css"]
html_js_files = ["reach.js"]
html_search_scorer = str(Path(__file__).resolve().parent / "_static" / "ranking.js")
# Formulas become MathML when the pages are built: browsers draw it themselves, so no script and no other host is needed.
html_math_renderer = "mathml"
# Prompts and what a program prints are not copied.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"


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


def _mathml(latex: str, *, block: bool) -> str:
    """A formula as MathML. One of several lines is set as such."""
    lines = f"\\begin{{aligned}}{latex}\\end{{aligned}}" if "\\\\" in latex and "\\begin{" not in latex else latex
    drawn = convert(lines, display="block" if block else "inline")
    if "\\" in drawn:
        logging.getLogger(__name__).warning("a word of this formula is not known: %s", latex)
    return drawn


def _inline_formula(page: Any, node: Any) -> None:
    page.body.append(f'<span class="math">{_mathml(node.astext(), block=False)}</span>')
    raise nodes.SkipNode


def _formula(page: Any, node: Any) -> None:
    page.body.append(page.starttag(node, "div", CLASS="math"))
    if node["number"]:
        page.body.append(f'<span class="eqno">({get_node_equation_number(page, node)})</span>')
    page.body.append(f"{_mathml(node.astext(), block=True)}</div>\n")
    raise nodes.SkipNode


class _IndexedPython(PythonDomain):
    """Finds what a name means among the objects whose last word is its own. Sphinx goes through all of them for each type it reads."""

    _counted = -1
    _indexed: dict[str, dict[str, Any]]

    def find_obj(self, env: Any, modname: Any, classname: Any, name: str, type: Any, searchmode: int = 0) -> Any:
        """As Sphinx does it."""
        whole = self.data["objects"]
        self.data["objects"] = self._alike(whole).get(name.removesuffix("()").rpartition(".")[2], {})
        try:
            return super().find_obj(env, modname, classname, name, type, searchmode)
        finally:
            self.data["objects"] = whole

    def _alike(self, objects: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Objects by their last word, in the same order; made again when there are more of them."""
        if self._counted != len(objects):
            self._counted, self._indexed = len(objects), {}
            for name, entry in objects.items():
                self._indexed.setdefault(name.rpartition(".")[2], {})[name] = entry
        return self._indexed


_TITLES: dict[str, Any] = {}


def _read_titles(app: Sphinx, builder: object) -> None:
    """The contents of each page without its headings: its title, and the pages below it."""
    for page, contents in app.env.tocs.items():
        _TITLES[page] = kept = contents.deepcopy()
        for item in kept.children:
            if isinstance(item, nodes.list_item) and len(item) > 1:
                below = [*item.findall(addnodes.toctree)]
                item[1:] = [nodes.bullet_list("", *below)] if below else []


def _list_titles(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """List pages at the side from their titles. Sphinx copies all headings of all pages for each page, and then leaves them out."""
    listed = context["toctree"]

    def toctree(**options: Any) -> Any:
        if not options.get("titles_only"):
            return listed(**options)
        whole, app.env.tocs = app.env.tocs, _TITLES
        try:
            return listed(**options)
        finally:
            app.env.tocs = whole

    context["toctree"] = toctree


_arguments_in_source = _preserve_defaults._get_arguments


def _arguments(function: Any) -> Any:
    """The arguments as they are in the source, for their defaults; None for a function that states its own signature."""
    return None if hasattr(function, "__signature__") else _arguments_in_source(function)


def setup(app: Sphinx) -> None:
    """Called by Sphinx when it starts."""
    _preserve_defaults._get_arguments = _arguments
    app.add_domain(_IndexedPython, override=True)
    app.connect("write-started", _read_titles)
    app.connect("html-page-context", _list_titles, priority=100)  # before the theme, which lists them
    app.add_html_math_renderer("mathml", inline_renderers=(_inline_formula, None), block_renderers=(_formula, None))
    app.connect("autodoc-process-docstring", _escape_signs)
    app.connect("missing-reference", _type_variable)
