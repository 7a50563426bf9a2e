#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "train/constructions.h"
#include "train/curve.h"

namespace rankscope {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr double kChunkSeconds = 0.5;      // how long a request to stop may have to wait
constexpr double kCheckpointShare = 0.02;  // of the time, at most
constexpr int64_t kMostSteps = 100;        // between two looks at the clock

Saved start_of(const TrainJob& job) {
  if (auto saved = load_trial(job.folder / "checkpoint.safetensors", job.spec)) return *saved;
  Saved fresh;
  fresh.state = starting_state(job.spec);
  return fresh;
}

// What a trial may be taken for that did some steps one way and goes on another: the coarser. Steps of which
// nobody knows stay unknown beside exact ones.
std::string coarser(const std::string& before, bool tf32) { return tf32 ? "tf32" : before; }

// Over all trials.
struct StepCount {
  int64_t now = 0, before = 0;
};

class Group {
 public:
  Group(const std::vector<TrainJob>& jobs, std::vector<size_t> members, std::vector<Saved> saved,
        const TrainOptions& options, StepCount& count)
      : jobs_(jobs), members_(std::move(members)), options_(options), count_(count) {
    std::vector<TrialSpec> specs;
    std::vector<TrainState> states;
    for (size_t i = 0; i < members_.size(); ++i) {
      specs.push_back(jobs_[members_[i]].spec);
      curves_.emplace_back(jobs_[members_[i]].folder / "curve.jsonl", saved[i].state.step);
      records_.push_back(saved[i].record);
      precisions_.push_back(coarser(saved[i].precision, rounds_to_tf32(options_.stack)));
      states.push_back(std::move(saved[i].state));
    }
    step_ = states.front().step;
    dropped_.assign(members_.size(), false);
    stack_ = make_stack(specs, states, options_.stack);
  }

  /// False when stopped early.
  bool run() {
    const Protocol& p = spec().protocol;
    const double began = now();
    double saved_at = began, save_cost = 0;
    if (step_ == 0 && tests(p)) test_all();
    while (step_ < p.steps) {
      const double before = now();
      const int64_t event_at = next_event(), chunk = std::min(chunk_, event_at - step_);
      advance(chunk);
      resize_chunk(chunk, now() - before);
      share_time(now() - before);
      if (step_ == event_at) event();
      if (options_.progress) options_.progress(count_.now, count_.before, loss_);
      if (everything_dropped()) return true;
      const bool stop = options_.stop != nullptr && options_.stop->load() && step_ < p.steps;
      const double due = std::max(options_.checkpoint_seconds, save_cost / kCheckpointShare);
      if (stop || (now() - saved_at > due && step_ < p.steps)) {
        const double start = now();
        save_all();
        save_cost = now() - start;
        saved_at = now();
      }
      if (stop) return false;
    }
    finish();
    return true;
  }

 private:
  const TrialSpec& spec() const { return jobs_[members_.front()].spec; }

  int64_t next_event() const {
    const Protocol& p = spec().protocol;
    const auto after = [&](int64_t every) { return (step_ / every + 1) * every; };
    return std::min({after(p.window), tests(p) ? after(eval_interval(p)) : p.steps, p.steps});
  }

  static bool tests(const Protocol& p) { return p.test_sequences > 0; }

  void resize_chunk(int64_t done, double seconds) {
    if (done < chunk_) return;
    if (seconds < kChunkSeconds / 2) chunk_ = std::min<int64_t>(chunk_ * 2, kMostSteps);
    if (seconds > kChunkSeconds) chunk_ = std::max<int64_t>(1, chunk_ / 2);
  }

  // The time of a stack belongs to its trials in equal parts.
  void share_time(double seconds) {
    const auto alive = static_cast<double>(std::count(dropped_.begin(), dropped_.end(), false));
    for (size_t i = 0; i < members_.size(); ++i)
      if (!dropped_[i]) records_[i].seconds += seconds / alive;
  }

  void advance(int64_t count) {
    std::vector<double> sums;
    for (const Record& r : records_) sums.push_back(r.window_sum);
    const double before = sums.front();
    stack_->advance(count, sums);
    step_ += count;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (dropped_[i]) continue;
      records_[i].window_sum = sums[i];
      records_[i].window_count += static_cast<double>(count);
      count_.now += count;
    }
    if (!dropped_.front()) loss_ = (sums.front() - before) / static_cast<double>(count);
  }

