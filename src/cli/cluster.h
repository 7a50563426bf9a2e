// The other processes of a sweep, where mpirun or srun started several.
#pragma once

#include "sweep/transport.h"

namespace rankscope {

/// Null for a process that was started alone; otherwise loads librankscope_mpi.so and starts MPI.
Transport* cluster();

/// True when Open MPI was not asked to go on without a dead process.
bool ends_with_its_workers();

}  // namespace rankscope
