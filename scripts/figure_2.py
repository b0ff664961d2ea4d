"""Figure 2 (sec. 4.2): the systems in CNN/DailyMail's place, the rows of table 2.

python scripts/figure_2.py [--results results] [--size preview] [overrides of the suite]
"""

from __future__ import annotations

import sys

from drawing import Drawing
from drawing.systems import systems_figure

from specfit.report.artifact import main
from specfit.report.reader import ResultsReader


def make(reader: ResultsReader) -> Drawing:
    return systems_figure(
        reader, "figure_2", "table_2", "Figure 2: CNN/DailyMail's place, main profile"
    )


if __name__ == "__main__":
    sys.exit(main(make, __doc__))
