"""Moments as the server writes them."""

from __future__ import annotations

from datetime import datetime


def moment_text(moment: datetime) -> str:
    """A moment in UTC as text; such texts sort in the order of time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
