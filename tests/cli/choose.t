choose: heads for a Transformer of a given size, without torch.

  $ export RANKSCOPE_LIBRARY=/nowhere.so; rankscope choose --width 1024 --layers 24 --heads 4,8,16,32
   heads   rank  parameters  FLOP/token  KV/token    bound      proxy error
       4    256      302.3M      704.6M    98.3kB   0.1781  0.525 +- 0.0004
       8    128      302.3M      704.6M    98.3kB   0.1807  0.742 +- 0.0126
      16     64      302.3M      704.6M    98.3kB   0.1813  0.849 +- 0.0003
      32     32      302.3M      704.6M    98.3kB   0.1815  0.876 +- 0.0003

  Parameters, FLOPs and cache are the same for every choice: heads times rank is
  the width.
  The bound does not tell these choices apart: it lies between 0.1781 and 0.1815.
  It is about one layer and two points; at this width all of these ranks are low.
  The trained proxy (width 64, 3 layers, 10,000 steps, 3 seeds; errors over seeds
  alone) tells them apart: 0.525 with 4 heads, 0.876 with 32, at the same
  parameters and FLOPs. It is a task that needs rank (find the farthest of 16
  points); one that does not will not care.
  $ export RANKSCOPE_LIBRARY=/nowhere.so; rankscope choose --width 768 --layers 12 --heads 12 --json | head -6
  {
    "choices": [
      {
        "flops_per_token": 207618048.0,
        "heads": 12,
        "kv_bytes_per_token": 36864.0,

What cannot be is refused with the number named.

  $ rankscope choose --width 1024 --layers 24 --heads 4,12
  error: 12 heads do not divide the width 1024
    in   --heads
  [2]
  $ rankscope choose --width 1024 --layers 24 --heads 8,16 --kv-heads 16
  error: 16 key-value heads do not divide 8 heads
    in   --kv-heads
  [2]
