"""Lapwing: a differential-privacy curator.

    import lapwing as lw
    ds = lw.open("clinic/lapwing.toml")
    answer = ds.ask("SELECT region, COUNT(*) AS n FROM patients GROUP BY region", epsilon=0.5)

Names are loaded when they are first used, so that importing the package stays quick.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer as Answer
    from lapwing.asking.explaining.explanation import Explanation as Explanation
    from lapwing.asking.release_purchase import ReleasePlan as ReleasePlan
    from lapwing.asking.weights_session import WeightsSession as WeightsSession
    from lapwing.data_set import DataSet as DataSet
    from lapwing.data_set import open as open
    from lapwing.errors import BudgetRefused as BudgetRefused
    from lapwing.errors import LapwingError as LapwingError
    from lapwing.errors import Refused as Refused
    from lapwing.interfaces.python.remote import AsyncDataSet as AsyncDataSet
    from lapwing.interfaces.python.remote import RemoteDataSet as RemoteDataSet
    from lapwing.interfaces.python.remote import connect as connect
    from lapwing.interfaces.python.remote import connect_async as connect_async
    from lapwing.interfaces.python.wire_frames import read_sql as read_sql
    from lapwing.owner.release_file import open_release as open_release
    from lapwing.owner.release_file import save_release as save_release
    from lapwing.releases.released import Release as Release
    from lapwing.releases.request import Marginals as Marginals
    from lapwing.releases.request import RangeTree as RangeTree
    from lapwing.releases.request import SyntheticTable as SyntheticTable
    from lapwing.releases.weights.weights_log import WeighedCount as WeighedCount

__version__ = version("lapwing")
__all__ = [
    "Answer",
    "AsyncDataSet",
    "BudgetRefused",
    "DataSet",
    "Explanation",
    "LapwingError",
    "Marginals",
    "RangeTree",
    "Refused",
    "Release",
    "ReleasePlan",
    "RemoteDataSet",
    "SyntheticTable",
    "WeighedCount",
    "WeightsSession",
    "connect",
    "connect_async",
    "open",
    "open_release",
    "read_sql",
    "save_release",
]

_HOMES = {
    "Answer": "lapwing.answers.answer",
    "AsyncDataSet": "lapwing.interfaces.python.remote",
    "BudgetRefused": "lapwing.errors",
    "DataSet": "lapwing.data_set",
    "Explanation": "lapwing.asking.explaining.explanation",
    "LapwingError": "lapwing.errors",
    "Marginals": "lapwing.releases.request",
    "RangeTree": "lapwing.releases.request",
    "Refused": "lapwing.errors",
    "Release": "lapwing.releases.released",
    "ReleasePlan": "lapwing.asking.release_purchase",
    "RemoteDataSet": "lapwing.interfaces.python.remote",
    "SyntheticTable": "lapwing.releases.request",
    "WeighedCount": "lapwing.releases.weights.weights_log",
    "WeightsSession": "lapwing.asking.weights_session",
    "connect": "lapwing.interfaces.python.remote",
    "connect_async": "lapwing.interfaces.python.remote",
    "open": "lapwing.data_set",
    "open_release": "lapwing.owner.release_file",
    "read_sql": "lapwing.interfaces.python.wire_frames",
    "save_release": "lapwing.owner.release_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
