"""All terms on one page; other pages also explain the terms that they use, in place."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import Response

from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.visits import Visit, visiting

router = pages()


@router.get("/words")
def every_word(visit: Annotated[Visit, Depends(visiting)]) -> Response:
    """All terms."""
    visit.request.state.act = "words"
    return visit.page("words.html")
