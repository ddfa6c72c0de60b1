// The commands of `octet bench`. argv[0] is the command's own name; the value is the exit status.
#pragma once

int bench_serve_command(int argc, char** argv);
int bench_compare_command(int argc, char** argv);
