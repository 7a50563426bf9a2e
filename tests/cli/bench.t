Training beside LibTorch and the machine's limit, in one table. Times are masked: what is promised is the form.

  $ cat > masked <<'END'
  > sed 's/-\{0,1\}[0-9][0-9.]*e[-+][0-9]*\*\{0,1\}/N/g; s/\([ ]\)-\{0,1\}[0-9][0-9.]*\*\{0,1\}/\1N/g; s/  */ /g'
  > END
  $ rankscope bench --quick --threads 1 --case 'W=1 heads=8' --case 'r=8 back' | sh masked
  cpu, N thread, LibTorch N: products N GFLOP/s, copies N GB/s

  ms ours eager best limit /eager /best /limit
  L=1 W=1 heads=8 N N N N N N N
  attention r=8 back N N N N N N N

How the step grows with one quantity, the others fixed.

  $ rankscope bench --quick --threads 1 --growth --case heads | sed -n '3,$p' | sh masked
  heads N N N N N N N
  ms a step N N N N N N N
  slope N, of the counted FLOPs N

Attention that is not softmax, beside softmax, as texts get longer: only for those who ask, because the long form takes minutes.

  $ rankscope bench --quick --threads 1 --case 'variants decay' | sed -n '3,$p' | sh masked
  decay forth, ms N N
  ours N N
  composed N N
  softmax N N
  limit N N
  4 heads of N; slope N; faster than softmax from N tokens on, C(D + p, p) = N
  of the matrix rate: ours N%, softmax N%; off float64 by N, composed N

  decay back, ms N N
  ours N N
  composed N N
  softmax N N
  limit N N
  4 heads of N; slope N; faster than softmax from N tokens on, C(D + p, p) = N
  of the matrix rate: ours N%, softmax N%; off float64 by N, composed N

For programs: one object, and a folder that keeps it.

  $ rankscope bench --quick --threads 1 --case 'r=64 forth' --json --out out > a.json && cmp a.json out/bench.json
  wrote out/bench.json
  $ grep -c '"ours_over_limit": [0-9]' a.json; grep '"case"\|"fault"\|"command"' a.json
  1
        "case": "attention r=64 forth",
        "fault": null,
    "command": "rankscope bench --quick --threads 1 --case r=64 forth --json --out out",

What is wrong is said before anything is timed.

  $ rankscope bench --case 'L=1 W=1 heads=9'
  error: there is no case "L=1 W=1 heads=9"
    try  L=1 W=1 heads=1, L=1 W=1 heads=8, L=1 W=1 heads=64
  [2]
  $ rankscope bench --growth --case depth
  error: there is no case "depth"
    try  width, heads, stack
  [2]
  $ rankscope bench --precision fp16
  error: there is no precision "fp16"
    try  fp32, tf32
  [2]
  $ rankscope bench --device gpu
  error: there is no device "gpu"
    try  cpu, cuda, cuda:0
  [2]
