"""The network between a collector and all who speak with it, which can be taken away."""
import socket, threading


class Relay:
    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_up, self.connections, self.heads = True, set(), []
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def down(self):
        """Cuts all connections, and each new one."""
        with self.lock:
            self.is_up = False
            for each in self.connections:
                self.cut(each)
            self.connections.clear()

    def up(self):
        with self.lock:
            self.is_up = True

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            with self.lock:
                is_up = self.is_up
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5) if is_up else None
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            server.settimeout(None)
            with self.lock:
                self.connections |= {client, server}
            threading.Thread(target=self.pass_on, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(server, client, False), daemon=True).start()

    def pass_on(self, source, sink, is_request):
        try:
            while data := source.recv(65536):
                if is_request and data.startswith(b"GET "):
                    self.heads.append(data.split(b"\r\n\r\n")[0].decode("latin-1"))
                sink.sendall(data)
        except OSError:
            pass
        self.cut(source)
        self.cut(sink)

    @staticmethod
    def cut(connection):
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()
