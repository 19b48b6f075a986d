"""The page of all figures: ``report.html``, self-contained, from the documents that the figures left."""

from __future__ import annotations

from bitldp_papers.page.page import write_page

__all__ = ["write_page"]
