// How a command was called, for reports that are passed on: without what may be a secret.
#pragma once
#include <span>
#include <string>
#include <string_view>

// The URL with "..." in place of a name and a password before its host.
std::string shown_url(std::string_view url);

// The words after the program's name as a shell takes them. Values of --header, and names and passwords of URLs, become
// "...".
std::string shown_command(std::string_view command, std::span<char* const> words);
