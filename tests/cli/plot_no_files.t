plot --out without the library that writes files: the curves are still drawn in the terminal.
Needs no cairo.

  $ cat > metrics.csv <<'END'
  > variant,site,layer,head,metric,value,stderr,n,depth,tokens
  > full,blocks.0.hook_resid_pre,0,,residual_l1inf_rel,1,0.1,4,0,all
  > full,blocks.0.hook_resid_post,0,,residual_l1inf_rel,0.5,0.1,4,1,all
  > full,blocks.1.hook_resid_post,1,,residual_l1inf_rel,0.25,0.1,4,2,all
  > full,blocks.1.hook_resid_post,1,,residual_l1inf_rel,9,0.1,4,2,content
  > -skip,blocks.0.hook_resid_post,0,,residual_l1inf_rel,0.1,0.01,4,1,all
  > -skip,blocks.1.hook_resid_post,1,,residual_l1inf_rel,0.001,0.0001,4,2,all
  > END
  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --out fig.svg
  error: this program was built without cairo and draws no files
    in   fig.svg
    try  leave --out away for a plot in the terminal, or install libcairo2-dev and build again
  [1]
  $ ls
  metrics.csv
