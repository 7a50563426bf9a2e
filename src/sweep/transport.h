// Messages between the processes of one sweep. MPI is one way to carry them (sweep/mpi/, a library of its
// own, loaded only under mpirun or srun); tests have another.
#pragma once

#include <optional>
#include <string>

namespace rankscope {

struct Message {
  int from = 0;
  std::string text;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Never waits for the receiver, who may be dead.
  virtual void send(int to, const std::string& text) = 0;
  /// The next message, waiting for it at most this long.
  virtual std::optional<Message> receive(double seconds) = 0;
};

}  // namespace rankscope

/// The door of librankscope_mpi.so, found by name with dlsym: null when it belongs to another version. The
/// first call starts MPI, leaving the scope of the process ends it.
extern "C" rankscope::Transport* rankscope_mpi(const char* version);
