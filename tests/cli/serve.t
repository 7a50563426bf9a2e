serve: a folder on loopback. What it answers is tested in web/tests/serve.test.mjs.

  $ cp -r "$TREE/tests/fixtures/study" study
  $ timeout 2 rankscope serve study --port 0 | sed 's/:[0-9]\{1,\}/:N/'
  for this machine only, until Ctrl-C
  http://127.0.0.1:N/

The list says which command wrote a folder.

  $ for kind in scan plan paths; do mkdir -p all/$kind; cp "$TREE/tests/fixtures/results/schema2/metrics.csv" all/$kind; echo "{\"command\": \"rankscope $kind bert\"}" > all/$kind/manifest.json; done
  > rankscope serve all --port 0 -q > list & pid=$!
  > while [ ! -s list ]; do sleep 0.1; done; port=$(sed 's/.*:\([0-9]*\).*/\1/' list)
  > bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; printf 'GET / HTTP/1.0\r\nHost: 127.0.0.1:$port\r\n\r\n' >&3; grep -ao '\"kind\": *\"[a-z]*\"' <&3"; kill $pid
  "kind":"paths"
  "kind":"plan"
  "kind":"scan"

What cannot be served is refused.

  $ rankscope serve nowhere
  error: there is no such folder
    in   nowhere
    try  check the path
  [1]
  $ mkdir waiting; timeout 2 rankscope serve waiting --port 0 | sed 's/:[0-9]\{1,\}/:N/'
  there are no results here yet: the page shows them when they come
  for this machine only, until Ctrl-C
  http://127.0.0.1:N/
  $ rankscope serve "$TREE/models/builtin" 2>&1 | sed "s|$TREE|T|"
  error: this is a model, and there are no results of it here
    in   T/models/builtin
    try  rankscope scan MODEL --out FOLDER writes some, and rankscope serve FOLDER shows them
  $ rankscope serve study --port 65536
  error: --port: expected a whole number from 0 to 65535, but got "65536"
    try  rankscope serve --help
  [2]

A port that is taken is not shared.

  $ (timeout 4 rankscope serve study --port 0 -q > url &) ; while [ ! -s url ]; do sleep 0.1; done; port=$(sed 's/.*:\([0-9]*\).*/\1/' url); timeout 2 rankscope serve study --port $port 2>&1 | sed "s/ $port / N /"
  error: cannot listen on port N of 127.0.0.1
    try  another --port; 0 takes a free one

Where no descriptor is left for who knocks, it waits for one and does not spin; when the silent clients are gone, it answers.

  $ bash -c 'ulimit -n 16; exec rankscope serve study --port 0 -q' > full & pid=$!
  > while [ ! -s full ]; do sleep 0.1; done; port=$(sed 's/.*:\([0-9]*\).*/\1/' full)
  > bash -c "for i in {1..24}; do exec {held}<>/dev/tcp/127.0.0.1/$port; done; sleep 1"
  > awk '{ print ($14 + $15 < 30 ? "waits" : "spins: " $14 + $15) }' /proc/$pid/stat
  > bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; printf 'GET /nope HTTP/1.0\r\nHost: 127.0.0.1:$port\r\n\r\n' >&3; head -1 <&3"; kill $pid
  waits
  HTTP/1.1 404 Not Found
