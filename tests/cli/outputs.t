--out writes a folder of results, and says so where --quiet does not forbid it.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  $ rankscope scan bert --random-tokens --samples 2 --off skip --out results/bert --format csv > printed.csv
  wrote results/bert/report.html, metrics.csv, samples.csv, manifest.json
  $ ls results/bert
  arrays.safetensors
  manifest.json
  metrics.csv
  patterns.safetensors
  report.html
  samples.csv
  $ head -1 results/bert/metrics.csv; head -1 results/bert/samples.csv; cmp printed.csv results/bert/metrics.csv
  variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream
  variant,site,layer,head,metric,tokens,sample,value,stream,depth
  $ awk -F, 'NF != 11 { print }' results/bert/metrics.csv; awk -F, 'NF != 10 { print }' results/bert/samples.csv; cut -d, -f1-7,9,10 results/bert/samples.csv | sort | uniq -d
  $ cut -d, -f1 results/bert/metrics.csv | sort -u
  -skip
  full
  variant
  $ grep -c . results/bert/manifest.json | awk '{ print ($1 > 10) }'; grep -o '"seed": [0-9]*' results/bert/manifest.json
  1
  "seed": 0
  $ rankscope scan bert --random-tokens --samples 2 --lens residual --layers 0,2 --json --quiet --out results/bert --force > all.json; grep -o '^"[a-z]*": ' all.json; head -c 13 all.json; echo; tail -c 4 all.json
  "notes":
  "verdict":
  "metrics":
  {"manifest":

  ]}
  $ grep -o '"layer":[0-9]' all.json | sort -u; ls results/bert
  "layer":0
  "layer":2
  manifest.json
  metrics.csv
  report.html
  samples.csv

A place that cannot be written is refused before the work, and leaves nothing.

  $ echo text > file
  $ rankscope scan bert --random-tokens --out file
  error: cannot make the folder: "file" is a file
    in   file
    try  choose another --out
  [1]
  $ rankscope scan bert --random-tokens --out file/below
  error: cannot make the folder: "file" is a file
    in   file/below
    try  choose another --out
  [1]
  $ rankscope scan nowhere --random-tokens --out never
  error: there is no such folder
    in   nowhere
    try  check the path; a name on a hub is downloaded first: hf download nowhere --local-dir nowhere
  [1]
  $ ls -d never 2>/dev/null || echo absent
  absent
  $ rm file; ls
  all.json
  bert
  printed.csv
  results

A full disk: an error, and nothing that looks like a result. (A limit on the size of files stands in for the disk.)

  $ (trap '' XFSZ; ulimit -f 4; rankscope scan bert --random-tokens --samples 2 --out full/disk)
  error: cannot write the file: File too large
    in   full/disk/patterns.safetensors
    try  ulimit -f sets how large a file may become
  [1]
  $ ls -d full 2>/dev/null || echo absent
  absent
  $ rankscope scan bert --random-tokens --samples 2 --lens residual > /dev/full
  error: cannot write the results
    in   standard output
    try  check the disk behind it
  [1]
  $ rankscope inspect bert > /dev/full
  error: cannot write the results
    in   standard output
    try  check the disk behind it
  [1]

A reader that has enough is no failure.

  $ rankscope lenses --json | head -1
  [
  $ { rankscope lenses; echo $? > code; } | true; cat code
  0
  $ { rankscope scan bert --random-tokens --samples 2 --format csv; echo $? > code; } | head -1; cat code
  variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream
  0
