#include "sweep/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "base/error.h"

namespace rankscope {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool stopped(const SweepOptions& options) {
  return (options.stop != nullptr && options.stop->load()) ||
         (options.lost != nullptr && options.lost->load());
}

// What becomes of a trial is said in one line: torch puts a stack trace behind its first.
std::string reason_of(const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const Error& e) {
    return e.place().empty() ? e.message() : fmt::format("{} ({})", e.message(), e.place());
  } catch (const std::bad_alloc&) {
    return "there is not enough memory";
  } catch (const std::exception& e) {
    const std::string said = e.what();
    return said.substr(0, said.find('\n'));
  } catch (...) {
    return "an unknown fault";
  }
}

// Calls `beat` several times a lease until it goes away. What `beat` throws is kept for the end of the stack.
class Heartbeat {
 public:
  Heartbeat(double lease_seconds, std::function<void()> beat)
      : thread_([this, period = std::chrono::duration<double>(lease_seconds / 4), beat = std::move(beat)] {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, period, [this] { return over_; })) {
            try {
              beat();
            } catch (...) {
              fault_ = std::current_exception();
              return;
            }
          }
        }) {}
  ~Heartbeat() { end(); }
  void end() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  std::exception_ptr fault() const { return fault_; }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::exception_ptr fault_;
  std::thread thread_;
};

}  // namespace

void run_stack(const Runner& runner, const TrialStack& stack, const SweepOptions& options,
               const std::function<void(const RunProgress&, double seconds)>& progress,
               const std::function<void(const TrialJob&, const Outcome&, double seconds)>& record) {
  auto start = Clock::now();
  double share = 1.0 / static_cast<double>(stack.jobs.size()), before = 0;  // before: seconds a trial had
  std::vector<bool> known(stack.jobs.size(), false);
  std::atomic<bool> stop{false};     // from outside, or because nothing can be recorded any more
  std::exception_ptr cannot_record;  // not the runner's fault: the trials stay as they are
  const auto keep = [&](size_t job, const Outcome& outcome) {
    if (job >= known.size() || known[job] || cannot_record) return;
    known[job] = true;
    try {
      record(stack.jobs[job], outcome, before + seconds_since(start) * share);
    } catch (...) {
      cannot_record = std::current_exception();
      stop = true;
    }
  };
  Heartbeat watch(0.2, [&] {  // the runner sees one flag, whoever asks it to stop
    if (stopped(options)) stop = true;
  });
  size_t first = 0;  // what runs now begins with this trial of the stack
  RunContext context;
  context.device = options.device;
  context.threads = options.threads;
  context.precision = options.precision;
  context.checkpoint_seconds = options.checkpoint_seconds;
  context.stop = &stop;
  context.progress = [&](const RunProgress& p) { progress(p, seconds_since(start)); };
  context.finished = [&](size_t job, const Outcome& outcome) { keep(first + job, outcome); };
  // Why these trials have no outcome; nothing where they have one or were stopped.
  const auto fault_of = [&](std::span<const TrialJob> jobs) -> std::optional<std::string> {
    try {
      runner.run(jobs, context);
    } catch (...) {
      return reason_of(std::current_exception());
    }
    if (stopped(options)) stop = true;
    return stop ? std::nullopt : std::optional<std::string>("the runner ended without a result");
  };
  const std::optional<std::string> fault = fault_of(stack.jobs);
  const bool alone = stack.jobs.size() == 1;
  if (fault && alone) keep(0, {true, *fault, {}});
  // Nobody knows whose fault it was: each that has no outcome runs alone and gets its own.
  before = seconds_since(start) * share;
  share = 1;
  for (first = 0; fault && !alone && !stop && first < stack.jobs.size(); ++first) {
    if (known[first]) continue;
    start = Clock::now();
    const std::optional<std::string> own = fault_of(std::span(stack.jobs).subspan(first, 1));
    if (own) keep(first, {true, *own, {}});
    if (stopped(options)) stop = true;
  }
  watch.end();
  if (cannot_record) std::rethrow_exception(cannot_record);
}

SweepReport run_study(Store& store, const Runner& runner, const SweepOptions& options,
                      const std::function<void(const SweepProgress&)>& progress) {
  const std::string owner = owner_name();
  SweepReport report;
  SweepProgress state;
  store.reclaim();
  std::vector<TrialJob> pending = pending_jobs(store, runner);
  state.trials_total = static_cast<int64_t>(pending.size());
  for (const TrialStack& stack : plan_stacks(runner, pending, options.device))
    state.flops_total += stack.flops;
  const auto tell = [&] {
    if (progress) progress(state);
  };
  for (; !pending.empty() && !stopped(options); store.reclaim(), pending = pending_jobs(store, runner)) {
    TrialStack stack = plan_stacks(runner, pending, options.device).front();
    std::vector<std::string> ids;
    for (const TrialJob& job : stack.jobs) ids.push_back(job.id);
    const std::vector<std::string> ours = store.claim(ids, owner, options.device, options.lease_seconds);
    std::erase_if(stack.jobs, [&](const TrialJob& job) {
      return std::find(ours.begin(), ours.end(), job.id) == ours.end();
    });
    if (stack.jobs.empty()) continue;  // another process was faster
    const double flops_before = state.flops_done;
    std::atomic<bool> lost{false};
    SweepOptions inner = options;
    inner.lost = &lost;
    Heartbeat lease(options.lease_seconds, [&] {
      try {
        store.renew(owner, options.lease_seconds);
      } catch (...) {
        lost = true;
        throw;
      }
    });
    try {
      run_stack(
          runner, stack, inner,
          [&](const RunProgress& p, double seconds) {
            state.flops_done = flops_before + p.flops_done;
            state.flops_per_second = p.flops_done / seconds;
            state.steps_per_second = static_cast<double>(p.steps_done) / seconds;
            state.what = p.what;
            tell();
          },
          [&](const TrialJob& job, const Outcome& outcome, double seconds) {
            if (!store.finish(job.id, owner, outcome, seconds)) return;
            ++(outcome.failed ? report.failed : report.done);
            ++state.trials_done;
            tell();
          });
    } catch (...) {
      lease.end();
      try {
        store.give_back(owner);
      } catch (const Error&) {  // the first fault says more; the lease will free them
      }
      throw;
    }
    lease.end();
    store.give_back(owner);  // after a stop: what has no outcome
    if (lease.fault()) std::rethrow_exception(lease.fault());
    state.flops_done = flops_before + stack_flops(runner, stack.jobs);
  }
  const Counts counts = store.counts();
  report.left = counts.pending;
  report.elsewhere = counts.running;
  return report;
}

}  // namespace rankscope
