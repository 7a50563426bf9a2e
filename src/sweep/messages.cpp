#include "sweep/messages.h"

#include "base/error.h"
#include "sweep/result.h"

namespace rankscope {

std::string to_text(const Note& n) {
  Json out{{"kind", n.kind}};
  if (!n.owner.empty()) out["owner"] = n.owner;
  if (!n.reason.empty()) out["reason"] = n.reason;
  if (n.kind == "stack") {
    out["runner"] = n.runner;
    out["folder"] = n.folder;
    Json jobs = Json::array();
    for (const auto& [id, config] : n.jobs) jobs.push_back({{"id", id}, {"config", canonical(config)}});
    out["jobs"] = jobs;
  }
  if (n.kind == "finished") {
    out["id"] = n.id;
    out["failed"] = n.outcome.failed;
    out["values"] = values_json(n.outcome.values);
    out["precision"] = n.outcome.precision;
    out["seconds"] = n.seconds;
  }
  if (n.kind == "alive") {
    out["seconds"] = n.seconds;
    out["steps"] = n.progress.steps_done;
    out["flops"] = n.progress.flops_done;
    out["what"] = n.progress.what;
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Note parse_note(const std::string& text) {
  const std::string place = "a message between processes";
  const Json json = parse_json(text, place);
  const JsonObject object(json, place);
  Note n;
  n.kind = object.string("kind");
  n.owner = object.string("owner", "");
  n.reason = object.string("reason", "");
  n.seconds = object.number("seconds", 0, 1e300, 0);
  if (n.kind == "stack") {
    n.runner = object.string("runner");
    n.folder = object.string("folder");
    for (const Json& entry : object.at("jobs")) {
      const JsonObject job(entry, place);
      n.jobs.emplace_back(job.string("id"), parse_canonical(job.string("config")));
    }
  }
  if (n.kind == "finished") {
    n.id = object.string("id");
    n.outcome = {object.boolean("failed", false), n.reason, parse_values(object.string("values"), place),
                 object.string("precision", "")};
  }
  if (n.kind == "alive") {
    n.progress.steps_done = object.integer("steps", 0, INT64_MAX);
    n.progress.flops_done = object.number("flops", 0, 1e300);
    n.progress.what = object.string("what", "");
  }
  return n;
}

}  // namespace rankscope
