plot --out: figures for papers.
Needs cairo.

  $ cp "$TREE"/tests/cli/tables/metrics.csv .
  $ rankscope plot metrics.csv --x depth --y residual_l1inf_rel --site resid_post --by variant --band stderr --log --size 3.25x2.2in --out fig.svg
  wrote fig.svg
  $ grep -o '<svg [^>]*width="[^"]*" height="[^"]*"' fig.svg | grep -o 'width.*'; grep -c '<text\|font-family\|href="http' fig.svg
  width="234pt" height="158.4pt"
  0
  [1]
A PDF brings its font along, with what each letter means: its text can be searched.

  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --out fig.pdf --quiet; head -c 8 fig.pdf; echo; for word in FontFile ToUnicode; do grep -aq "/$word" fig.pdf && echo $word; done
  %PDF-1.4
  FontFile
  ToUnicode

  $ ls
  fig.pdf
  fig.svg
  metrics.csv

Tables of studies have their results in columns; rows with the same x become their mean.

  $ cp "$TREE"/tests/cli/tables/trials.csv .
  $ rankscope plot trials.csv --x rank --y test_mse --by state --log-x --out s.svg; ls s.svg
  wrote s.svg
  s.svg
