// A process that asks for stacks and runs them. The runner has a thread of its own; this one talks, so that
// the coordinator hears from it however long a step takes.
#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/held_folder.h"
#include "sweep/cluster.h"
#include "sweep/messages.h"

namespace rankscope {
namespace {

constexpr double kPause = 0.02;  // seconds between two looks at the messages

bool stopped(const SweepOptions& options) { return options.stop != nullptr && options.stop->load(); }

class Worker {
 public:
  Worker(const std::vector<const Runner*>& runners, const SweepOptions& options, Transport& transport)
      : runners_(runners), options_(options), transport_(transport), owner_(owner_name()) {}

  void run() {
    while (!over_) {
      say({.kind = "ask"});
      const std::optional<Note> answer = hear(options_.lease_seconds);
      if (!answer) throw Error("the process that keeps the store does not answer any more");
      if (answer->kind == "end") return;
      if (answer->kind == "stack") carry_out(*answer);
      if (stop_ || stopped(options_)) return say({.kind = "idle"});
      if (answer->kind == "wait") std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

 private:
  void say(Note note) {
    note.owner = owner_;
    transport_.send(0, to_text(note));
  }
  std::optional<Note> hear(double seconds) {
    const std::optional<Message> message = transport_.receive(seconds);
    return message ? std::optional(parse_note(message->text)) : std::nullopt;
  }

  void carry_out(const Note& order) {
    const Runner& runner = find_runner(runners_, order.runner, order.folder);
    std::vector<TrialJob> jobs;
    const HeldFolder store(order.folder);
    for (const auto& [id, config] : order.jobs)
      jobs.push_back({id, complete(runner.keys, config, order.folder), store.make({"trials", id})});
    std::vector<TrialStack> stacks;
    try {
      stacks = plan_stacks(runner, jobs, options_.device);  // what fits here is known only here
    } catch (const Error& fault) {
      say({.kind = "broken", .reason = fault.message()});
      over_ = true;
      return;
    }
    for (const TrialStack& stack : stacks)
      if (!stop_) talk_while_running(runner, stack);
  }

  void talk_while_running(const Runner& runner, const TrialStack& stack) {
    SweepOptions inner = options_;
    inner.stop = &stop_;
    alive_ = {.kind = "alive"};
    std::future<void> running = std::async(std::launch::async, [&] {
      run_stack(
          runner, stack, inner,
          [&](const RunProgress& progress, double seconds) {
            const std::scoped_lock lock(mutex_);
            alive_ = {.kind = "alive", .seconds = seconds, .progress = progress};
          },
          [&](const TrialJob& job, const Outcome& outcome, double seconds) {
            const std::scoped_lock lock(mutex_);
            results_.push_back({.kind = "finished",
                                .reason = outcome.reason,
                                .id = job.id,
                                .outcome = outcome,
                                .seconds = seconds});
          });
    });
    const auto period = std::chrono::duration<double>(std::min(options_.lease_seconds / 4, 1.0));
    auto told = std::chrono::steady_clock::now();
    while (running.wait_for(std::chrono::duration<double>(kPause)) != std::future_status::ready) {
      if (stopped(options_)) stop_ = true;
      if (const std::optional<Note> note = hear(0); note && (note->kind == "stop" || note->kind == "end"))
        stop_ = true;
      pass_on_results();
      if (std::chrono::steady_clock::now() - told < period) continue;
      told = std::chrono::steady_clock::now();
      const std::scoped_lock lock(mutex_);
      say(alive_);
    }
    pass_on_results();
    running.get();
  }

  void pass_on_results() {
    const std::scoped_lock lock(mutex_);
    for (const Note& note : results_) say(note);
    results_.clear();
  }

  const std::vector<const Runner*>& runners_;
  const SweepOptions& options_;
  Transport& transport_;
  std::string owner_;
  std::atomic<bool> stop_{false};
  bool over_ = false;
  std::mutex mutex_;  // between the runner's thread and this one
  Note alive_;
  std::vector<Note> results_;
};

}  // namespace

void work(const std::vector<const Runner*>& runners, const SweepOptions& options, Transport& transport) {
  Worker(runners, options, transport).run();
}

}  // namespace rankscope
