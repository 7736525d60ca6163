"""Announce a release to the registry: python3 {{v.program}} NAME"""

import json
import os
import socket
import sys

WITNESS = "{{witness.path}}"


def main():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.connect(WITNESS)
        connection.sendall(json.dumps({"program": "{{v.program}}", "args": sys.argv[1:]}).encode() + b"\n")
        answer = connection.recv(4096)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "announced.txt"), "wb") as stream:
        stream.write(answer)
    print("announced")


main()
