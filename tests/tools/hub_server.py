"""A small hub on loopback, with faults, for tests of `octet pull`.

usage: hub_server.py ROOT [CERTIFICATE KEY]

ROOT/repositories/ORG/NAME/... are the files; those of 1,000 bytes or more live on a second port ("elsewhere"), as large
files do. ROOT/faults.json is a list of faults, each {"match": part of the path, "times": N} and one of
  "status": 503 (with "retry_after": 1 or "rate_limit": 1), "cut": bytes after which the connection breaks, "stall": bytes after which
  nothing more comes, "corrupt": true, "no_range": true, "pause": seconds before each 16 KiB.
ROOT/rules.json: {"gated": ["ORG/NAME"], "token": "secret", "huge": {"PATH": size}}.
ROOT/requests.log gets one line per request: port's role, path, Range or -, token or -. ROOT/ports names both ports.
"""
import hashlib
import http.server
import json
import pathlib
import socket
import ssl
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(sys.argv[1])
LARGE = 1000
lock = threading.Lock()
used = {}


def read_json(name, fallback):
    try:
        return json.loads((ROOT / name).read_text())
    except FileNotFoundError:
        return fallback


def fault_for(path):
    with lock:
        for index, fault in enumerate(read_json("faults.json", [])):
            if fault["match"] in path and used.get(index, 0) < fault.get("times", 1 << 30):
                used[index] = used.get(index, 0) + 1
                return fault
    return {}


def git_digest(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def files_of(repository):
    folder = ROOT / "repositories" / repository
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def commit_of(files):
    return hashlib.sha1(repr([(name, git_digest(data)) for name, data in files.items()]).encode()).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def fail(self, status, code="", message="", **headers):
        body = json.dumps({"error": message}).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        if message:
            self.send_header("X-Error-Message", message)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        token = self.headers.get("Authorization", "-").removeprefix("Bearer ")
        with lock, open(ROOT / "requests.log", "a") as log:
            log.write(f"{self.server.role} {self.path} {self.headers.get('Range', '-')} {token}\n")
        raw = urllib.parse.urlparse(self.path).path
        path = urllib.parse.unquote(raw)
        fault = fault_for(self.server.role + path)
        if "status" in fault:
            extra = {"Retry_After": fault["retry_after"]} if "retry_after" in fault else {}
            if "rate_limit" in fault:
                extra["RateLimit"] = f'"api";r=0;t={fault["rate_limit"]}'
            return self.fail(fault["status"], fault.get("code", ""), **extra)
        parts = [urllib.parse.unquote(part) for part in raw.strip("/").split("/")]
        if self.server.role == "elsewhere":
            return self.send_file((ROOT / "repositories" / "/".join(parts[1:])).read_bytes(), fault)
        if parts == ["api", "models"]:
            return self.send_models(urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)["author"][0])
        if parts[:2] == ["api", "models"]:
            return self.send_listing("/".join(parts[2:4]), parts[5], token)
        repository, name = "/".join(parts[:2]), "/".join(parts[4:])
        if not self.may_see(repository, token):
            return None
        data = files_of(repository).get(name)
        if data is None:
            return self.fail(404, "EntryNotFound")
        if len(data) < LARGE:
            return self.send_file(data, fault)
        target = urllib.parse.quote(f"/cdn/{repository}/{name}")
        return self.fail(302, Location=f"{self.server.scheme}://127.0.0.1:{self.server.elsewhere}{target}")

    def may_see(self, repository, token):
        rules = read_json("rules.json", {})
        wanted = rules.get("token", "secret")
        if token not in ("-", wanted):
            self.fail(401, message="Invalid credentials in Authorization header")
        elif repository in rules.get("gated", []) and token == "-":
            self.fail(401, "GatedRepo", "Access to model is restricted.")
        elif repository in rules.get("gated", []) and rules.get("pending"):
            self.fail(403, "GatedRepo", "Access to model is restricted.")
        elif not (ROOT / "repositories" / repository).is_dir():
            self.fail(404 if token != "-" else 401, "RepoNotFound", "Repository not found")
        else:
            return True
        return False

    def send_listing(self, repository, revision, token):
        # A gated repository is listed for everyone.
        listed = (ROOT / "repositories" / repository).is_dir() and token == "-"
        if not listed and not self.may_see(repository, token):
            return
        files = files_of(repository)
        commit = commit_of(files)
        if revision not in ("main", "refs/pr/1", commit):
            self.fail(404, "RevisionNotFound", "Invalid rev id")
            return
        rules = read_json("rules.json", {})
        siblings = []
        for name, data in files.items():
            entry = {"rfilename": name, "size": rules.get("huge", {}).get(name, len(data)), "blobId": git_digest(data)}
            if len(data) >= LARGE:
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": entry["size"], "pointerSize": 130}
            siblings.append(entry)
        siblings += rules.get("extra", [])
        self.send_json({"id": repository, "sha": commit, "siblings": siblings})

    def send_models(self, owner):
        self.send_json([{"id": f"{owner}/{p.name}"} for p in (ROOT / "repositories" / owner).glob("*")])

    def send_json(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, data, fault):
        begin, end, wanted = 0, len(data), self.headers.get("Range")
        if wanted and "no_range" not in fault:
            first, last = wanted.removeprefix("bytes=").split("-")
            begin, end = int(first), min(int(last) + 1, len(data))
        body = data[begin:end]
        self.send_response(206 if wanted and "no_range" not in fault else 200)
        if wanted and "no_range" not in fault:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "corrupt" in fault:
            body = bytes([body[0] ^ 1]) + body[1:]
        if "cut" in fault:
            self.wfile.write(body[: fault["cut"]])
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif "stall" in fault:
            self.wfile.write(body[: fault["stall"]])
            self.wfile.flush()
            time.sleep(3600)
        elif "pause" in fault:
            for at in range(0, len(body), 16384):
                time.sleep(fault["pause"])
                self.wfile.write(body[at : at + 16384])
        else:
            self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients of these tests break off at will


def start(role):
    server = Server(("127.0.0.1", 0), Handler)
    server.role, server.scheme = role, "http"
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.scheme = "https"
    return server


hub, elsewhere = start("hub"), start("elsewhere")
hub.elsewhere = elsewhere.server_address[1]
threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
(ROOT / "ports.new").write_text(f"{hub.server_address[1]} {elsewhere.server_address[1]}\n")
(ROOT / "ports.new").rename(ROOT / "ports")
hub.serve_forever()
