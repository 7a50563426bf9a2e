// TensorBoard event files, written natively: what curve.jsonl has, as scalars.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace rankscope {

/// CRC-32C (Castagnoli), as TensorBoard's records carry it.
uint32_t crc32c(std::string_view bytes);

/// The records of one trial: a scalar for every number of every line of the curve but "step". A last line cut
/// off by a kill is left out. `wall_time` in seconds since 1970 stamps all of them.
std::string event_records(std::string_view curve_jsonl, double wall_time);

/// From trials/<id>/curve.jsonl to tensorboard/<id>/events.out.tfevents.<time>.rankscope; false when the
/// trial has no curve.
bool write_events(const std::filesystem::path& study_folder, const std::string& id, double wall_time);

}  // namespace rankscope
