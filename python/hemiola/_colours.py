"""Colours of plots: those of the pages (web/src/theme.js; a test compares them)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from ._optional import pyplot

KNOWN = {
    "noc": "#2f6bd8", "l1": "#9cc4f5", "l2": "#6299ea", "msc": "#8bb6f2", "hbm": "#274f9e", "io": "#2aa1b3", "move": "#4a86dd",
    "link": "#e8833a", "switch": "#f0b14f", "nic": "#c65d1e", "link use": "#e07b2f",
    "launch": "#7d8a99", "dispatch": "#a7b1bc", "software": "#5a6470", "skew": "#c3c9d0", "finished": "#d9dde2",
    "issue": "#8161c9", "dma": "#6a4bb0", "proxy": "#b39ae3", "copy": "#6a4bb0", "copies": "#6a4bb0", "post": "#9a82d6",
    "barrier": "#c8455c", "sync": "#c8455c", "poll": "#e58a9b", "wait": "#e58a9b", "fence": "#9e2f5f", "flush": "#9e2f5f",
    "peer": "#d36aa8", "signal": "#d36aa8", "compute": "#2e9e5b", "kernel": "#3c8f7c", "collective": "#e8833a",
    "waiting": "#e58a9b", "host": "#7d8a99", "idle": "#d9dde2", "xpu": "#2e9e5b", "cpu": "#7d8a99", "port": "#9a82d6",
    "memory": "#6299ea", "custom": "#c3c9d0",
}  # fmt: skip
PALETTE = [
    "#2f6bd8", "#e8833a", "#8161c9", "#c8455c", "#2aa1b3", "#b98a1e", "#d36aa8", "#6d7f8f", "#9c5a3c", "#4b4fa8", "#e0a72e", "#a83279",
    "#5b8fd6", "#c77b5b", "#88939e", "#7a9a2b", "#5fb58f", "#3a9e6d",
]  # fmt: skip


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Each name its own; those that have one on every page keep it."""
    others = [name for name in names if name not in KNOWN]
    return {**KNOWN, **{name: PALETTE[i % len(PALETTE)] for i, name in enumerate(others)}}


def axes_of(axes: Any) -> Any:
    return axes if axes is not None else pyplot().subplots()[1]


def stacked_bars(axes: Any, labels: Sequence[str], bars: Sequence[Mapping[str, float]], xlabel: str, title: str) -> Any:
    """A horizontal bar per label, the first on top, of parts by name. Returns the axes."""
    axes = axes_of(axes)
    names = [name for name in dict.fromkeys(name for bar in bars for name in bar) if any(bar.get(name) for bar in bars)]
    colours, begin = colours_of(names), [0.0] * len(bars)
    for name in names:
        width = [bar.get(name, 0.0) for bar in bars]
        axes.barh(range(len(bars)), width, left=begin, label=name, color=colours[name])
        begin = [start + more for start, more in zip(begin, width)]
    axes.set_yticks(range(len(bars)), labels)
    axes.invert_yaxis()
    axes.set(xlabel=xlabel, title=title)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return axes


VERDICTS = {"proven": "#2e9e5b", "partial": "#f0b14f", "wrong": "#c8455c", "deadlock": "#9e2f5f"}


def verdict_bars(axes: Any, rows: Sequence[tuple[str, str, int, Optional[int]]]) -> Any:
    """A horizontal bar per name and verdict, the first on top, over the sizes from the first to the last one (None: all larger ones). Returns the axes."""
    axes = axes_of(axes)
    end = 4 * max([2**30, *(last or first for _, _, first, last in rows)])
    for i, (_, verdict, first, last) in enumerate(rows):
        if last == first:
            axes.plot([first], [i], marker="D", color=VERDICTS[verdict])
        else:
            axes.barh(i, (last or end) - first, left=first, color=VERDICTS[verdict])
    axes.set_yticks(range(len(rows)), [f"{name}: {verdict}" for name, verdict, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    axes.set(xlabel="size (B)", title="Sizes that a verdict holds for")
    return axes


def lines(axes: Any, series: Mapping[str, Sequence[tuple[float, float]]], xlabel: str, ylabel: str, logarithmic: bool) -> Any:
    """A line per series, with its name. Returns the axes."""
    axes = axes_of(axes)
    colours = colours_of(series)
    for name, points in series.items():
        axes.plot(*zip(*points), marker="o", label=name, color=colours[name])
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if logarithmic:
        axes.set_xscale("log", base=2)
    axes.legend(fontsize="small")
    return axes
