"""Data sets of the papers that a user has to bring: what each is, whose it is, and the form of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["NEEDED", "NeededData"]


@dataclass(frozen=True)
class NeededData:
    """Data set that is neither bundled nor in the folder of ``BITLDP_DATA``.

    Attributes
    ----------
    name : str
        What ``--data NAME=FILE`` calls it.
    what : str
        Its records, as the paper uses them.
    source : str
        Who made it, and under which name it is published.
    form : str
        Columns of the file, and what ``ranges.toml`` says of them.
    """

    name: str
    what: str
    source: str
    form: str

    @property
    def sentence(self) -> str:
        """The answer to whoever asks for it without a file."""
        return (
            f"{self.name} needs FILE: {self.what} ({self.source}). Give it as --data {self.name}=FILE to "
            f"bitldp paper, or as --data FILE to bitldp fl and attack, with --label COLUMN: a .csv, .parquet "
            f"or .npz file of {self.form}"
        )


_IMAGES = (
    "a column a pixel and channel (.npz: an array x of shape (n, {side}, {side}, {channels})), row by row, "
    'the channels of a pixel together, and {label}; ranges.toml: "x_*" = [0, 255] under [intervals], all '
    "classes under [categories]"
)
_VECTORS = (
    "{size} numbers a record (.npz: an array x of shape (n, {size}); .parquet: a column x of lists) and "
    '{label}; ranges.toml: "x_*" with their public interval, all classes under [categories]'
)

#: The data sets by name.
NEEDED: Mapping[str, NeededData] = {
    each.name: each
    for each in (
        NeededData(
            "kdd99",
            "connections of a network, normal or an attack; FedSel has 70,000 of them, of 114 dimensions",
            "KDD Cup 1999 Data, UCI Machine Learning Repository",
            "its columns and one of the label, in two classes; ranges.toml: the intervals of its numbers, "
            "and protocol_type, service, flag and the label under [categories]",
        ),
        NeededData(
            "bias",
            "temperatures of the next day, BRR's regression of 7,588 records",
            "Bias Correction of Numerical Prediction Model Temperature Forecast, UCI Machine Learning "
            "Repository",
            "the records that lack no value, its columns and that of the temperature, which is the label; "
            'ranges.toml: an interval for every column and for the label, ignore = ["station", "Date"]',
        ),
        NeededData(
            "foursquare",
            "3,000 places, BRR's second set of locations",
            "Global-scale check-in dataset, Yang et al., WWW 2019",
            "two columns latitude and longitude, first and in this order, and any column as the label; "
            "ranges.toml: latitude = [-90, 90], longitude = [-180, 180], and an interval for the label",
        ),
        NeededData(
            "celeba",
            "photographs of faces with 40 attributes, one of which is the label",
            "CelebFaces Attributes, Liu, Luo, Wang and Tang, ICCV 2015",
            _VECTORS.format(size=512, label="the attribute (features of a ResNet-18, as in BitRand)"),
        ),
        NeededData(
            "femnist",
            "letters and digits by their writers, 62 classes",
            "LEAF, Caldas et al., 2018, of Extended MNIST",
            _VECTORS.format(size=512, label="the class (features of a ResNet-18, as in BitRand)"),
        ),
        NeededData(
            "sec",
            "clauses of contracts in filings, 2 classes",
            "collected by the authors of BitRand, not published",
            _VECTORS.format(size=768, label="the class (features of BERT-Base, as in BitRand)"),
        ),
        NeededData(
            "cifar10",
            "photographs of 32 x 32 x 3 pixels in 10 classes",
            "CIFAR-10, Krizhevsky, 2009",
            _IMAGES.format(side=32, channels=3, label="the class"),
        ),
        NeededData(
            "svhn",
            "house numbers, images of 32 x 32 x 3 pixels in 10 classes",
            "The Street View House Numbers, format 2, Netzer et al., 2011",
            _IMAGES.format(side=32, channels=3, label="the digit"),
        ),
    )
}
