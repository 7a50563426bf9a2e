#include "pass/same_vocabulary.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "text/tokenizer.h"

namespace rankscope {

void require_same_vocabulary(const std::filesystem::path& model, const std::filesystem::path& baseline,
                             const std::vector<Sample>& samples) {
  const std::filesystem::path ours = files_of(model), theirs = files_of(baseline);
  if (tokenizer_files(ours).empty() || tokenizer_files(theirs).empty()) return;
  const auto first = load_tokenizer(ours), second = load_tokenizer(theirs);
  std::set<int64_t> ids;
  for (const Sample& s : samples) ids.insert(s.ids.begin(), s.ids.end());
  for (const int64_t id : ids)
    if (const std::string a = first->token(id), b = second->token(id); a != b)
      throw usage_error(
          fmt::format("the baseline has another tokenizer: id {} is \"{}\" there and \"{}\" in the model", id,
                      printable(b, 40), printable(a, 40)))
          .in("--baseline " + baseline.string())
          .hint("scan each by itself; numbers of different tokens are no baseline for each other");
}

}  // namespace rankscope
