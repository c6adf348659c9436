"""Brokers of Apache Kafka and one controller on this machine, for the scripts beside the reports.

KAFKA names an unpacked release. Needs Linux, root, Java 17, nft, kafka-python==3.0.12 and confluent-kafka==2.16.1.
Run a script by ``unshare -n``: each node has a group id of its own, and nft rejects what it sends over a link that is
cut. Settings are Kafka's defaults, but for those in COMMON and those that a script names.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from operating import Operator

CONTROLLER = 9
ID = "MkU3OEVBNTcwNTJENDM2Qg"
COMMON = """node.id={0}\nlog.dirs={1}/{0}\ncontroller.quorum.voters=9@127.0.0.1:9099\ncontroller.listener.names=C
listener.security.protocol.map=C:PLAINTEXT,PLAINTEXT:PLAINTEXT\nauto.leader.rebalance.enable=false
offsets.topic.num.partitions=1\ntransaction.state.log.num.partitions=1\nmin.insync.replicas=2\n"""
LOGGING = """rootLogger=INFO, A\nappender.a.type=Console\nappender.a.name=A\nappender.a.layout.type=PatternLayout
appender.a.layout.pattern=%d %p %m (%c)%n\n"""
JAVA = ["java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{os.environ['KAFKA']}/libs/*"]


class Cluster(Operator):
    def __init__(self, brokers=3, through=1, **settings):
        self.home, self.processes = Path(tempfile.mkdtemp(prefix="kafka-")), {}
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.nft("add table ip cut; add chain ip cut out { type filter hook output priority 0; }")
        atexit.register(self.close)
        (self.home / "log4j2.properties").write_text(LOGGING)
        for node in (nodes := (CONTROLLER, *range(brokers))):
            role, name = ("controller", "C") if node == CONTROLLER else ("broker", "PLAINTEXT")
            own = f"process.roles={role}\nlisteners={name}://127.0.0.1:{9090 + node}\n"
            lines = [f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()]
            (self.home / f"{node}.properties").write_text(COMMON.format(node, self.home) + own + "".join(lines))
        tool = [*JAVA, "kafka.tools.StorageTool", "format", "-t", ID, "-c", self.home / f"{CONTROLLER}.properties"]
        subprocess.run(tool, stdout=subprocess.DEVNULL, check=True)
        for node in range(brokers):  # as the tool formats them, in less time
            (self.home / str(node)).mkdir()
            (self.home / str(node) / "meta.properties").write_text(f"version=1\ncluster.id={ID}\nnode.id={node}\n")
        for node in nodes:
            self.start(node)
        super().__init__(through, brokers)

    def start(self, node):
        logging = f"-Dlog4j2.configurationFile={self.home}/log4j2.properties"
        command = [*JAVA, logging, "kafka.Kafka", self.home / f"{node}.properties"]
        with (self.home / f"{node}.log").open("a") as log:
            self.processes[node] = subprocess.Popen(
                command, stdout=log, stderr=log, group=60000 + node, extra_groups=[]
            )

    def end(self, node, how=signal.SIGTERM):
        self.processes[node].send_signal(how)
        self.processes[node].wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def nft(self, commands):
        subprocess.run(["nft", "-f", "-"], input=commands, text=True, check=True)

    def cut(self, *links):
        """Cut the links between these pairs of nodes, and no others."""
        ways = [way for a, b in links for way in ((a, b), (b, a))]
        rule = "add rule ip cut out meta skgid {} tcp dport {} reject with tcp reset\n"
        self.nft("flush chain ip cut out\n" + "".join(rule.format(60000 + a, 9090 + b) for a, b in ways))
