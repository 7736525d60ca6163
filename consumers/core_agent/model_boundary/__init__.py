"""The model boundary: what went over the wire to the model, as evidence the agent cannot forge.

A loopback server in its own process. ``server`` listens, ``wire`` is HTTP/1.1, the four
``api_*`` modules know the model APIs, ``forward`` records a real endpoint, ``replay`` answers
from a recording, ``policy`` plays a scripted model, ``redact`` keeps keys out of everything
that is written, ``record`` writes it, ``client`` is the harness's side of the control pipe.
"""
