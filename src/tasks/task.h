// A task draws sequences and says what the right answer is. One file of tasks/ each; everything is made on
// the device from counter-based random numbers, so a sequence is the same in any batch, on any thread, after
// any restart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_fwd.h"  // whoever handles a TaskBatch includes ATen

namespace rankscope {

/// The random numbers of one training step. Tensors have the shape [trials?, sequences, count].
class Draw {
 public:
  virtual ~Draw() = default;
  virtual at::Tensor normals(uint32_t stream, int64_t count) const = 0;
};

struct TaskSpec {
  std::string name = "farthest";
  std::string data = "iid";  // iid, ortho, doubled
  int64_t d = 64;            // width of a point
  int64_t n = 16;            // points (doubled: half of them)
  int64_t queries = 0;       // separate queries a sequence; 0: every point asks
};

/// What a step trains on, [trials] in front where several are stacked.
struct TaskBatch {
  at::Tensor tokens;   // [.., sequences, tokens, token width]
  at::Tensor queries;  // [.., sequences, queries, token width]; undefined where every token asks
  at::Tensor target;   // [.., sequences, answers, answer width]
  /// Of a set with words or labels: what stands instead of tokens and target, one sequence behind another.
  at::Tensor ids = {}, labels = {};   // [tokens of all sequences]
  std::vector<int64_t> lengths = {};  // of the sequences; empty: all alike
  int64_t sequences = 0;              // where there are ids
};

struct Task {
  std::string_view name;
  std::string_view summary;
  std::string_view queries;  // "either", "separate" (a query apart from the points) or "self"
  int64_t (*token_width)(const TaskSpec& spec);
  int64_t (*answer_width)(const TaskSpec& spec);
  int64_t (*answers)(const TaskSpec& spec);  // answers a sequence
  bool last_token = false;                   // the answer is read off the last token only
  void (*check)(const TaskSpec& spec);       // refuses what cannot be
  TaskBatch (*sample)(const TaskSpec& spec, const Draw& draw);
};

/// Every task, alphabetically (generated from the file names).
const std::vector<const Task*>& tasks();
const Task& task_named(std::string_view name);

/// Tokens a sequence has.
int64_t token_count(const TaskSpec& spec);

}  // namespace rankscope
