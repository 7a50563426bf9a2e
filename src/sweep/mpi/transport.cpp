// Transport over MPI. Errors return instead of aborting: a worker that died is the coordinator's business.
#include "sweep/transport.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <list>
#include <thread>

#include "base/error.h"
#include "base/version.h"

namespace rankscope {
namespace {

constexpr int kTag = 1;
constexpr unsigned kPatience = 10;  // seconds that MPI_Finalize may take
int exit_status = 0;                // what the process ends with, once that is known

void require(int code, const char* what) {
  if (code != MPI_SUCCESS) throw Error(fmt::format("MPI cannot {} (code {})", what, code));
}

class MpiTransport : public Transport {
 public:
  MpiTransport() {
    int given = 0;
    require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "start");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    require(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "say who this is");
    require(MPI_Comm_size(MPI_COMM_WORLD, &size_), "say how many there are");
  }
  // A message to a dead process is never taken: then MPI_Finalize would wait for it for ever, and is left
  // out. It also waits for every process to come, and a dead one sometimes counts among those: after a while
  // this process leaves all the same, with the status it has.
  ~MpiTransport() override {
    for (int i = 0; i < 100 && !forget_sent(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!sending_.empty()) return;
    std::signal(SIGALRM, [](int) { ::_exit(exit_status); });
    ::alarm(kPatience);
    MPI_Finalize();
    ::alarm(0);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, const std::string& text) override {
    Sending& s = sending_.emplace_back(Sending{text, MPI_REQUEST_NULL});
    const int code = MPI_Isend(s.text.data(), static_cast<int>(s.text.size()), MPI_BYTE, to, kTag,
                               MPI_COMM_WORLD, &s.request);
    if (code != MPI_SUCCESS) sending_.pop_back();  // its lease will end
    forget_sent();
  }

  // Polls: a blocking probe spins on a core that the workers could use.
  std::optional<Message> receive(double seconds) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      forget_sent();
      int there = 0;
      MPI_Status status;
      if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status) == MPI_SUCCESS && there != 0) {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        Message out{status.MPI_SOURCE, std::string(static_cast<size_t>(bytes), '\0')};
        if (MPI_Recv(out.text.data(), bytes, MPI_BYTE, out.from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
            MPI_SUCCESS)
          return out;
      }
      if (std::chrono::steady_clock::now() >= end) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  struct Sending {
    std::string text;
    MPI_Request request;
  };

  bool forget_sent() {
    for (auto s = sending_.begin(); s != sending_.end();) {
      int sent = 0;
      MPI_Test(&s->request, &sent, MPI_STATUS_IGNORE);
      s = sent != 0 ? sending_.erase(s) : std::next(s);
    }
    return sending_.empty();
  }

  int rank_ = 0, size_ = 1;
  std::list<Sending> sending_;  // their text must stay where it is until it is sent
};

}  // namespace
}  // namespace rankscope

extern "C" rankscope::Transport* rankscope_mpi(const char* version) {
  if (rankscope::version() != version) return nullptr;
  static rankscope::MpiTransport transport;
  // Runs before the transport goes: what was registered last comes first.
  [[maybe_unused]] static const int noted =
      on_exit([](int status, void*) { rankscope::exit_status = status; }, nullptr);
  return &transport;
}
