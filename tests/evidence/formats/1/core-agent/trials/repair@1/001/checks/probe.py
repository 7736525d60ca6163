"""Call the function that the subject left, once per input, and print what comes back.

Everything in this process may be in the subject's hand, so nothing here compares or
decides: the inputs come in, JSON lines go out, and the expected values are elsewhere.
"""

import json
import os
import stat
import sys

MAX_SOURCE_BYTES = 1 << 20


def main(workspace, inputs_path):
    with open(inputs_path, "rb") as stream:
        inputs = json.load(stream)
    descriptor = os.open(os.path.join(workspace, inputs["path"]), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        sys.exit("not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        source = stream.read(MAX_SOURCE_BYTES)
    names = {"__name__": "subject", "__builtins__": __builtins__}
    exec(compile(source, inputs["path"], "exec"), names)
    function = names[inputs["function"]]
    for number, value in enumerate(inputs["values"]):
        try:
            line = {"number": number, "value": function(value)}
        except Exception as error:  # whatever the subject raises is its answer
            line = {"number": number, "raised": type(error).__name__}
        print(json.dumps(line), flush=True)


main(*sys.argv[1:])
