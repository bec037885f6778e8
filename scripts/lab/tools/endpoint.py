"""An HTTP(S) endpoint on ::1 that takes everything: a line with method, path and authorization for each request."""

import argparse
import http.server
import socket
import ssl


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.output.write(f"{self.command} {self.path} {self.headers.get('Authorization')}\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--output", required=True)
    options.add_argument("--certificate", help="PEM file with the chain and its key")
    options = options.parse_args()
    server = Server(("::1", options.port), Handler)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.output = open(options.output, "w", buffering=1)
    server.serve_forever()


main()
