"""Release a Spark frame by mapInArrow: two actions on it see one release."""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from common import answers, people, release
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
released = release()
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame(people().to_pandas())
lazy = frame.mapInArrow(released.batches, released.ddl(frame.schema))

once, again = lazy.toPandas(), lazy.toPandas()
print("the same rows again:", once.equals(again))
answers(pa.Table.from_pandas(once, preserve_index=False), people())
spark.stop()
