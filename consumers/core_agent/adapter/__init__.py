"""How a real agent CLI is run and read: the engine behind the data files in ``adapters/``.

``schema`` reads and checks an adapter, ``load`` finds one, ``template`` fills it in,
``mapping`` turns the CLI's own event stream into ``core-agent/1`` events, ``identity``
says which bytes really run, ``restriction`` turns grants into arguments and back into
what was effectively granted, and ``contradictions`` compares what the evidence says.
Nothing in here starts a process.
"""
