choose: heads for a Transformer of a given size, without torch.

  $ export RANKSCOPE_LIBRARY=/nowhere.so; rankscope choose --width 1024 --layers 24 --heads 4,8,16,32
   heads   rank  parameters  FLOP/token  KV/token    bound     proxy (95 %)
       4    256      302.3M      704.6M    98.3kB   0.1781   0.518 +- 0.004
       8    128      302.3M      704.6M    98.3kB   0.1807   0.676 +- 0.004
      16     64      302.3M      704.6M    98.3kB   0.1813   0.841 +- 0.006
      32     32      302.3M      704.6M    98.3kB   0.1815   0.875 +- 0.003

  Parameters, FLOPs and cache are the same for every choice: heads times rank is
  the width.
  The bound does not tell these choices apart: it lies between 0.1781 and 0.1815.
  It is about one layer and two points; at this width all of these ranks are low.
  The trained proxy (width 64, 3 layers, 10,000 steps: `layers=3 width=1` of the
  study fig1, 3 seeds, heads times rank always 64) tells them apart: 0.518 with 4
  heads, 0.875 with 32, a difference known to 0.005 (95 %, over seeds and test
  sets). That holds for the proxy: a task that needs rank (find the farthest of 16
  points), at a fixed number of steps. Another task, size or budget may not care.
  $ export RANKSCOPE_LIBRARY=/nowhere.so; rankscope choose --width 768 --layers 12 --heads 12 --json | head -6
  {
    "choices": [
      {
        "flops_per_token": 207618048.0,
        "heads": 12,
        "kv_bytes_per_token": 36864.0,

What was not trained is marked, and said.

  $ rankscope choose --width 768 --layers 12 --heads 12,16 | sed -n '2,5p'
      12     64      85.05M      207.6M   36.86kB   0.1811  ~0.772 +- 0.100
      16     48      85.05M      207.6M   36.86kB   0.1813   0.841 +- 0.006
  ~ not trained: interpolated, in the logarithm of the rank, between the nearest
    ranks that were; +- reaches to the far ends of both

Where the bound is zero for all of them it says so.

  $ rankscope choose --width 2 --layers 1 --heads 1,2 | grep -A1 'The bound'
  The bound does not tell these choices apart: it forbids nothing to any of them.
  The trained proxy (width 64, 3 layers, 10,000 steps: `layers=3 width=1` of the

What cannot be is refused with the number named.

  $ rankscope choose --width 1024 --layers 24 --heads 4,12
  error: 12 heads do not divide the width 1024
    in   --heads
  [2]
  $ rankscope choose --width 1024 --layers 24 --heads 8,16 --kv-heads 16
  error: 16 key-value heads do not divide 8 heads
    in   --kv-heads
  [2]
  $ rankscope choose --width 1024 --layers 24 --heads 4,8,4
  error: 4 heads are given twice: a choice is compared with others, not with itself
    in   --heads
    try  give every choice once
  [2]
  $ rankscope choose --width 1024 --layers 24 --heads 4,,8
  error: there is nothing between two commas
    in   --heads 4,,8
  [2]
  $ for heads in ,4 4, ""; do rankscope choose --width 1024 --layers 24 --heads "$heads" 2>&1 | head -1; done
  error: there is nothing before the first comma
  error: there is nothing behind the last comma
  error: an empty word stands behind it
  $ rankscope choose --width 1024 --layers 24 --heads 4 8
  error: there is no place for 8
    try  rankscope choose --help
  [2]
  $ rankscope choose --width 1024 --layers 24 --heads 4 -- 8 2>&1 | head -1
  error: there is no place for 8
  $ rankscope choose --width 1024 --layers 24 --heads 4 --heads 8,16 | awk 'NR < 5 {print $1}'
  heads
  4
  8
  16
