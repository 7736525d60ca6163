"""Tiny C programs that the benchmarks run, compiled once into a folder.

The work of a trial must be small beside what is measured; a Python checker would hide the harness. Linked statically
where the compiler can: a dynamic program spends about as long in its loader as ``subprocess.run`` spends on starting it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

SOURCES = {
    # REPORT: writes a report of 30 bytes there, and three bytes to stdout.
    "noop": r"""
#include <fcntl.h>
#include <unistd.h>
int main(int c,char**v){int f;if(c<2)return 2;f=open(v[1],O_WRONLY|O_CREAT|O_TRUNC,0644);if(f<0)return 3;
if(write(f,"{\"passed\": true, \"score\": 1.0}",30)!=30)return 4;close(f);if(write(1,"ok\n",3)!=3)return 5;return 0;}
""",
    # REPORT HOW: sleeps a minute. HOW it takes SIGTERM: obey, ignore, or daemon (leaves a setsid daemon that ignores it).
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
    # REPORT: offers a GiB on stdout, in lines of 80 bytes.
    "flood": r"""
#include <unistd.h>
static char b[65536];
int main(void){long long d=0;int i;for(i=0;i<65536;i++)b[i]=i%80==79?'\n':'a'+i%26;while(d<(1LL<<30)){ssize_t w=write(1,b,sizeof b);if(w<=0)return 1;d+=w;}return 0;}
""",
    # FILE PROGRAM ARGUMENT...: runs the program and writes the largest memory of it or what it waited for, in KiB. What a
    # Python program starts inherits Python's own peak in ru_maxrss, so a small program has to stand between.
    "peak": r"""
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int c,char**v){struct rusage u;int s;FILE*f;pid_t p;if(c<3)return 2;p=fork();if(p<0)return 3;
if(p==0){execvp(v[2],v+2);_exit(127);}if(wait4(p,&s,0,&u)<0)return 4;f=fopen(v[1],"w");if(!f)return 5;
fprintf(f,"%ld\n",u.ru_maxrss);fclose(f);return WIFEXITED(s)?WEXITSTATUS(s):128;}
""",
}


@dataclass(frozen=True, slots=True)
class Programs:
    """Paths of the compiled programs, and how they were linked (``static`` or ``dynamic``)."""

    noop: str
    hang: str
    flood: str
    peak: str
    linked: str


def compile_programs(folder: str) -> Programs:
    """Compile everything into ``folder``. Exits with a clear word when there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("skipped: no C compiler (cc); the benchmarks need one")
    os.makedirs(folder, exist_ok=True)
    paths = {name: os.path.join(folder, name) for name in SOURCES}
    linked = "static"
    for name, source in SOURCES.items():
        build = [compiler, "-O2", "-x", "c", "-o", paths[name], "-"]
        if linked == "static" and subprocess.run([*build, "-static"], input=source.encode(), capture_output=True).returncode:
            linked = "dynamic"
        if linked == "dynamic":
            subprocess.run(build, input=source.encode(), check=True)
    return Programs(**paths, linked=linked)
