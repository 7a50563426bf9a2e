// The JSON header of a safetensors file, read as it is parsed and without a tree of values: memory stays in
// proportion to the number of tensors even where the header is hostile, and a name that comes twice is seen.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace rankscope {

inline constexpr size_t kLengthBytes = 8;  // the header's length, before the header
inline constexpr size_t kMaxDimensions = 16;

struct StoredTypeName {
  StoredType type;
  std::string_view name;
  size_t size;
};
inline constexpr StoredTypeName kStoredTypes[] = {
    {StoredType::f64, "F64", 8},     {StoredType::f32, "F32", 4}, {StoredType::f16, "F16", 2},
    {StoredType::bf16, "BF16", 2},   {StoredType::i64, "I64", 8}, {StoredType::i32, "I32", 4},
    {StoredType::i16, "I16", 2},     {StoredType::i8, "I8", 1},   {StoredType::u8, "U8", 1},
    {StoredType::boolean, "BOOL", 1}};

/// Types and shapes of values are checked here; what they say about the file is checked by the caller.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  struct Draft {
    std::optional<StoredType> type;
    std::optional<std::vector<int64_t>> shape;
    std::optional<std::vector<int64_t>> offsets;
  };
  explicit HeaderReader(const std::string& place) : place_(place) {}
  std::map<std::string, Draft> take() { return std::move(drafts_); }

  bool start_object(size_t) override {
    if (depth_ < 2) return ++depth_, true;
    return wrong("an object");
  }
  bool end_object() override { return --depth_, true; }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      name_ = std::move(name);
      metadata_ = name_ == "__metadata__";
      const bool first = metadata_ ? !std::exchange(had_metadata_, true) : drafts_.try_emplace(name_).second;
      if (!first) throw Error(fmt::format("the header names \"{}\" twice", printable(name_))).in(place_);
    } else {
      field_ = std::move(name);
      if (!metadata_ && field_ != "dtype" && field_ != "shape" && field_ != "data_offsets")
        throw fault(fmt::format("the key \"{}\" does not belong in a tensor's entry", printable(field_)));
    }
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || metadata_ || list_ != nullptr) return wrong("a list");
    auto& list = field_ == "shape" ? draft().shape : draft().offsets;
    if (field_ == "dtype") return wrong("a list");
    if (list) throw twice();
    list_ = &list.emplace();
    return true;
  }
  bool end_array() override { return list_ = nullptr, true; }

  bool number_unsigned(number_unsigned_t value) override {
    if (list_ == nullptr) return wrong("a number");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw fault(fmt::format("\"{}\" holds {}, which is too large", field_, value));
    if (list_->size() == kMaxDimensions)
      throw fault(fmt::format("\"{}\" has more than {} entries", field_, kMaxDimensions));
    list_->push_back(static_cast<int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t value) override {
    if (list_ == nullptr) return wrong("a number");
    throw fault(fmt::format("\"{}\" holds {}, but must not be negative", field_, value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (list_ == nullptr) return wrong("a number");
    throw fault(
        fmt::format("\"{}\" holds {}, which is not a whole number that fits", field_, printable(text)));
  }

  bool string(string_t& text) override {
    if (depth_ == 2 && metadata_) return true;
    if (depth_ != 2 || list_ != nullptr || field_ != "dtype") return wrong("a string");
    if (draft().type) throw twice();
    for (const StoredTypeName& t : kStoredTypes)
      if (t.name == text) draft().type = t.type;
    if (!draft().type)
      throw fault(fmt::format("its type \"{}\" is not supported", printable(text)))
          .hint("save the checkpoint in float32, float16 or bfloat16");
    return true;
  }
  bool boolean(bool) override { return wrong("a boolean"); }
  bool null() override { return wrong("null"); }
  bool binary(binary_t&) override { return wrong("binary data"); }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception&) override {
    throw Error("the header is not valid JSON")
        .in(fmt::format("{}, byte {}", place_, kLengthBytes + (byte == 0 ? 0 : byte - 1)));
  }

 private:
  Draft& draft() { return drafts_[name_]; }
  Error fault(std::string message) const {
    return Error(std::move(message)).in(fmt::format("{}, tensor \"{}\"", place_, printable(name_)));
  }
  Error twice() const { return fault(fmt::format("\"{}\" comes twice", field_)); }

  [[noreturn]] bool wrong(const char* got) const {
    if (depth_ == 0)
      throw Error(fmt::format("expected the header to be an object, but got {}", got)).in(place_);
    if (depth_ == 1) throw fault(fmt::format("expected its entry to be an object, but got {}", got));
    if (metadata_)
      throw fault(fmt::format("expected a string for \"{}\", but got {}", printable(field_), got));
    const char* expected = field_ == "dtype" ? "a string" : "a list of whole numbers";
    throw fault(fmt::format("expected \"{}\" to be {}, but got {}", field_, expected, got));
  }

  const std::string& place_;
  std::map<std::string, Draft> drafts_;
  std::string name_, field_;
  std::vector<int64_t>* list_ = nullptr;
  bool metadata_ = false, had_metadata_ = false;
  int depth_ = 0;
};

}  // namespace rankscope
