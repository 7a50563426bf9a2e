report: saved results as one page again, without torch.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > rankscope scan bert --random-tokens --samples 2 --out results/a --quiet > /dev/null
  > rankscope scan bert --random-tokens --samples 2 --off skip --out results/b --quiet > /dev/null
  > cp results/a/report.html first.html
  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope report results/a
  wrote results/a/report.html

It is the very page that the scan wrote, one file that names no other.

  $ cmp first.html results/a/report.html && echo same; grep -c '<script' results/a/report.html; grep -o 'src="[^"]*"\|<link[^>]*href="http[^"]*"' results/a/report.html
  same
  2
  [1]
  $ grep -o "default-src 'none'\|connect-src 'none'" results/a/report.html
  default-src 'none'
  connect-src 'none'

Several folders go side by side; the page is here or where --out says.

  $ rankscope report results/a results/b; rankscope report results/a results/b --out both.html --quiet; cmp report.html both.html && ls *.html
  wrote report.html
  both.html
  first.html
  report.html

What is no result is refused, and nothing is written.

  $ mkdir empty; rankscope report empty
  error: there is no metrics.csv
    in   empty
    try  rankscope scan MODEL --out FOLDER writes one
  [1]
  $ rankscope report nowhere --out x.html
  error: there is no such folder
    in   nowhere
    try  check the path
  [1]
  $ rankscope report results/a/metrics.csv --out x.html
  error: this is a file, not a folder
    in   results/a/metrics.csv
    try  give the folder that it is in: results/a
  [1]
  $ rankscope report first.html --out x.html 2>&1 | tail -1
    try  give the folder that it is in: .
  $ rankscope report results/a --out x.pdf
  error: the report is an HTML page
    in   x.pdf
    try  a name that ends in .html
  [2]
  $ ls x.html empty 2>/dev/null
  empty:
  [2]
  $ cp -r results/a newer; sed -i 's/"schema": 2/"schema": 7/' newer/manifest.json; rankscope report newer
  error: the results have schema 7, newer than the 2 this program reads
    in   newer/manifest.json
    try  a newer rankscope
  [1]
  $ cp -r results/a broken; echo 'full,x,zero,,m,1,,1,,all,' >> broken/metrics.csv; rankscope report broken 2>&1 | sed 's/line [0-9]*/line N/'
  error: expected a whole number, but got "zero"
    in   broken/metrics.csv, line N
  $ cp -r results/a short; printf 'full,x\n' >> short/metrics.csv; rankscope report short 2>&1 | sed 's/line [0-9]*/line N/'
  error: expected 11 cells, but the row has 2
    in   short/metrics.csv, line N
  $ cp -r results/a cut; head -c 100 results/a/arrays.safetensors > cut/arrays.safetensors; rankscope report cut 2>&1 | grep '^  in'
    in   cut/arrays.safetensors, byte 0
