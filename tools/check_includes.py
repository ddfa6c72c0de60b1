#!/usr/bin/env python3
"""Checks what the compiler does not: a room includes only rooms above it, and the repository names nothing outside itself.

   tools/check_includes.py [ROOT]     one line per finding; exit status 1 where there is any
"""
import pathlib
import re
import subprocess
import sys

# The rooms of docs/architecture.md, in order. Those of the last line do one job each and do not know each other.
ROOMS = ['base', 'topology', 'tensor', 'formats', 'text', 'ops', 'comm', 'models', 'engine', 'server']
LAST = ['gateway', 'planner', 'bench', 'cluster']
RANK = {room: rank for rank, room in enumerate(ROOMS)} | {room: len(ROOMS) for room in LAST}

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
# Split so that this file does not name them itself.
OUTSIDE = re.compile(r'\.\./' 'shared' r'\b')
MACHINE = re.compile(r'(?<![\w.$}])/(?:' 'work|root|home' r')/\w')
# Recorded data may hold any text.
DATA = ('tests/golden/', 'fuzz/corpus/')


def tracked(root):
    listing = subprocess.run(['git', 'ls-files', '-z'], cwd=root, capture_output=True, text=True)
    if listing.returncode == 0:
        return [name for name in listing.stdout.split('\0') if name]
    skip = re.compile(r'(build|\.git|\.venv|\.cache)')
    return [str(path.relative_to(root)) for path in root.rglob('*')
            if path.is_file() and not skip.match(str(path.relative_to(root)))]


def check_include(folder, room, target):
    if not target.startswith('octet/') and (folder / target).is_file():
        return f'"{target}" is not written from the source root, as in "octet/base/error.h"'
    parts = target.split('/')
    if parts[0] != 'octet' or len(parts) < 3:
        return None
    if parts[1] not in RANK:
        return f'{target}: no room {parts[1]}'
    if parts[1] != room and RANK[parts[1]] >= RANK[room]:
        return f'room {room} includes {target}, which stands below it'
    return None


def check_file(root, name):
    path = root / name
    if not path.is_file():
        return
    data = path.read_bytes()
    if b'\0' in data[:4096]:
        return
    match = re.match(r'src/octet/(\w+)/', name)
    room = match and match[1]
    if room and room not in RANK:
        yield f'{name}: no room {room} in docs/architecture.md'
        return
    for number, line in enumerate(data.decode(errors='replace').split('\n'), 1):
        include = INCLUDE.match(line)
        if room and include and (finding := check_include(path.parent, room, include[1])):
            yield f'{name}:{number}: {finding}'
        if OUTSIDE.search(line):
            yield f'{name}:{number}: names a folder outside the repository'
        if MACHINE.search(line) and not name.startswith(DATA):
            yield f'{name}:{number}: names a path of one machine'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    findings = [finding for name in tracked(root) for finding in check_file(root, name)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
