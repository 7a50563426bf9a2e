#include "base/error.h"
#include "tasks/task.h"

namespace rankscope {

const Task& task_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Task* task : tasks()) {
    if (task->name == name) return *task;
    known.emplace_back(task->name);
  }
  throw unknown_name("task", name, known);
}

int64_t token_count(const TaskSpec& spec) { return spec.data == "doubled" ? 2 * spec.n : spec.n; }

}  // namespace rankscope
