serve without the library that serves.
Needs no cpp-httplib.

  $ cp -r "$TREE/tests/fixtures/study" study
  $ rankscope serve study --port 0
  error: this program was built without cpp-httplib and serves nothing
    try  rankscope report writes the same page to a file; or install libcpp-httplib-dev and build again
  [1]
