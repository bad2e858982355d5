"""Training beyond one process: what a worker does, and who launches the workers.

A ranker's ``fit("parts", engine=…)`` takes one of these engines, or its name.
"""

from typing import TYPE_CHECKING

from unskew.lazy import lazy_names

if TYPE_CHECKING:
    from unskew.engines.dask_cluster import Dask as Dask
    from unskew.engines.local import Local as Local
    from unskew.engines.spark_cluster import Spark as Spark

__all__, __getattr__, __dir__ = lazy_names(__name__)
