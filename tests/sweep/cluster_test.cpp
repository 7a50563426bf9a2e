// Coordinator and workers in one process, with messages through queues.
#include "sweep/cluster.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "sweep/fake_store.h"
#include "sweep/messages.h"
#include "sweep/processes.h"

namespace rankscope::test {
namespace {

struct Post {
  explicit Post(int size) : boxes(static_cast<size_t>(size)) {}
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::deque<Message>> boxes;
};

class Queues : public Transport {
 public:
  Queues(Post& post, int rank) : post_(post), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(post_.boxes.size()); }
  void send(int to, const std::string& text) override {
    const std::scoped_lock lock(post_.mutex);
    post_.boxes[static_cast<size_t>(to)].push_back({rank_, text});
    post_.arrived.notify_all();
  }
  std::optional<Message> receive(double seconds) override {
    std::unique_lock lock(post_.mutex);
    std::deque<Message>& box = post_.boxes[static_cast<size_t>(rank_)];
    if (!post_.arrived.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !box.empty(); }))
      return {};
    const Message first = box.front();
    box.pop_front();
    return first;
  }

 private:
  Post& post_;
  int rank_;
};

class Cluster : public testing::Test {
 protected:
  // Three workers on their devices, and the coordinator here.
  SweepReport run(const std::vector<std::string>& devices, const std::atomic<bool>* stop = nullptr) {
    Post post(1 + static_cast<int>(devices.size()));
    std::vector<std::thread> workers;
    for (size_t i = 0; i < devices.size(); ++i)
      workers.emplace_back([&, i] {
        SweepOptions options;
        options.device = devices[i];
        Queues own(post, static_cast<int>(i + 1));
        work({&fake_runner()}, options, own);
      });
    SweepOptions options;
    options.stop = stop;
    Queues own(post, 0);
    SweepReport report;
    std::exception_ptr fault;
    try {
      report = coordinate(store, fake_runner(), options, own, {});
    } catch (...) {
      fault = std::current_exception();
      dismiss(own);
    }
    for (std::thread& worker : workers) worker.join();
    if (fault) std::rethrow_exception(fault);
    return report;
  }

  const TempFolder folder;
  Store store{folder.path(), true};
};

TEST_F(Cluster, AWorkerWithoutItsDeviceLeavesTheWorkToTheOthers) {
  fill(store, fake_study(3, 10, 0));
  EXPECT_EQ(run({"cpu", "cuda", "cpu"}).done, 12);
  expect_all_done_and_right(store);
}

TEST_F(Cluster, WhenNobodyCanWorkTheReasonIsSaidAndNothingFails) {
  fill(store, fake_study(1, 10, 0));
  const Error e = error_of([&] { run({"cuda", "cuda"}); });
  EXPECT_EQ(e.message(), "no worker is left, and 4 trials are: there is no device cuda");
  EXPECT_EQ(store.counts().pending, 4);
}

TEST_F(Cluster, AStopReachesTheWorkersAndTheyGiveBack) {
  fill(store, fake_study(4, 100, 5));
  std::atomic<bool> stop{false};
  std::thread later([&] {
    wait_until("a worker to take a trial", [&] { return store.counts().running > 0; });
    stop = true;
  });
  const SweepReport report = run({"cpu", "cpu"}, &stop);
  later.join();
  EXPECT_GT(report.left, 0);
  EXPECT_EQ(store.counts().running, 0);
  EXPECT_EQ(run({"cpu", "cpu"}).left, 0);
  expect_all_done_and_right(store);
}

TEST(Messages, ComeBackAsTheyWent) {
  Note order{.kind = "stack", .runner = "fake", .folder = "out/x"};
  order.jobs = {{"01", {{"rank", int64_t{8}}, {"lr", 0.1}}}};
  const Note back = parse_note(to_text(order));
  EXPECT_EQ(back.jobs, order.jobs);
  EXPECT_EQ(back.folder, "out/x");
  const Note result = parse_note(to_text(
      Note{.kind = "finished", .reason = "why", .id = "01", .outcome = {true, "why", {{"a", 0.1}}, "tf32"}}));
  EXPECT_TRUE(result.outcome.failed);
  EXPECT_EQ(result.outcome.reason, "why");
  EXPECT_EQ(result.outcome.values.at("a"), 0.1);
  EXPECT_EQ(result.outcome.precision, "tf32");
}

}  // namespace
}  // namespace rankscope::test
