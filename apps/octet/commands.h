// The subcommands: each parses its flags and calls one function. argv[0] is the command's own name; the value is the
// exit status.
#pragma once

int pull_command(int argc, char** argv);
int run_command(int argc, char** argv);
int serve_command(int argc, char** argv);
int render_command(int argc, char** argv);
int tokenize_command(int argc, char** argv);
int bench_command(int argc, char** argv);
