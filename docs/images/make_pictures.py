"""Makes the pictures of the documentation from the real thing: terminals, what a notebook shows, charts.

    python docs/images/make_pictures.py

Needs Chromium, matplotlib and pyte. The figures in the pictures are noisy and come out anew each time; nothing checks them.
"""

from __future__ import annotations

import itertools
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

HERE = Path(__file__).resolve().parent
COLUMNS = 92
PATIENTS = 50_000

TERMINAL = (
    "lapwing -C clinic ask 'SELECT smoker, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY smoker' --epsilon 0.5",
    "lapwing -C clinic ask 'SELECT region, COUNT(*) FROM patients GROUP BY regoin'",
    "lapwing -C clinic budget",
)
SHELL_FIRST = "SELECT smoker, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY smoker"
SHELL_SECOND = "SELECT kind, COUNT(*) AS visits\nFROM visits JOIN clinics USING (clinic_id)\nWHERE visits.minutes > 30 GROUP BY ki"
LINE = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS visits FROM visits GROUP BY month"
CHART = "SELECT region, COUNT(*) AS patients FROM patients GROUP BY region ORDER BY region"
TABLE = (
    "SELECT kind, COUNT(*) AS visits, AVG(LEAST(minutes, 120)) AS minutes FROM visits JOIN clinics USING (clinic_id)"
    " GROUP BY kind ORDER BY kind"
)

PAGE = """<!doctype html><meta charset="utf-8"><style>
html {{ background: #fff }} body {{ margin: 0; padding: 16px; display: inline-block; {style} }}
pre {{ margin: 0; font: 14px/1.35 'DejaVu Sans Mono', monospace }}
</style><body>{body}</body>"""


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ["LAPWING_HOME"] = str(Path(scratch) / "home")
        run_on_terminal(f"lapwing demo clinic --patients {PATIENTS}")
        run_on_terminal("lapwing -C clinic prepare")
        photograph(terminal_html(), HERE / "terminal.png", style="background: #fff; color: #24292e")
        photograph(notebook_html(), HERE / "notebook.png", style="background: #fff; color: #1f2328; font: 14px sans-serif")
        photograph(shell_html(), HERE / "shell.png", style="background: #fff; color: #24292e")
        photograph(views_html(), HERE / "notebook-views.png", style="background: #fff; color: #1f2328; font: 14px sans-serif")
        draw_chart(HERE / "chart.png", CHART, place="small", epsilon=0.5)
        draw_chart(HERE / "line.png", LINE, place="clinic", epsilon=1)
        draw_frame(HERE / "frame.png")


def run_on_terminal(command: str) -> str:
    """What a command shows on a terminal with 256 colours."""
    words = shlex.split(command)
    words[:1] = [sys.executable, "-m", "lapwing.interfaces.cli"] if words[0] == "lapwing" else words[:1]
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, close_fds=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    process.wait()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def terminal_html() -> str:
    """A session on a terminal, with its colours."""
    import io

    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for command in TERMINAL:
        console.print(Text("$ ", style="bold").append(command, style="not bold"), soft_wrap=False)
        console.print(Text.from_ansi(run_on_terminal(command).rstrip("\n")))
        console.print()
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>").rstrip()


def notebook_html() -> str:
    """A cell of a notebook and the answer below it."""
    import html

    import lapwing

    with lapwing.open("clinic") as clinic:
        shown = clinic.ask(TABLE, epsilon=1)._repr_html_()
    statement = TABLE.replace(" FROM", "\n    FROM").replace(" GROUP", "\n    GROUP")
    cell = html.escape(f'clinic.ask("""\n    {statement}\n""", epsilon=1)')
    frame = "background:#f6f8fa;border:1px solid #d0d7de;padding:8px;margin-bottom:10px"
    return f"<div style='{frame}'><pre>{cell}</pre></div>{shown}"


def photograph(body: str, target: Path, *, style: str) -> None:
    """A picture of some HTML, cut to what is on it."""
    from PIL import Image, ImageChops

    page, raw = Path("page.html"), Path("page.png")
    page.write_text(PAGE.format(body=body, style=style), encoding="utf-8")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium is needed to make pictures of HTML")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    size = ["--window-size=1100,1400", "--force-device-scale-factor=1.5"]
    subprocess.run([chromium, *options, *size, f"--screenshot={raw}", page.resolve().as_uri()], check=True, capture_output=True)
    picture = Image.open(raw).convert("RGB")
    empty = Image.new("RGB", picture.size, "#ffffff")
    left, top, right, bottom = ImageChops.difference(picture, empty).getbbox() or (0, 0, *picture.size)
    margin = 18
    box = (max(left - margin, 0), max(top - margin, 0), min(right + margin, picture.width), min(bottom + margin, picture.height))
    picture.crop(box).quantize(64).save(target, optimize=True)


