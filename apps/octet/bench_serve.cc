// `octet bench serve`: loads one server, or two in turns.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>
#include <span>

#include "apps/octet/bench_commands.h"
#include "apps/octet/bench_progress.h"
#include "apps/octet/bench_serve_flags.h"
#include "apps/octet/bench_server.h"
#include "apps/octet/line_io.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/shown_command.h"
#include "apps/octet/workload_flags.h"
#include "octet/bench/arrivals.h"
#include "octet/bench/html_report.h"
#include "octet/bench/load_run.h"
#include "octet/bench/report_file.h"
#include "octet/bench/result_file.h"
#include "octet/bench/sweep.h"
#include "octet/bench/terminal_report.h"
#include "octet/bench/whole_file.h"

namespace {

namespace bench = octet::bench;
using bench::Load;
using octet::ErrorCode;
using octet::fail;
using octet::Result;

constexpr int kDefaultWidth = 100;

// What the flags come to.
struct Plan {
  bench::Workload workload;
  bench::SweepOptions sweep;
  std::vector<bench::SloLimit> goodput;
  bench::BodyOptions body;
  bench::ResultSetup result;
  const bench::Preset* preset = nullptr;
};

Result<octet::Json> object_of(std::string_view flag, const std::optional<std::string>& text) {
  if (!text) return octet::Json::object();
  auto json = octet::parse_json(*text);
  if (!json) return within(flag, json.error());
  if (!json->is_object()) return fail(ErrorCode::kInvalid, "{}: expected a JSON object", flag);
  return json;
}

// Workloads whose answers have the length that was asked for: as in vllm bench serve, and presets, whose point it is.
bool keeps_length(const BenchServeFlags& flags) {
  return flags.preset || flags.workload.dataset == "random" || flags.workload.dataset == "timed_trace";
}

// As vllm bench serve: a server's completions API puts nothing around a prompt.
bool puts_in_template(const BenchServeFlags& flags) {
  return flags.workload.dataset == "custom" && !flags.preset && !flags.skip_chat_template && !is_chat(flags);
}

Result<bench::BodyOptions> body_options(const BenchServeFlags& flags) {
  bench::BodyOptions body{.api = is_chat(flags) ? bench::Api::kChat : bench::Api::kCompletions,
                          .stream = !flags.no_stream,
                          .ignore_eos = flags.ignore_eos.value_or(keeps_length(flags)),
                          .logprobs = flags.logprobs};
  const std::pair<const char*, std::optional<double>> fields[] = {{"temperature", flags.temperature},
                                                                  {"top_p", flags.top_p},
                                                                  {"min_p", flags.min_p},
                                                                  {"frequency_penalty", flags.frequency_penalty},
                                                                  {"presence_penalty", flags.presence_penalty},
                                                                  {"repetition_penalty", flags.repetition_penalty}};
  for (const auto& [name, value] : fields)
    if (value) body.sampling[name] = *value;
  if (flags.top_k) body.sampling["top_k"] = *flags.top_k;
  OCTET_TRY(octet::Json kwargs, object_of("--chat-template-kwargs", flags.chat_template_kwargs));
  if (!kwargs.empty()) body.sampling["chat_template_kwargs"] = std::move(kwargs);
  OCTET_TRY(body.extra, object_of("--extra-body", flags.extra_body));
  return body;
}

Result<std::vector<Load>> loads_of(const BenchServeFlags& flags, const bench::Preset* preset) {
  std::vector<Load> loads;
  OCTET_TRY(const std::vector<double> rates, bench::parse_request_rates(flags.request_rate));
  const bool by_rate = rates.size() > 1 || rates.front() > 0 || flags.ramp_up;
  if (by_rate && flags.concurrency)
    return fail(ErrorCode::kInvalid, "--concurrency and --request-rate: a sweep goes over one of them");
  if (!by_rate && (flags.concurrency || (preset != nullptr && !flags.max_concurrency))) {
    const std::string text = flags.concurrency ? *flags.concurrency : std::string(preset->concurrency);
    OCTET_TRY(const auto list, bench::parse_concurrency(text));
    for (const std::int32_t one : list) loads.push_back({.concurrency = one});
    return loads;
  }
  for (const double rate : rates) {
    loads.push_back(
        {.concurrency = static_cast<std::int32_t>(flags.max_concurrency.value_or(0)), .request_rate = rate});
  }
  return loads;
}

// made: how many workloads there were before. Prompts that are made differ from all others', since a server may have
// kept those; the ones of a file cannot.
Result<bench::Workload> workload_of(const BenchServeFlags& flags, const bench::Preset* preset, std::int64_t made,
                                    const octet::text::Tokenizer* tokenizer) {
  constexpr std::int64_t kStride = 1'000'003;  // from the seed of one to that of the next
  if (preset == nullptr) {
    bench::WorkloadOptions options = flags.workload;
    if (!options.path) options.seed += made * kStride;
    return bench::make_workload(options, tokenizer);
  }
  return preset->make({.input_len = flags.workload.input_len,
                       .output_len = flags.workload.output_len,
                       .turns = flags.turns,
                       .users = flags.users,
                       .seed = flags.workload.seed + made * kStride},
                      tokenizer);
}

Result<> check_flags(const BenchServeFlags& flags) {
  if (flags.backend != "vllm" && flags.backend != "openai" && flags.backend != "openai-chat")
    return fail(ErrorCode::kUnsupported, "--backend {}: expected vllm, openai or openai-chat", flags.backend);
  if (flags.preset && bench::find_preset(*flags.preset) == nullptr) {
    std::string names;
    for (const bench::Preset& one : bench::presets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    return fail(ErrorCode::kInvalid, "--preset {}: expected {}", *flags.preset, names);
  }
  if ((flags.turns || flags.users) && !flags.preset)
    return fail(ErrorCode::kInvalid, "{} goes with --preset", flags.turns ? "--turns" : "--users");
  if (flags.ramp_up && (!flags.ramp_up_start || !flags.ramp_up_end))
    return fail(ErrorCode::kInvalid, "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps");
  if (flags.bisect && !flags.slo && !flags.preset)
    return fail(ErrorCode::kInvalid, "--bisect needs --slo: it looks for the load at which the limits break");
  return {};
}

Result<bench::ResultSetup> result_setup(const BenchServeFlags& flags) {
  bench::ResultSetup setup{.backend = flags.backend,
                           .label = flags.label,
                           .tokenizer_id = flags.tokenizer,
                           .burstiness = flags.burstiness,
                           .detailed = flags.save_detailed};
  if (flags.percentile_metrics) {
    OCTET_TRY(setup.percentile_metrics, bench::parse_percentile_metrics(*flags.percentile_metrics));
  }
  OCTET_TRY(setup.percentiles, bench::parse_metric_percentiles(flags.metric_percentiles));
  OCTET_TRY(setup.metadata, bench::parse_metadata(flags.metadata));
  return setup;
}

Result<Plan> plan_of(const BenchServeFlags& flags, const octet::text::Tokenizer* tokenizer) {
  Plan plan;
  const bench::Preset* preset = flags.preset ? bench::find_preset(*flags.preset) : nullptr;
  plan.preset = preset;
  OCTET_TRY(plan.body, body_options(flags));
  OCTET_TRY(plan.sweep.loads, loads_of(flags, preset));
  const std::string slo = flags.slo ? *flags.slo : preset != nullptr ? std::string(preset->slo) : "";
  if (!slo.empty()) {
    OCTET_TRY(plan.sweep.slo, bench::parse_slo(slo));
  }
  plan.sweep.bisect = flags.bisect;
  plan.sweep.repeats = static_cast<std::int32_t>(flags.repeats);
  OCTET_TRY(plan.goodput, bench::parse_goodput(flags.goodput));
  OCTET_TRY(plan.result, result_setup(flags));
  OCTET_TRY(plan.workload, workload_of(flags, preset, 0, tokenizer));
  const auto by_rate = [](const Load& load) { return load.request_rate > 0; };
  if (plan.workload.conversations.front().planned_ns &&
      (flags.ramp_up || std::ranges::any_of(plan.sweep.loads, by_rate)))
    return fail(ErrorCode::kInvalid, "{}: the trace has times of its own; --no-self-timed sends by a rate",
                flags.ramp_up ? "--ramp-up-strategy" : "--request-rate");
  return plan;
}

std::string date_now(const char* form, bool utc) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  utc ? gmtime_r(&now, &parts) : localtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, form, &parts);
  return text;
}

