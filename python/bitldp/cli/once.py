"""Commands that refuse an option given twice, where only the last one would count."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["Once"]


class Once(TyperCommand):
    """A command whose options are given once, but for those that are lists."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; refuse options that are given twice."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param, times in Counter(order).items():
            # Flags without a "no" may be repeated: nothing is lost.
            single = param.param_type_name == "option" and not param.multiple
            if ctx.resilient_parsing:  # a shell that completes a line that is not yet finished
                break
            if times > 1 and single and (param.secondary_opts or not getattr(param, "is_flag", False)):
                typer.echo(f"error: {param.opts[-1]}: given {times} times, and would count once", err=True)
                raise typer.Exit(2)
        return super().parse_args(ctx, args)
