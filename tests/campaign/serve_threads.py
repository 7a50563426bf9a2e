#!/usr/bin/env python3
"""Many clients at once of a `serve` built with the thread sanitizer: serve_threads.py PROGRAM FOLDER [REQUESTS].

16 clients ask in turn for pages that exist, that do not, and that lie outside, while 120 others never finish their
first line. Fails where a request is not answered or the sanitizer has something to say.
"""
import http.client
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

PATHS = ["/", "/data.json", "/nope", "/../x", "/?folder=study", "/data.json?folder=study"]
CLIENTS, DRIPPING = 16, 120


def main(program, folder, requests):
    server = subprocess.Popen([program, "serve", folder, "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    port = urllib.parse.urlparse(server.stdout.readline().decode().strip()).port
    answered, failed = [], []

    def ask(client):
        for i in range(requests // CLIENTS):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("GET", PATHS[(i + client) % len(PATHS)],
                                   headers={"Range": "bytes=0-10"} if i % 5 == 0 else {})
                connection.getresponse().read()
                answered.append(client)
            except OSError as fault:
                failed.append(repr(fault))

    def drip():
        held = []
        for _ in range(DRIPPING):
            held.append(socket.create_connection(("127.0.0.1", port)))
            held[-1].send(b"GET / HT")
        time.sleep(3)
        for one in held:
            one.close()

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    threads.append(threading.Thread(target=drip))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.terminate()
    said = server.communicate()[1].decode(errors="replace")
    reports = said.count("WARNING: ThreadSanitizer")
    print(f"serve: {len(answered)} requests answered, {len(failed)} not {failed[:2]}, {DRIPPING} dripping; "
          f"{reports} reports of the thread sanitizer")
    if reports:
        print(said)
    return 1 if failed or reports else 0


sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2400))
