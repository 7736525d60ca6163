"""A FUSE file system that never answers: whoever looks into it sleeps uninterruptibly, past SIGKILL.

Usage: hung_mount.py FOLDER, as root in a mount namespace of its own. Prints ``mounted``, then ``caught`` when
somebody waits. Its own end answers everybody with an error.
"""

import ctypes
import os
import struct
import sys

INIT = 26
libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"hung", os.fsencode(sys.argv[1]), b"fuse", 0, options) != 0:
    sys.exit(77)
print("mounted", flush=True)
while True:
    request = os.read(device, 1 << 20)
    _, opcode, unique = struct.unpack_from("=IIQ", request)
    if opcode == INIT:
        body = struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0, *[0] * 7)
        os.write(device, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)
    else:
        print("caught", flush=True)
