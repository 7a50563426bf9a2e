Results replace those of the same command, and no others without being told to.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert; echo 3 4 5 6 7 8 9 10 > ids.txt
  $ rankscope scan bert --token-ids ids.txt --out results --quiet > /dev/null
  $ rankscope scan bert --token-ids ids.txt --out results --quiet > /dev/null; echo $?
  0
  $ rankscope scan bert --token-ids ids.txt --dtype float64 --out results
  error: this folder holds the results of another command: rankscope scan bert --token-ids ids.txt --out results --quiet
    in   --out results
    try  another --out, or --force to replace them
  [2]
  $ rankscope collapse bert --token-ids ids.txt --out results 2>&1 | head -1
  error: this folder holds the results of another command: rankscope scan bert --token-ids ids.txt --out results --quiet
  $ rankscope scan bert --token-ids ids.txt --dtype float64 --out results --force --quiet > /dev/null; grep -c float64 results/manifest.json
  2
  $ rankscope scan bert --token-ids ids.txt --dtype float64 --out results --quiet > /dev/null; echo $?
  0
  $ rm results/manifest.json; rankscope scan bert --token-ids ids.txt --out results 2>&1 | head -1
  error: this folder holds the results of another command: an unknown command

What earlier results left goes with them; what stands where there were none is somebody else's.

  $ mkdir mine; echo mine > mine/patterns-mine.safetensors
  $ rankscope scan bert --token-ids ids.txt --lens residual --out mine --quiet > /dev/null; ls mine
  manifest.json
  metrics.csv
  patterns-mine.safetensors
  report.html
  samples.csv

Neither goes a study for a scan, nor its page without being told to; and a study goes nowhere where a scan is.

  $ rankscope study run quick d=4 rank=4 --seeds 1 --steps 5 test_sequences=64 --threads 1 --out studied -q > /dev/null; rankscope study export studied --to exported -q
  $ rankscope scan bert --token-ids ids.txt --out studied
  error: this folder holds the study quick
    in   --out studied
    try  another --out, or --force to write beside it and replace report.html
  [2]
  $ rankscope collapse bert --token-ids ids.txt --out exported 2>&1 | head -1; ls exported
  error: this folder holds the study quick
  published.csv
  study.json
  summary.csv
  trials.csv
  $ rankscope study run quick --out mine
  error: this folder holds the results of another command: rankscope scan bert --token-ids ids.txt --lens residual --out mine --quiet
    in   --out mine
    try  another --out
  [2]
  $ rankscope study export studied --to mine 2>&1 | tail -2; ls mine | grep -c study
    in   --to mine
    try  another --to
  0
  [1]
  $ rankscope scan bert --token-ids ids.txt --out studied --force --quiet > /dev/null; rankscope study status studied | tail -1
  1 of 1 done, 0 pending, 0 running, 0 failed