class BenchServe {
 public:
  BenchServe(const BenchServeFlags& flags, Plan plan, std::vector<Server> servers,
             const octet::text::Tokenizer* tokenizer, std::string command)
      : flags_(flags), plan_(std::move(plan)), servers_(std::move(servers)), tokenizer_(tokenizer) {
    report_.title = "octet bench serve";
    report_.date = date_now("%Y-%m-%dT%H:%M:%SZ", true);
    report_.workload = plan_.workload.name;
    report_.command = std::move(command);
    report_.slo = plan_.sweep.slo;
    if (!plan_.workload.note.empty()) report_.notes.push_back(plan_.workload.note);
    for (const Server& server : servers_) {
      const bool named = flags.label && servers_.size() == 1;
      const std::string url = shown_url(server.url);
      report_.targets.push_back({.name = named ? *flags.label : url, .url = url, .model = server.model});
    }
    report_.settings = {{"backend", flags.backend},
                        {"prompts", fmt::format("{}", plan_.workload.requests())},
                        {"seed", fmt::format("{}", flags.workload.seed)},
                        {"repeats", fmt::format("{}", flags.repeats)}};
  }

  Result<> run();
  int exit_status() const;

 private:
  Result<bench::Run> measure(std::size_t target, const Load& load, std::int32_t repeat);
  Result<> next_workload(std::size_t target);
  bench::Workload share_of(const Load& load) const;
  Result<> warm_up(bench::Transport& transport, bench::BodyOptions body) const;
  std::vector<std::int64_t> starts_of(const bench::Workload& workload, const Load& load, std::int32_t repeat) const;
  Result<> save(const bench::Run& run, const Server& server);
  Result<> write() const;

