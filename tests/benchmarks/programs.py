"""Tiny C programs that the benchmarks run, compiled once into a folder.

The work of a trial must be small beside what is measured; a Python checker would hide the harness.
"""

from __future__ import annotations

import os
import shutil
import subprocess

SOURCES = {
    # Writes the 30-byte report that it is given the path of, and three bytes to stdout.
    "noop": r"""
#include <fcntl.h>
#include <unistd.h>
int main(int c,char**v){int f;if(c<2)return 2;f=open(v[1],O_WRONLY|O_CREAT|O_TRUNC,0644);if(f<0)return 3;
if(write(f,"{\"passed\": true, \"score\": 1.0}",30)!=30)return 4;close(f);if(write(1,"ok\n",3)!=3)return 5;return 0;}
""",
    # Sleeps a minute; the second argument says how it takes SIGTERM: obey, ignore, or a setsid daemon is left behind.
    "hang": r"""
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
static void nap(void){time_t e=time(0)+60;while(time(0)<e)sleep(1);}
int main(int c,char**v){
 if(c>2&&!strcmp(v[2],"ignore"))signal(SIGTERM,SIG_IGN);
 if(c>2&&!strcmp(v[2],"daemon")&&fork()==0){setsid();if(fork()!=0)_exit(0);signal(SIGTERM,SIG_IGN);nap();_exit(0);}
 nap();return 0;}
""",
    # Offers a GiB on stdout.
    "flood": r"""
#include <string.h>
#include <unistd.h>
static char b[65536];
int main(void){long long d=0;memset(b,'a',sizeof b);while(d<(1LL<<30)){ssize_t w=write(1,b,sizeof b);if(w<=0)return 1;d+=w;}return 0;}
""",
}


def compile_programs(folder: str) -> dict[str, str]:
    """Paths of the compiled programs by name. Exits with a clear word when there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("skipped: no C compiler (cc); the benchmarks need one")
    os.makedirs(folder, exist_ok=True)
    paths = {}
    for name, source in SOURCES.items():
        paths[name] = os.path.join(folder, name)
        subprocess.run([compiler, "-O2", "-x", "c", "-o", paths[name], "-"], input=source.encode(), check=True)
    return paths
