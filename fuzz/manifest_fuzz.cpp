// Any text as the manifest.json of a scan: refused with an Error, or results that can be shown.
#include "json_mutator.h"
#include "report/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  static const fuzz::Scratch folder;
  static const auto table = folder.put("metrics.csv",
                                       "variant,site,layer,head,metric,value,stderr,n,depth,tokens,"
                                       "stream\nfull,resid_post,0,,x,1,0,1,1,all,\n");
  fuzz::reading([&] {
    folder.put("manifest.json", fuzz::text_of(data, size));
    const SavedResults results = read_results(folder.path());
    if (results.table.rows.size() != 1 || results.view().name != folder_name(folder.path())) std::abort();
    for (const Sentence& sentence : results.verdict)
      if (sentence.text.size() > size) std::abort();
  });
  return 0;
}
