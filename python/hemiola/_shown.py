"""How results look in a notebook."""

from __future__ import annotations

import html


class Shown:
    """In a notebook it is what ``print`` shows."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def html_table(head: list[str], rows: list[list[str]], left: int) -> str:
    """Columns behind the first ``left`` are numbers."""

    def line(cells: list[str], tag: str) -> str:
        styles = ["left" if i < left else "right" for i in range(len(cells))]
        return "<tr>" + "".join(f'<{tag} style="text-align:{style}">{html.escape(cell)}</{tag}>' for cell, style in zip(cells, styles)) + "</tr>"

    return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"
