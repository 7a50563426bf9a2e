// Stands in for the tokenizer in builds without ICU.
#include "base/error.h"
#include "text/tokenizer.h"

namespace rankscope {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  throw Error("this build has no tokenizer, because ICU was not found when it was made")
      .in(folder.string())
      .hint("pass --token-ids, or build with ICU (apt install libicu-dev)");
}

}  // namespace rankscope