  const BenchServeFlags& flags_;
  Plan plan_;
  std::vector<Server> servers_;
  const octet::text::Tokenizer* tokenizer_;
  bench::Report report_;
  bool interrupted_ = false;
  std::set<std::filesystem::path> saved_;  // result files of this command
  std::int64_t rounds_ = 0;                // of all targets
};

// Targets that take turns get the same prompts.
Result<> BenchServe::next_workload(std::size_t target) {
  if (target != 0 || rounds_++ == 0) return {};
  OCTET_TRY(plan_.workload, workload_of(flags_, plan_.preset, rounds_ - 1, tokenizer_));
  return {};
}

// A preset has conversations for its highest load; a lower one takes some rounds of as many as it has users.
bench::Workload BenchServe::share_of(const Load& load) const {
  bench::Workload share = plan_.workload;
  constexpr std::size_t kRounds = 2, kFewest = 4;
  if (plan_.preset != nullptr && load.concurrency > 0) {
    const std::size_t wanted = std::max(kFewest, kRounds * static_cast<std::size_t>(load.concurrency));
    if (share.conversations.size() > wanted) share.conversations.resize(wanted);
  }
  return share;
}

std::vector<std::int64_t> BenchServe::starts_of(const bench::Workload& workload, const Load& load,
                                                std::int32_t repeat) const {
  const auto count = static_cast<std::int64_t>(workload.conversations.size());
  if (workload.conversations.front().planned_ns) {
    std::vector<std::int64_t> starts;
    for (const bench::Conversation& one : workload.conversations) starts.push_back(*one.planned_ns);
    return starts;
  }
  if (load.request_rate <= 0 && !flags_.ramp_up) return {};
  return bench::arrival_times(count, {.rate = load.request_rate,
                                      .burstiness = flags_.burstiness,
                                      .seed = static_cast<std::uint64_t>(flags_.workload.seed + repeat),
                                      .ramp_up = !flags_.ramp_up               ? bench::RampUp::kNone
                                                 : *flags_.ramp_up == "linear" ? bench::RampUp::kLinear
                                                                               : bench::RampUp::kExponential,
                                      .start_rate = flags_.ramp_up_start.value_or(0),
                                      .end_rate = flags_.ramp_up_end.value_or(0)});
}

