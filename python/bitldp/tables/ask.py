"""Questions asked of a released table: means, shares, tables, quantiles and fits, each with its interval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from bitldp.base import checks
from bitldp.base.errors import PlanError
from bitldp.tables.answer import TableAnswer
from bitldp.tables.counting import Question
from bitldp.tables.filters import Where
from bitldp.tables.plan import TablePlan
from bitldp.tables.pseudonyms import joined, linked_name
from bitldp.tables.questions import Names, Questions, answered
from bitldp.tables.streamed import rows_of

__all__ = ["ReleasedTable"]


class ReleasedTable:
    """A released table that answers questions.

    Each question reads the table once, a batch at a time, and keeps only sums in memory. You can name
    released and kept columns in ``by``. For a released column, nobody knows which records are in a category:
    the answer for each category is a ratio that is estimated from the reports of all records. (A filter on a
    released column would select the wrong records.)

    An answer refers to the population from which the records are drawn independently, and to the values as
    they were released: clipped to intervals, rounded to points, or truncated to code words, as `note` says.

    Parameters
    ----------
    plan : TablePlan
    source : frame, sequence of frames, path, sequence of paths, pyarrow.dataset.Dataset, or callable
        A released table, as `Aggregate.update` takes it; several of them; files, folders and globs, local or
        remote; or a function that takes the names of the needed columns and returns fresh frames at each
        call.
    level : float
        Coverage of an interval.
    simultaneous : {None, "bonferroni", "sidak"}
        Whether the level applies to each interval by itself (None), or to all intervals of a question at
        once. Bonferroni's correction always holds. Sidak's gives slightly shorter intervals, for answers that
        are independent or jointly normal.
    project : bool
        Whether to project estimates and intervals to the range of possible values (shares to [0, 1], those of
        one whole to the simplex), which biases the estimates. The result also has the unbiased ones.
    """

    def __init__(
        self,
        plan: TablePlan,
        source: Any,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        project: bool = False,
    ) -> None:
        self.plan = plan
        self._source = source
        self._options: dict[str, Any] = {
            "level": checks.chance("level", level),
            "together": simultaneous,
            "projected": checks.flag("project", project),
        }

    @classmethod
    def read(
        cls, path: str | PathLike[str], report: str | PathLike[str] | None = None, **options: Any
    ) -> ReleasedTable:
        """Return a file that ``bitldp perturb`` wrote, by the plan in its privacy report.

        Parameters
        ----------
        path : str or path
            Parquet, Arrow or CSV, or a folder of them.
        report : str or path, optional
            Default: ``path`` with ".privacy.json" added; for a folder, "_privacy.json" in it. To check the
            report, use ``bitldp verify``.
        **options
            `level`, `simultaneous` and `project`.

        Raises
        ------
        PlanError
            For a report without a plan.
        """
        inside = Path(path) / "_privacy.json"
        beside = inside if Path(path).is_dir() else f"{path}.privacy.json"
        text = Path(beside if report is None else report).read_text(encoding="utf-8")
        try:
            document = json.loads(text)["plan"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PlanError("report: is not a privacy report that states its plan") from None
        return cls(TablePlan.from_document(document), path, **options)

    @property
    def source(self) -> Any:
        """Rows of the table, as they were given; a callable for two joined tables."""
        return self._source

    def join(self, other: ReleasedTable) -> ReleasedTable:
        """Return the table of the people who are in both releases, with the columns of both.

        You can then ask questions about columns of both. Both plans must keep a pseudonym of the ids
        (``keep_as={"id": "pseudonym"}``), and both releases must have the same key. The answers are about
        people who are in both releases; for them, the epsilons add up. The columns that a question needs are
        held in memory.

        Parameters
        ----------
        other : ReleasedTable
            A table of another plan, whose columns have other names. The options of this table apply.

        Raises
        ------
        PlanError
            For plans without pseudonyms, and for columns of one name.
        """
        if not isinstance(other, ReleasedTable):
            raise TypeError(f"other: must be a ReleasedTable, not {type(other).__name__}")
        sides = (self, other)
        if not all(each.plan.keep_as for each in sides):
            raise PlanError('join: both plans must keep a pseudonym, by keep_as={"id": "pseudonym"}')
        plan = TablePlan(
            [column for each in sides for column in each.plan.columns],
            [name for each in sides for name in each.plan.keep],
        )
        keys = [linked_name(*each.plan.keep_as) for each in sides]
        columns = [
            {*(name for codec in each.plan.codecs for name in codec.names), *each.plan.keep} for each in sides
        ]

        def tables(number: int, names: Sequence[str]) -> Iterator[pa.Table]:
            return rows_of(sides[number]._source, names, sides[number].plan.digest)

        made = ReleasedTable(plan, joined(tables, keys, columns))
        made._options = dict(self._options)
        return made

    # -- questions

    def mean(
        self, column: str, by: Names = (), *, where: Where | None = None, every: str | None = None
    ) -> TableAnswer:
        """Return the mean of a column of numbers, in all records or by categories and groups.

        Parameters
        ----------
        column : str
            A column of numbers. If it was released with ``nulls="report"``, the mean of the values that are
            not missing.
        by : str or sequence of str
            Columns of categories, released or kept. Answers are in the order of the kept ones' values.
        where : mapping, or sequence of (column, relation, value), optional
            Records that the question is about: ``{"survey": "spring"}``, a list of values for a column, or
            conditions such as ``[("date", ">=", "2026-01-01")]``, with the relations "==", "!=", "<", "<=",
            ">", ">=", "in" and "not in", all of which must hold. Conditions on kept columns filter rows. With
            conditions on released columns, the answer is a ratio that is estimated from the reports of all
            records, as with `by`.
        every : {"day", "week", "month", "quarter", "year"}, optional
            Period by which the kept columns in `by` that hold dates or times are put together: a time series.
            Its key is the first day; weeks begin on Monday, and times are those of the column's zone.

        Returns
        -------
        TableAnswer

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where, every).mean(column, by))

    def share(
        self, column: str, by: Names = (), *, where: Where | None = None, every: str | None = None
    ) -> TableAnswer:
        """Return the share of each category (or point) of a column, of all records or by others.

        The arguments are those of `mean`; the column is one of categories, or of points of an interval.
        """
        return self._answer(self._questions(where, every).share(column, by))

    def table(self, *columns: str, where: Where | None = None, every: str | None = None) -> TableAnswer:
        """Return the shares of the cells of up to three released columns, and of kept ones.

        Parameters
        ----------
        *columns : str
            Columns of categories or points, released or kept, each once.

        Returns
        -------
        TableAnswer
            A row for each cell; all of them together sum to 1.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where, every).table(*columns))

    def total(
        self, column: str, by: Names = (), *, where: Where | None = None, every: str | None = None
    ) -> TableAnswer:
        """Return the sum of a column of numbers over all records, or over those of categories and groups.

        The arguments are those of `mean`. For a column of categories, it is the number of records in each.
        """
        return self._answer(self._questions(where, every).total(column, by))

    def ratio(
        self, top: str, bottom: str, by: Names = (), *, where: Where | None = None, every: str | None = None
    ) -> TableAnswer:
        """Return the mean of one column of numbers over that of another, in all records or by categories.

        Parameters
        ----------
        top, bottom : str
            Columns of numbers; the lower one's interval does not reach below 0.
        by : str or sequence of str
            Columns of categories, released or kept. Answers are in the order of the kept ones' values.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where, every).ratio(top, bottom, by))

    def difference(
        self,
        column: str,
        by: Names,
        base: Any = None,
        *,
        where: Where | None = None,
        every: str | None = None,
    ) -> TableAnswer:
        """Return the mean of a number, or the shares of categories, in groups, minus those of a first group.

        Parameters
        ----------
        column : str
            A column of numbers, or of categories.
        by : str or sequence of str
            Columns of categories, released or kept; the groups.
        base : object, optional
            Value of the last `by` column in the group to subtract, as the answer of `mean` shows it. Default:
            the first one. The other columns have the same values on both sides.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
            Also for a group that is none.
        """
        return self._answer(self._questions(where, every).difference(column, by, base))

    def histogram(
        self,
        column: str,
        bins: int | Iterable[float] = 10,
        by: Names = (),
        *,
        where: Where | None = None,
        every: str | None = None,
    ) -> TableAnswer:
        """Return the share of records between each two neighbours of some edges.

        Parameters
        ----------
        column : str
            A column of points, as in `quantile`.
        bins : int or sequence of float
            Number of bins of equal width, or their edges, ascending. A number counts with the point that it
            was rounded to. A point on an edge counts in the bin above it, and at the last edge in the bin
            below.
        by : str or sequence of str
            Columns of categories, released or kept. Answers are in the order of the kept ones' values.

        Returns
        -------
        TableAnswer
            Its keys "from" and "to" are the edges.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
            Also for more bins than points.
        """
        return self._answer(self._questions(where, every).histogram(column, bins, by))

    def cdf(
        self,
        column: str,
        at: Iterable[float],
        by: Names = (),
        *,
        where: Where | None = None,
        every: str | None = None,
    ) -> TableAnswer:
        """Return the share of records with at most each of some numbers, `at`.

        Each counts as the last point that is not above it. The other arguments are those of `quantile`.
        """
        return self._answer(self._questions(where, every).cdf(column, at, by))

    def quantile(
        self,
        column: str,
        q: float | Iterable[float],
        by: Names = (),
        *,
        where: Where | None = None,
        every: str | None = None,
    ) -> TableAnswer:
        """Return quantiles: the numbers below which shares `q` of the records lie; .5 is the median.

        Parameters
        ----------
        column : str
            A column of points of an interval: of GRR or another mechanism of categories with ``interval=``,
            or of `SquareWave`.
        q : float or sequence of float
            Shares, above 0 and below 1.
        by : str or sequence of str
            Columns of categories, released or kept. Answers are in the order of the kept ones' values.

        Returns
        -------
        TableAnswer
            An interval contains all numbers for which the data do not refute that a share `q` of the records
            lies below (Woodruff, 1952), and extends to the next point on either side. Without released
            columns in `by`, the estimate of `SquareWave` is smoothed: it varies less than its interval, and
            is biased.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where, every).quantile(column, q, by))

    def regress(self, column: str, on: Names, *, where: Where | None = None) -> TableAnswer:
        """Return the coefficients of least squares of one column of numbers on others.

        Parameters
        ----------
        column : str
            A column of numbers.
        on : str or sequence of str
            Columns of numbers, whose mechanism must allow estimates of their squares, and of categories, each
            compared with the first of its list.

        Returns
        -------
        TableAnswer
            The intercept, and a coefficient for each number and category, from unbiased second moments. If
            too few records make these moments impossible, the nearest possible ones are used and there is no
            interval; `note` says so.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where).regress(column, on))

    def correlation(self, one: str, other: str, *, where: Where | None = None) -> TableAnswer:
        """Return the correlation of two columns of numbers; the mechanisms must allow estimates of squares.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where).correlation(one, other))

    def covariance(self, one: str, other: str, *, where: Where | None = None) -> TableAnswer:
        """Return the covariance of two columns of numbers.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where).covariance(one, other))

    def logistic(
        self, column: str, on: Names, category: str | None = None, *, where: Where | None = None
    ) -> TableAnswer:
        """Return the coefficients of a logistic fit of a category on other columns of categories.

        Parameters
        ----------
        column : str
            A column of categories.
        on : str or sequence of str
            One or two columns of categories, each against the first of its list.
        category : str, optional
            The category whose log odds are fitted, against all others; the last one by default.

        Returns
        -------
        TableAnswer
            The intercept and a coefficient for each category: those of the best fit in the population, even
            if the model does not hold (White, 1982). Their score is a sum over cells, which are estimated
            without bias. If too few records make these estimates impossible, the nearest possible ones are
            used and there is no interval; `note` says so.

        Raises
        ------
        PlanError
            For what the released columns do not tell; the message says which plan would.
        """
        return self._answer(self._questions(where).logistic(column, on, category))

    def top(
        self,
        column: str,
        most: int = 10,
        by: Names = (),
        *,
        where: Where | None = None,
        every: str | None = None,
    ) -> TableAnswer:
        """Return the most frequent words of a column of `HeavyHitters`, and their shares.

        Parameters
        ----------
        column : str
            A column of words.
        most : int
            How many words, 1 to 4096.
        by : str or sequence of str
            Kept columns of categories. Answers are in the order of their values.
        where : mapping, or sequence of (column, relation, value), optional
            Records that the question is about: ``{"survey": "spring"}``, a list of values for a column, or
            conditions such as ``[("date", ">=", "2026-01-01")]``, of the relations "==", "!=", "<", "<=",
            ">", ">=", "in" and "not in", all of which must hold. Kept columns alone.
        every : {"day", "week", "month", "quarter", "year"}, optional
            Period by which the kept columns in `by` that hold dates or times are put together: a time series.
            Its key is the first day; weeks begin on Monday, and times are those of the column's zone.

        Returns
        -------
        TableAnswer
            The words of each group, the largest share first. Half of the reports about whole words select the
            words, and the other half estimate their shares. Intervals therefore hold for the words that were
            selected.

        Raises
        ------
        PlanError
            For another column, and for released columns in `by` or `where`.
        """
        return self._answer(self._questions(where, every).top(column, most, by))

    def _questions(self, where: Where | None, every: str | None = None) -> Questions:
        return Questions(self.plan, self._options, where, every)

    def _answer(self, question: Question) -> TableAnswer:
        """Return the answer of a question, for which the table is read once."""
        counting, row = next(question), 1
        for table in rows_of(self._source, counting.names, self.plan.digest):
            counting.update(table, row)
            row += table.num_rows
        return answered(question, counting)
