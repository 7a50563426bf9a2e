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
