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
