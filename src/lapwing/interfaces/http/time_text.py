"""Moments as the server writes them down."""

from __future__ import annotations

from datetime import datetime


def moment_text(moment: datetime) -> str:
    """A moment in UTC as a text; such texts sort as the moments follow each other."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
