"""Serve the built site on this machine: python site/serve.py [--port 8000]."""

import argparse
import errno
import gzip
import os
import sys
from contextlib import suppress
from functools import lru_cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

BUILT = Path(__file__).resolve().parent.parent / "_build" / "html"


# Said here because a machine's own table may lack or mistake them, and browsers insist.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".onnx": "application/octet-stream",
    ".gz": "application/octet-stream",
    ".safetensors": "application/octet-stream",
    ".gguf": "application/octet-stream",
}


# Compressed on their way, as the servers of published pages do it.
COMPRESSED = {".html", ".css", ".js", ".mjs", ".svg", ".json", ".wasm", ".ipynb"}


@lru_cache(maxsize=256)
def compressed(file: str, changed: float) -> bytes:
    return gzip.compress(Path(file).read_bytes(), 6)


class Handler(SimpleHTTPRequestHandler):
    """Files of the site, each with its right type, and 404.html for what is not there."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        accepted = "gzip" in self.headers.get("Accept-Encoding", "")
        if not (accepted and path.suffix in COMPRESSED and path.is_file()):
            return super().send_head()
        changed = path.stat().st_mtime
        if self.headers.get("If-Modified-Since") == self.date_time_string(int(changed)):
            self.send_response(304)
            self.end_headers()
            return None
        data = compressed(str(path), changed)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", self.date_time_string(int(changed)))
        self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        return BytesIO(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        missing = Path(self.directory) / "404.html"
        if code != 404 or not missing.is_file():
            return super().send_error(code, message, explain)
        text = missing.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", TYPES[".html"])
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def guess_type(self, path: str | os.PathLike[str]) -> str:
        return TYPES.get(Path(path).suffix) or super().guess_type(path)

    def handle(self) -> None:
        with suppress(ConnectionError):  # the reader left while a file was on its way
            super().handle()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # a rebuilt page shows at once
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the address stays the last line on the terminal."""


def open_server(folder: Path, port: int, handler: type[Handler] = Handler) -> ThreadingHTTPServer:
    """A server on `port` or, where that is taken, on the next free one of the following 100."""
    in_folder = partial(handler, directory=str(folder))
    for candidate in range(port, min(port + 100, 65536)):
        try:
            return ThreadingHTTPServer(("localhost", candidate), in_folder)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    sys.exit(f"Ports {port} to {port + 99} are all taken: choose another with --port.")


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the built site on localhost.")
    parser.add_argument("--port", type=int, default=8000, help="first port to try (8000)")
    port = parser.parse_args().port
    if not (BUILT / "index.html").exists():
        sys.exit(f"There is no built site in {BUILT}: run `make site` first.")
    with open_server(BUILT, port) as server:
        print(
            f"The Road to GPT is at http://localhost:{server.server_port}/ (Ctrl-C ends)",
            flush=True,
        )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
