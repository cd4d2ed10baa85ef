"""What ranks do in the tests of traces; see `ranks.start`."""
import numpy as np
from roundelay.communicator import init
def main(name, arguments):
    comm = init(timeout=30)
    globals()[name](comm, *arguments)
    comm.close()

def play(comm):
    x=np.ones(1000,np.float32)
    for a in ("two_shot","ring","switch"):
        comm.all_reduce(x,algorithm=a)
    with comm.trace() as t:
        for a in ("two_shot","ring","switch"):
            comm.all_reduce(x,algorithm=a)
        comm.barrier()
        comm.broadcast(x,root=1)
        comm.all_gather(x,counts=[1000]*comm.ranks)
    if comm.rank==0:
        tl=t.timeline
        print(tl, t.error)
        print(tl.summary())
        for i in range(len(tl)): print(tl.names[tl.rank[i]], tl.call[i], tl.begin[i]-tl.span[0], tl.end[i]-tl.begin[i], tl.text(i))
        from roundelay.formats.chrome import write_chrome, read_chrome
        b=write_chrome(tl); r=read_chrome(b); print(len(b), r, r.calls==tl.calls)
        print(len(tl.messages().send))
        for c in comm.last_calls(): print(c)
