"""Figure 3 (sec. 4.3): the systems in GSM8K's place, the rows of table 3.

python scripts/figure_3.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from drawing import Drawing
from drawing.systems import systems_figure

from specfit.report.artifact import main
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Drawing:
    return systems_figure(reader, "figure_3", "table_3", "Figure 3: GSM8K's place, main profile")


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
