// The options that say what is looked at, in which arithmetic, and where results go: shared by the commands
// that read a model and an input.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "report/results.h"
#include "scan/scan.h"

namespace rankscope {

struct InputOptions {
  ScanRequest request;
  std::string model, init;
  std::string token_ids, pixels, out, format = "table";
  bool json = false, force = false;
};

/// The ways to give an input: --text to --batch-size.
void add_sample_options(CLI::App& app, ScanRequest& request, std::string& token_ids, std::string& pixels);

/// How many samples are computed at once where --batch-size does not say it.
void set_batch_size(ScanRequest& request);

/// --device, --device-memory and --precision.
void add_device_options(CLI::App& app, ScanRequest& request);
/// The same with --threads and --seed, of which `seeded` says what it decides.
void add_run_options(CLI::App& app, ScanRequest& request, const std::string& seeded);

/// FOLDER, --init, --off, the ways to give an input, where it is computed, --threads, --seed, --out,
/// --format.
void add_input_options(CLI::App& app, InputOptions& o);

/// --out and --force.
void add_out_options(CLI::App& app, std::string& out, bool& force);

/// What the words mean together: the built-in model and text where nothing was said, random tokens for a
/// shape. Refuses, before any work, what cannot be written.
void fill_in_request(InputOptions& o, Io& io);

/// Runs `work` with progress on stderr, then writes and prints what it gave; `table` prints the terminal's
/// form.
int run_and_report(InputOptions& o, Io& io, const std::function<ScanResult(const ProgressCallback&)>& work,
                   const std::function<void(const ScanResult&, std::ostream&)>& table,
                   const std::function<void()>& also = {});

/// What an earlier run left in a folder beside its tables: arrays and patterns. This run may write none.
class Leftovers {
 public:
  explicit Leftovers(const std::filesystem::path& folder);
  /// Those that were not written since.
  void remove_old() const;

 private:
  std::vector<std::pair<std::filesystem::path, std::filesystem::file_time_type>> files_;
};

/// The page and its tables in a folder, with the arrays behind them and what `also` writes.
void write_report(const std::string& folder, const ScanResult& result,
                  const std::function<void()>& also = {});
void say_written(const std::string& folder, Io& io);

/// --text takes all that follows it, so a model named last would be read as a text.
void refuse_folders(const std::vector<std::string>& texts);
/// Before the work, not after it: whether --out can be written, and replaces nobody else's results.
void check_out(const std::string& out, bool force, Io& io);
void require_format(const std::string& format);

}  // namespace rankscope
