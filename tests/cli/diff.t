diff: two scans of the same tokens, pair by pair.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > ln -s "$TREE/tests/fixtures/models/bert-base-noprefix" other
  > printf '3 4 5 6 7 8 9 10 11 12\n13 14 15 16 17 18 19 20\n1 2 3 4 5 6 7 8 9\n' > ids.txt
  > rankscope scan bert --token-ids ids.txt --out a --quiet > /dev/null; rankscope scan other --token-ids ids.txt --out b --quiet > /dev/null
  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope diff a a | sed 's/[0-9]\{2,\}/N/g'
  a -> a: N rows compared pair by pair
  they are identical: every number is the same
  $ rankscope diff a b --top 3 > table.txt; sed -n '1p; /^layers/p; /^heads/p' table.txt | sed 's/[0-9]\{1,\}/N/'
  a -> b: N rows compared pair by pair
  layers: N clear changes
  heads: N clear changes
  $ sed -n '/^heads/,/^$/p' table.txt | wc -l; awk 'length($0) > 84' table.txt
  8
  $ sed -n '/^layers/,/^$/p' table.txt | sed -n '2p' | grep -c ' at L[0-9]* .*hook_'; sed -n '/^layers/,/^$/p' table.txt | sed -n '3p' | grep -c ' -> .* ± .* standard errors$'; grep -c 'sink_position\|massive_token' table.txt
  1
  1
  0
  [1]
  $ rankscope diff a b --out diff.html > /dev/null; grep -c '"diff":{"a":"a","b":"b"' diff.html
  wrote diff.html
  1

Results of older programs are read; a metric that a bug fix changed in between is named.

  $ rankscope diff "$TREE/tests/fixtures/results/schema1" "$TREE/tests/fixtures/results/schema2" | head -3
  schema1 -> schema2: 99 rows compared pair by pair
  they are identical: every number is the same
  $ cp -r a fixed; sed -i 's/"attention_entropy": 1/"attention_entropy": 2/' fixed/manifest.json; rankscope diff a fixed | head -4 | sed 's/[0-9]\{2,\}/N/g'
  a -> fixed: N rows compared pair by pair
  note: attention_entropy has version 1 in the first and 2 in the second: a bug
  fix changed its numbers, scan both with one program
  they are identical: every number is the same
  $ rm -r fixed

Scans of different tokens have nothing to do with each other.

  $ rankscope scan bert --random-tokens --samples 2 --out c --quiet > /dev/null; rankscope diff a c
  error: the two scans read different tokens
    in   a and c
    try  scan both models on the same --token-ids, or on the same --text with the same tokenizer
  [1]
  $ rankscope diff a nowhere
  error: there is no such folder
    in   nowhere
    try  check the path
  [1]
  $ for what in collapse paths; do rankscope $what bert --token-ids ids.txt --out of-$what --quiet > /dev/null; done; rankscope diff of-collapse of-paths
  error: the two have no row in common: there is nothing to compare
    in   of-collapse (collapse) and of-paths (paths)
    try  two folders of one command; rankscope report shows these side by side
  [1]
  $ rankscope diff a
  error: B is required
    try  rankscope diff --help
  [2]
  $ rm a/samples.csv; rankscope diff a b
  error: cannot open the file: No such file or directory
    in   a/samples.csv
    try  check the path
  [1]
