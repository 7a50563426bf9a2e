// What can be written into a study: its runners, their keys and their results.
#pragma once

#include "cli/study.h"

namespace rankscope {

/// `study keys`, and with a runner in `options.study` what that one knows.
int study_keys(const StudyOptions& options, Io& io);

}  // namespace rankscope
