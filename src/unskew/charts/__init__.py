"""Charts as SVG text, the one way in which anything is drawn here.

A chart is a value: it draws itself at any width, has the table of its numbers, shows itself in a
notebook, and saves itself as SVG, HTML or PNG. Nothing is loaded from a network.
"""

from unskew.charts.bars import Bar, BarChart
from unskew.charts.chart import Chart, Table
from unskew.charts.dots import Dot, DotChart
from unskew.charts.heat import HeatMap
from unskew.charts.lines import Line, LineChart

__all__ = ["Bar", "BarChart", "Chart", "Dot", "DotChart", "HeatMap", "Line", "LineChart", "Table"]
