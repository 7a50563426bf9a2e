// study list and study status.
#include <fmt/format.h>

#include <chrono>
#include <map>

#include "base/error.h"
#include "base/progress.h"
#include "cli/study.h"
#include "report/text.h"

namespace rankscope {
namespace {

int64_t points_of(const Study& study) {
  int64_t count = 1;
  for (const Axis& axis : study.grid) count *= static_cast<int64_t>(axis.points.size());
  return count;
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

int study_list(const StudyOptions&, Io& io) {
  for (const std::string& name : builtin_studies()) {
    const Study study = load_study(name);
    const std::string seeds = study.seeds > 0 ? fmt::format(" x {} seeds", study.seeds) : "";
    io.out << fmt::format("{:<24}{}\n", name, study.title);
    for (const std::string& line : wrap(study.question, 54)) io.out << fmt::format("{:24}{}\n", "", line);
    io.out << fmt::format("{:24}{} points{}, runner {}\n", "", points_of(study), seeds, study.runner);
  }
  return 0;
}

int study_status(const StudyOptions& options, Io& io) {
  const Store store = Store::look_at(options.folder);
  const Study study = store.study();
  const Counts n = store.counts();
  io.out << fmt::format("{}: {}\n", study.name, terminal_text(study.title));
  io.out << fmt::format("{} of {} done, {} pending, {} running, {} failed\n", n.done, n.all(), n.pending,
                        n.running, n.failed);
  std::map<std::string, std::pair<int64_t, double>> owners;  // how many, since when
  std::map<std::string, std::vector<std::string>> reasons;
  for (const StoredTrial& trial : store.trials()) {
    if (trial.state == TrialState::running) {
      auto& [count, since] = owners.try_emplace(trial.owner, 0, trial.started).first->second;
      ++count;
    }
    if (trial.state == TrialState::failed) reasons[trial.reason].push_back(trial.id);
  }
  for (const auto& [owner, what] : owners) {
    const std::string process = owner.substr(0, owner.find(':', owner.find(':') + 1));
    io.out << fmt::format("running: {} in {} for {}{}\n", what.first, terminal_text(process),
                          duration_text(wall_clock() - what.second),
                          may_be_alive(owner) ? "" : ", which has ended: resume goes on with them");
  }
  for (const auto& [reason, ids] : reasons)
    io.out << fmt::format("failed: {} ({}{})\n", terminal_text(reason), ids.front(),
                          ids.size() > 1 ? fmt::format(" and {} more", ids.size() - 1) : "");
  if (n.failed > 0)
    io.out << fmt::format("again: rankscope study retry {}\n", printable(options.folder, 400));
  return 0;
}

}  // namespace rankscope
