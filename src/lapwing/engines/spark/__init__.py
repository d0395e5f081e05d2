"""Spark as an engine: sources are Parquet files and tables of the session's catalogue; rows are moved by Spark and by nothing else.

Classic and Connect sessions are used alike. Only this package imports pyspark.
"""

from lapwing.engines.spark.engine import SparkEngine
from lapwing.engines.spark.sessions import use_session
from lapwing.engines.spark.snapshot import SparkSnapshot

__all__ = ["SparkEngine", "SparkSnapshot", "use_session"]
