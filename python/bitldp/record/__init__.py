"""Whole records in one release: of numbers, of categories, of both."""

from __future__ import annotations

from bitldp.record.cap import RecordCap
from bitldp.record.categorical import CategoricalRecord
from bitldp.record.item_set import ItemSet
from bitldp.record.key_value import KeyValue
from bitldp.record.mixed import MixedRecord
from bitldp.record.mixed_cap import MixedCap
from bitldp.record.privunit import HypercubePrivUnit
from bitldp.record.signs import SampledSigns
from bitldp.record.window import JointWindow

__all__ = [
    "CategoricalRecord",
    "HypercubePrivUnit",
    "ItemSet",
    "JointWindow",
    "KeyValue",
    "MixedCap",
    "MixedRecord",
    "RecordCap",
    "SampledSigns",
]
