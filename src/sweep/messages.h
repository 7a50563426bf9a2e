// What coordinator and workers say to each other, as JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "sweep/schedule.h"

namespace rankscope {

/// From a worker: "ask" for a stack, "alive" while it runs one, "finished" for a trial, "idle" after a stop,
/// "broken" with a reason when it can do nothing here. From the coordinator: "stack", "wait", "stop", "end".
struct Note {
  std::string kind = {};
  std::string owner = {};                                 // of a worker
  std::string reason = {};                                // broken, finished
  std::string runner = {}, folder = {};                   // stack
  std::vector<std::pair<std::string, Config>> jobs = {};  // stack
  std::string id = {};                                    // finished
  Outcome outcome = {};                                   // finished
  double seconds = 0;                                     // finished, alive
  RunProgress progress = {};                              // alive
};

std::string to_text(const Note& note);
Note parse_note(const std::string& text);

}  // namespace rankscope
