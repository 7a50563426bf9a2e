// Stands in for the tokenizer in builds without ICU or Oniguruma.
#include "base/error.h"
#include "text/tokenizer.h"

namespace rankscope {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  throw Error("this build has no tokenizer, because ICU or Oniguruma was not found when it was made")
      .in(folder.string())
      .hint("pass --token-ids, or build with both (apt install libicu-dev libonig-dev)");
}

}  // namespace rankscope