// Requests that do not count: the first prompts, one after another.
Result<> BenchServe::warm_up(bench::Transport& transport, bench::BodyOptions body) const {
  if (flags_.num_warmups == 0) return {};
  bench::Workload workload{.name = "warm-up"};
  const auto& from = plan_.workload.conversations;
  for (std::int64_t i = 0; i < flags_.num_warmups; ++i) {
    bench::Conversation one = from[static_cast<std::size_t>(i) % from.size()];
    one.turns.resize(1);
    workload.conversations.push_back(std::move(one));
  }
  bench::LoadOptions options{.body = std::move(body), .concurrency = 1};
  options.stopped = [] { return octet::hub::stop_signal != 0; };
  const bench::Run run = bench::run_load(workload, options, transport);
  for (const bench::RequestRecord& record : run.records) {
    if (record.outcome == bench::Outcome::kFailed) return fail(ErrorCode::kIo, "the warm-up failed: {}", record.error);
  }
  return {};
}

Result<bench::Run> BenchServe::measure(std::size_t target, const Load& load, std::int32_t repeat) {
  const Server& server = servers_[target];
  OCTET_TRY_VOID(next_workload(target));
  OCTET_TRY(const auto transport, bench::open_http(server.http));
  bench::LoadOptions options{.body = plan_.body, .concurrency = load.concurrency, .request_rate = load.request_rate};
  options.body.model = server.model;
  const bench::Workload workload = share_of(load);
  options.starts = starts_of(workload, load, repeat);
  options.tokenizer = tokenizer_;
  options.keep_text = flags_.save_detailed;
  options.stopped = [] { return octet::hub::stop_signal != 0; };
  OCTET_TRY_VOID(warm_up(*transport, options.body));
  BenchProgress progress(fmt::format("{}{}", servers_.size() > 1 ? shown_url(server.url) + ", " : "",
                                     load.request_rate > 0  ? fmt::format("{:g} requests/s", load.request_rate)
                                     : load.concurrency > 0 ? fmt::format("{} at once", load.concurrency)
                                                            : std::string("all at once")),
                         !flags_.quiet);
  options.on_progress = [&](const bench::Progress& now) { progress.show(now); };
  bench::Run run = bench::run_load(workload, options, *transport);
  progress.clear();
  interrupted_ |= run.interrupted;
  OCTET_TRY_VOID(save(run, server));
  return run;
}

Result<> BenchServe::save(const bench::Run& run, const Server& server) {
  if (!flags_.save_result && !flags_.append_result && !flags_.save_detailed) return {};
  bench::ResultSetup setup = plan_.result;
  setup.model_id = server.model;
  setup.num_prompts = static_cast<std::int64_t>(run.records.size());
  setup.request_rate = run.request_rate;
  if (run.concurrency > 0) setup.max_concurrency = run.concurrency;
  const std::string date = date_now("%Y%m%d-%H%M%S", false);
  const std::filesystem::path folder = flags_.result_dir.value_or("");
  const std::filesystem::path path = folder / flags_.result_filename.value_or(bench::result_file_name(setup, date));
  // Runs of one name (a sweep with --result-filename, repeats within a second) follow one another in the file.
  const bool append = !saved_.insert(path).second || flags_.append_result;
  return bench::write_result(path, bench::result_json(run, summarize(run, plan_.goodput), setup, date), append);
}