  void event() {
    const Protocol& p = spec().protocol;
    drop_diverged();
    const bool test = tests(p) && (step_ % eval_interval(p) == 0 || step_ == p.steps);
    if (test) test_all();
    for (size_t i = 0; i < members_.size(); ++i) {
      if (dropped_[i]) continue;
      Record& r = records_[i];
      CurvePoint point{.step = step_,
                       .loss = r.window_sum / r.window_count,
                       .lr = learning_rate(jobs_[members_[i]].spec.protocol, step_ - 1)};
      if (test) {
        point.test_mse = r.test;
        point.test_mse_stderr = r.test_stderr;
      }
      if (step_ % p.window == 0 || step_ == p.steps) close_window(r);
      curves_[i].add(point);
    }
  }

  static void close_window(Record& r) {
    r.last_loss = r.window_sum / r.window_count;
    r.best_loss = r.windows == 0 ? r.last_loss : std::min(r.best_loss, r.last_loss);
    r.windows += 1;
    r.window_sum = r.window_count = 0;
  }

  void test_all() {
    const std::vector<Score> scores = stack_->evaluate();
    for (size_t i = 0; i < members_.size(); ++i) {
      if (dropped_[i]) continue;
      Record& r = records_[i];
      r.test = scores[i].mse;
      r.test_stderr = scores[i].stderr_;
      if (step_ == 0) r.start_test = r.test;
      if (step_ > 0 && (r.tests == 0 || r.test < r.best_test)) {
        r.best_test = r.test;
        r.best_test_step = static_cast<double>(step_);
      }
      if (step_ > 0) r.tests += 1;
    }
  }

  void drop_diverged() {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (dropped_[i] || std::isfinite(records_[i].window_sum)) continue;
      dropped_[i] = true;
      stack_->drop(i);
      TrainOutcome out{.failed = true, .record = records_[i], .step = step_, .precision = precisions_[i]};
      out.reason = fmt::format("diverged: the training loss is not finite at step {} (lr={})", step_,
                               jobs_[members_[i]].spec.protocol.lr);
      options_.finished(members_[i], out);
    }
  }

  bool everything_dropped() const {
    return std::all_of(dropped_.begin(), dropped_.end(), [](bool d) { return d; });
  }

  void save_all() {
    for (size_t i = 0; i < members_.size(); ++i)
      if (!dropped_[i])
        save_trial(jobs_[members_[i]].folder / "checkpoint.safetensors", jobs_[members_[i]].spec.network,
                   {stack_->state(i), records_[i], precisions_[i]});
  }

  void finish() {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (dropped_[i]) continue;
      const TrainJob& job = jobs_[members_[i]];
      TrainOutcome out{.record = records_[i], .step = step_, .precision = precisions_[i]};
      out.parameters = stack_->state(i).parameters;
      save_finished(job.folder / "model.safetensors", job.spec.network,
                    {out.parameters, out.step, out.record});
      options_.finished(members_[i], out);
      remove_file(job.folder / "checkpoint.safetensors");
    }
  }

  const std::vector<TrainJob>& jobs_;
  std::vector<size_t> members_;
  const TrainOptions& options_;
  StepCount& count_;
  std::vector<Curve> curves_;
  std::vector<Record> records_;
  std::vector<std::string> precisions_;
  std::vector<bool> dropped_;
  std::unique_ptr<Stack> stack_;
  int64_t step_ = 0, chunk_ = 1;
  double loss_ = 0;
};

}  // namespace

void train(const std::vector<TrainJob>& jobs, const TrainOptions& options) {
  std::map<int64_t, std::pair<std::vector<size_t>, std::vector<Saved>>> groups;  // by step
  StepCount count;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Saved saved = start_of(jobs[i]);
    count.before += saved.state.step;
    auto& [members, states] = groups[saved.state.step];
    members.push_back(i);
    states.push_back(std::move(saved));
  }
  for (auto& [step, group] : groups)
    if (!Group(jobs, std::move(group.first), std::move(group.second), options, count).run()) return;
}

}  // namespace rankscope
