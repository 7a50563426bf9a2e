plot --out without the library that writes files: the curves are still drawn in the terminal.
Needs no cairo.

  $ cp "$TREE"/tests/cli/tables/metrics.csv .
  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --out fig.svg
  error: this program was built without cairo and draws no files
    in   fig.svg
    try  leave --out away for a plot in the terminal, or install libcairo2-dev and build again
  [1]
  $ ls
  metrics.csv