Result<> BenchServe::write() const {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  OCTET_TRY_VOID(print_output(bench::terminal_report(report_, kDefaultWidth, terminal)));
  if (flags_.json) OCTET_TRY_VOID(within_flag("--json", bench::write_report(*flags_.json, report_)));
  if (flags_.html) OCTET_TRY_VOID(within_flag("--html", bench::write_whole(*flags_.html, html_report(report_))));
  return {};
}

Result<> BenchServe::run() {
  const bench::Measure measure_one = [this](std::size_t target, const Load& load, std::int32_t repeat) {
    return measure(target, load, repeat);
  };
  const auto on_point = [this](std::size_t, const bench::Point& point) {
    if (plan_.sweep.loads.size() > 1 && !flags_.quiet)
      fmt::print(stderr, "{}\n", bench::point_report(point, plan_.sweep.slo, kDefaultWidth, false));
  };
  const auto done = bench::sweep(plan_.sweep, plan_.goodput, measure_one, on_point, report_);
  if (interrupted_) report_.notes.emplace_back("interrupted: the last run holds what there was");
  const bool any = std::ranges::any_of(report_.targets, [](const bench::Target& one) { return !one.points.empty(); });
  if (any) OCTET_TRY_VOID(write());
  return done;
}

int BenchServe::exit_status() const {
  if (interrupted_) return 128 + octet::hub::stop_signal;
  for (const bench::Target& target : report_.targets) {
    for (const bench::Point& point : target.points) {
      for (const bench::Summary& one : point.summaries)
        if (one.completed > 0) return 0;
    }
  }
  return 1;  // nothing was measured
}

int fail_with(const octet::Error& error, int status = 1) {
  fmt::print(stderr, "octet bench serve: {}\n", error.message);
  return octet::hub::stop_signal != 0 ? 128 + octet::hub::stop_signal : status;
}

constexpr const char* kEpilog =
    R"text(Times count from sending, and under a rate from when a request was to be sent. TTFT ends with the first token of
any kind, reasoning included. Tokens are those of the server's usage. Ctrl-C ends a run and reports what there is.

examples
  octet bench serve --num-prompts 100 --max-concurrency 8
  octet bench serve --concurrency 1,2,4,...,64 --slo ttft:p90=2000ms,tpot:p90=50ms --bisect
  octet bench serve --base-url http://a:8000 --base-url http://b:8000 --request-rate 2 --repeats 3
  octet bench serve --preset agent-chain --backend openai-chat --json run.json --html run.html
)text";

}  // namespace

int bench_serve_command(int argc, char** argv) {
  BenchServeFlags flags;
  octet::FlagTable table = bench_serve_flag_table(flags);
  table.set_epilog(kEpilog);
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (const auto checked = check_flags(flags); !checked) return fail_with(checked.error(), 2);
  if (flags.preset) {
    if (const auto checked = check_beside_preset(table, flags.workload); !checked) return fail_with(checked.error(), 2);
  }
  const octet::hub::SignalGuard signals;
  const auto text = bench_text(flags, puts_in_template(flags));
  if (!text) return fail_with(text.error());
  if (text->templates)
    flags.workload.custom_prompt = [&](std::string prompt) {
      return prompt_in_template(*text->templates, std::move(prompt));
    };
  const octet::text::Tokenizer* const tokenizer = text->tokenizer.get();
  auto plan = plan_of(flags, tokenizer);
  if (!plan) return fail_with(plan.error(), 2);
  if (text->templates) plan->workload.add_note("the prompts stand in the chat template of the tokenizer");
  auto servers = find_servers(flags, plan->workload);
  if (!servers) return fail_with(servers.error());
  const std::span words(argv + 1, static_cast<std::size_t>(argc - 1));
  BenchServe bench(flags, *std::move(plan), *std::move(servers), tokenizer, shown_command("octet bench serve", words));
  if (const auto done = bench.run(); !done) return fail_with(done.error());
  return bench.exit_status();
}
