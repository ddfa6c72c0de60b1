// Flags of `octet bench serve`: those of `vllm bench serve`, and what goes beyond it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/flags.h"
#include "octet/bench/datasets.h"

struct BenchServeFlags {
  // The servers.
  std::string backend = "openai";
  std::vector<std::string> base_urls;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::optional<std::string> endpoint, model, served_model_name, tokenizer;
  std::vector<std::string> headers;
  bool insecure = false;
  double ready_timeout = 0, request_timeout = 0;  // seconds; 0: no waiting, no limit

  // What is sent.
  octet::bench::WorkloadOptions workload;
  std::optional<std::string> preset;
  std::optional<std::int64_t> turns, users;
  bool no_stream = false, skip_chat_template = false;
  std::optional<bool> ignore_eos;  // unset: by the dataset
  std::optional<std::int64_t> logprobs, top_k;
  std::optional<double> temperature, top_p, min_p, frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<std::string> extra_body, chat_template_kwargs;

  // How.
  std::string request_rate = "inf";
  double burstiness = 1;
  std::optional<std::string> concurrency, ramp_up, slo;
  std::optional<std::int64_t> max_concurrency;
  std::optional<double> ramp_up_start, ramp_up_end;
  std::int64_t num_warmups = 0, repeats = 1;
  bool bisect = false, quiet = false;
  std::vector<std::string> goodput;

  // What is written.
  bool save_result = false, save_detailed = false, append_result = false;
  std::optional<std::string> result_dir, result_filename, label, percentile_metrics, json, html;
  std::string metric_percentiles = "99";
  std::vector<std::string> metadata;
};

// The rows refer to `flags`, which must outlive the table.
octet::FlagTable bench_serve_flag_table(BenchServeFlags& flags);
