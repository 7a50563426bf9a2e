// The process that keeps the store.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/error.h"
#include "sweep/cluster.h"
#include "sweep/messages.h"

namespace rankscope {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What is known of one worker.
struct Peer {
  std::string owner;  // empty until it has spoken
  Clock::time_point heard = Clock::now();
  bool busy = false, ended = false;
  RunProgress progress;
  double seconds = 0;  // its stack runs for so long
};

class Coordinator {
 public:
  Coordinator(Store& store, const Runner& runner, const SweepOptions& options, Transport& transport,
              const std::function<void(const SweepProgress&)>& progress)
      : store_(store),
        runner_(runner),
        options_(options),
        transport_(transport),
        progress_(progress),
        peers_(static_cast<size_t>(transport.size())) {
    peers_[0].ended = true;  // this one
  }

  SweepReport run() {
    store_.reclaim();
    for (const TrialStack& stack : plan_stacks(runner_, pending_jobs(store_, runner_), "", workers())) {
      state_.trials_total += static_cast<int64_t>(stack.jobs.size());
      state_.flops_total += stack.flops;
      for (const TrialJob& job : stack.jobs)
        flops_of_[job.id] = stack.flops / static_cast<double>(stack.jobs.size());
    }
    auto looked = Clock::now();
    while (anyone_left()) {
      if (const std::optional<Message> message = transport_.receive(0.1)) answer(*message);
      if (stopped() && !told_stop_) tell_stop();
      if (seconds_since(looked) < kLook) continue;
      looked = Clock::now();
      notice_the_dead();
      store_.reclaim();
    }
    const Counts counts = store_.counts();
    if (counts.pending + counts.running > 0 && !stopped())
      throw Error(fmt::format("no worker is left, and {} trials are{}", counts.pending + counts.running,
                              broken_.empty() ? "" : ": " + broken_))
          .hint("rankscope study resume " + store_.folder().string());
    report_.left = counts.pending;
    report_.elsewhere = counts.running;
    return report_;
  }

 private:
  static constexpr double kLook = 0.5;  // seconds between two looks for the dead

  int64_t workers() const { return transport_.size() - 1; }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  bool anyone_left() const {
    for (const Peer& peer : peers_)
      if (!peer.ended) return true;
    return false;
  }

  void answer(const Message& message) {
    Peer& peer = peers_[static_cast<size_t>(message.from)];
    const Note note = parse_note(message.text);
    peer.owner = note.owner;
    peer.heard = Clock::now();
    peer.ended = false;  // perhaps it was only asleep
    if (note.kind == "ask") hand_out(message.from, peer);
    if (note.kind == "alive") {
      store_.renew(peer.owner, options_.lease_seconds);
      peer.progress = note.progress;
      peer.seconds = note.seconds;
    }
    if (note.kind == "finished" && store_.finish(note.id, note.owner, note.outcome, note.seconds)) {
      ++(note.outcome.failed ? report_.failed : report_.done);
      ++state_.trials_done;
      state_.flops_done += flops_of_[note.id];
    }
    if (note.kind == "idle" || note.kind == "broken") {
      store_.give_back(peer.owner);
      peer.ended = true;
      peer.busy = false;
      if (broken_.empty()) broken_ = note.reason;
    }
    tell();
  }

  void hand_out(int to, Peer& peer) {
    store_.give_back(peer.owner);  // who asks has nothing in hand
    peer.busy = false;
    if (stopped()) return end(to, peer);
    store_.reclaim();
    const std::vector<TrialJob> pending = pending_jobs(store_, runner_);
    if (pending.empty()) {
      if (store_.counts().running == 0) return end(to, peer);
      return transport_.send(to, to_text(Note{.kind = "wait"}));  // a stack may come back from the dead
    }
    const TrialStack stack = plan_stacks(runner_, pending, "", workers()).front();
    std::vector<std::string> ids;
    for (const TrialJob& job : stack.jobs) ids.push_back(job.id);
    Note order{.kind = "stack", .runner = std::string(runner_.name), .folder = store_.folder().string()};
    const std::vector<std::string> ours =
        store_.claim(ids, peer.owner, options_.device, options_.lease_seconds);
    for (const TrialJob& job : stack.jobs)
      if (std::find(ours.begin(), ours.end(), job.id) != ours.end())
        order.jobs.emplace_back(job.id, job.config);
    peer.busy = true;
    transport_.send(to, to_text(order));
  }

  void end(int to, Peer& peer) {
    transport_.send(to, to_text(Note{.kind = "end"}));
    peer.ended = true;
  }

  void tell_stop() {
    told_stop_ = true;
    for (size_t i = 1; i < peers_.size(); ++i)
      if (peers_[i].busy) transport_.send(static_cast<int>(i), to_text(Note{.kind = "stop"}));
  }

  void notice_the_dead() {
    for (Peer& peer : peers_) {
      if (peer.ended) continue;
      const bool silent = seconds_since(peer.heard) > options_.lease_seconds;
      if (!silent && (peer.owner.empty() || may_be_alive(peer.owner))) continue;
      peer.ended = true;  // its stack is handed out again by reclaim
      peer.busy = false;
    }
  }

  void tell() {
    if (!progress_) return;
    SweepProgress now = state_;
    for (const Peer& peer : peers_) {
      if (!peer.busy || peer.seconds <= 0) continue;
      now.steps_per_second += static_cast<double>(peer.progress.steps_done) / peer.seconds;
      now.flops_per_second += peer.progress.flops_done / peer.seconds;
      now.what = peer.progress.what;
    }
    progress_(now);
  }

  Store& store_;
  const Runner& runner_;
  const SweepOptions& options_;
  Transport& transport_;
  const std::function<void(const SweepProgress&)>& progress_;
  std::vector<Peer> peers_;
  SweepReport report_;
  SweepProgress state_;
  std::map<std::string, double> flops_of_;  // by trial, an equal part of its stack's
  std::string broken_;
  bool told_stop_ = false;
};

}  // namespace

SweepReport coordinate(Store& store, const Runner& runner, const SweepOptions& options, Transport& transport,
                       const std::function<void(const SweepProgress&)>& progress) {
  return Coordinator(store, runner, options, transport, progress).run();
}

void dismiss(Transport& transport) {
  for (int i = 1; i < transport.size(); ++i) transport.send(i, to_text(Note{.kind = "end"}));
}

}  // namespace rankscope
