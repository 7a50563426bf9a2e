serve: a folder on loopback. What it answers is tested in web/tests/serve.test.mjs.

  $ cp -r "$TREE/tests/fixtures/study" study
  $ timeout 2 rankscope serve study --port 0 | sed 's/:[0-9]\{1,\}/:N/'
  for this machine only, until Ctrl-C
  http://127.0.0.1:N/

What cannot be served is refused.

  $ rankscope serve nowhere
  error: there is no such folder
    in   nowhere
    try  check the path
  [1]
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
