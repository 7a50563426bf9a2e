// report.html: the built page of web/ with data in it. One file, no network.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/csv.h"
#include "report/diff.h"
#include "report/results.h"
#include "report/study_results.h"

namespace rankscope {

/// What a page shows. The results stay with their owners.
struct PageContent {
  std::vector<const Results*> scans;  // several are laid side by side
  const ScanDiff* diff = nullptr;     // of the two scans
  std::vector<const StudyResults*> studies;
  struct Folder {
    std::string path, kind;
    std::string model = {}, date = {};  // what it is of, and when it was written (UTC, to the minute)
  };
  std::vector<Folder> folders;  // of `rankscope serve`: where results lie
  bool live = false;            // the page asks its server for newer data
};

/// The data alone, as one JSON document.
void write_page_data(const PageContent& content, const TextSink& sink);

/// The whole page. Text from outside stands in it as inert data: <, > and & are escaped, so nothing in it can
/// end the element that holds it.
void write_page(const PageContent& content, const TextSink& sink);

/// The page around data that is ready as JSON.
void write_page_around(std::string_view data, bool live, const TextSink& sink);

/// write_page to a file, whole or absent.
void write_page(const std::filesystem::path& path, const PageContent& content);

/// JSON text with <, >, & and the two line separators of Unicode escaped: safe inside a script element.
std::string inert(std::string_view json);

/// The built page as it is in the program (generated from web/dist).
std::string_view page_template();

}  // namespace rankscope
