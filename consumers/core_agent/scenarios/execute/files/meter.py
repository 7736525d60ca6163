"""Read the meter of a station: python3 {{v.program}} STATION"""

import json
import os
import socket
import sys

WITNESS = "{{witness.path}}"


def ask(arguments):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.connect(WITNESS)
        connection.sendall(json.dumps({"program": "{{v.program}}", "args": arguments}).encode() + b"\n")
        answer = b""
        while part := connection.recv(4096):
            answer += part
    return json.loads(answer)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 {{v.program}} STATION")
    reply = ask(sys.argv[1:])
    if "error" in reply:
        sys.exit("meter: " + reply["error"])
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "readings")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, sys.argv[1] + ".txt"), "w", encoding="utf-8") as stream:
        stream.write("station: " + sys.argv[1] + "\nreading: " + reply["reading"] + "\n")
    print("reading: " + reply["reading"])


main()