def shell_html() -> str:
    """The shell, with a statement that is answered and one that is being typed."""
    import pyte

    screen = pyte.Screen(COLUMNS, 24)
    stream = pyte.ByteStream(screen)
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", screen.lines, COLUMNS, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "shell", "clinic"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, close_fds=True, start_new_session=True)
    os.close(theirs)

    def show_until(text: str) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and text not in "\n".join(screen.display):
            if select.select([ours], [], [], 0.2)[0]:
                piece = os.read(ours, 65_536)
                stream.feed(piece)
                if b"\x1b[6n" in piece:  # asked where the cursor is
                    os.write(ours, f"\x1b[{screen.cursor.y + 1};{screen.cursor.x + 1}R".encode())

    try:
        show_until("lapwing> ")
        os.write(ours, SHELL_FIRST.encode())
        show_until("gaussian")
        os.write(ours, b";\r")
        show_until("cost epsilon")
        os.write(ours, SHELL_SECOND.replace("\n", "\r").encode())
        show_until("kind  clinics")
        os.write(ours, b"nd")
        show_until("visits: gaussian")
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return "<pre>" + "\n".join(_line_html(screen.buffer[row], COLUMNS) for row in range(screen.lines)).rstrip() + "</pre>"


def _line_html(line: Any, columns: int) -> str:
    """A line of a screen, with its colours."""
    import html

    pieces = []
    cells_of_line = [line[column] for column in range(columns)]
    for look, cells in itertools.groupby(cells_of_line, key=lambda cell: (cell.fg, cell.bg, cell.bold, cell.reverse)):
        colour, background, bold, reverse = look
        front, back = (f"#{shade}" if re.fullmatch("[0-9a-f]{6}", shade) else "" for shade in (colour, background))
        if reverse:
            front, back = back or "#fff", front or "#24292e"
        style = (f"color:{front};" if front else "") + (f"background:{back};" if back else "") + ("font-weight:bold" if bold else "")
        text = html.escape("".join(cell.data for cell in cells))
        pieces.append(f"<span style='{style}'>{text}</span>" if style else text)
    return "".join(pieces).rstrip()


def views_html() -> str:
    """A data set, an explanation and a budget as a notebook shows them."""
    import lapwing

    frame = "border:1px solid #d0d7de;padding:8px;margin:10px 0 4px;background:#f6f8fa"
    with lapwing.open("clinic") as clinic:
        shown = [
            ("clinic", clinic._repr_html_()),
            (f"clinic.explain({CHART!r})", clinic.explain(CHART)._repr_html_()),
            ("clinic.budget", clinic.budget._repr_html_()),
        ]
    return "".join(f"<div style='{frame}'><pre>{cell}</pre></div>{html}" for cell, html in shown)


def draw_chart(target: Path, statement: str, *, place: str, epsilon: float) -> None:
    """An answer drawn by its own method."""
    import matplotlib

    import lapwing

    matplotlib.use("agg")
    if not Path("small").exists():
        run_on_terminal("lapwing demo small --patients 2000")
        run_on_terminal("lapwing -C small prepare")
    with lapwing.open(place) as data_set:
        axes = data_set.ask(statement, epsilon=epsilon).plot()
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.savefig(str(target), dpi=110)


def draw_frame(target: Path) -> None:
    """An answer drawn by pandas, with the error bars that its attributes name."""
    import matplotlib

    import lapwing

    matplotlib.use("agg")
    with lapwing.open("small") as data_set:
        frame = data_set.ask(CHART, epsilon=0.5).to_pandas()
    about = frame.attrs["lapwing"]
    low, high = about["error_bars"]["patients"]
    bars = [frame["patients"] - frame[low], frame[high] - frame["patients"]]
    axes = frame.plot.bar(x="region", y="patients", yerr=[bars], title=about["summary"], figsize=(9, 4.2), legend=False, capsize=2)
    axes.title.set_fontsize(9)
    axes.get_figure().savefig(str(target), dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
