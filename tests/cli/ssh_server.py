"""An sshd of this user on this machine, with a port, keys and a home folder of its own."""
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from cli_case import limit


class Server:
    """A running server. `ssh` is the command line that reaches it, and `host` its name there. Programs in `programs`
    take the place of the system's in its sessions."""

    def __init__(self, folder):
        self.folder, self.host = pathlib.Path(folder), "there"
        self.home, self.programs = self.folder / "home", self.folder / "programs"
        self.home.mkdir()
        self.programs.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        for key in ("host_key", "user_key", "other_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key], check=True)
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # like the service does
        server = self.folder / "sshd_config"
        server.write_text(f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
                          f"AuthorizedKeysFile {self.folder}/user_key.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
                          f"SetEnv HOME={self.home} XDG_CACHE_HOME={self.home}/.cache XDG_DATA_HOME={self.home}/.data "
                          f"PATH={self.programs}:/usr/local/bin:/usr/bin:/bin GALLIVM_PERF=nopt\n")
        self.ssh = self.client("user_key", self.port)
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin")
        self.process = subprocess.Popen([sshd, "-D", "-e", "-f", server], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        end = time.time() + limit(30)
        while subprocess.run([*self.ssh.split(), self.host, "true"], stdin=subprocess.DEVNULL,
                             capture_output=True).returncode != 0:
            if self.process.poll() is not None or time.time() > end:
                self.stop()
                raise AssertionError("sshd does not answer")
            time.sleep(0.1)

    def client(self, key, port):
        """Returns the command line of a client with this key."""
        file = self.folder / f"{key}-{port}"
        file.write_text(f"Host {self.host}\nHostName 127.0.0.1\nPort {port}\nUser {getpass.getuser()}\n"
                        f"IdentityFile {self.folder}/{key}\nIdentitiesOnly yes\n"
                        "Host *\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
                        "GlobalKnownHostsFile /dev/null\n")
        return f"ssh -F {file}"

    def replace(self, name, script):
        """Makes sessions run a script in place of a program."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file

    def cut(self):
        """Ends all connections, as a network that fails does, and returns their number."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:  # the process of a connection, and that of its session
            below = pathlib.Path(f"/proc/{child}/task/{child}/children").read_text().split()
            for pid in (child, *(one for one in below if os.geteuid() == 0 and b"sshd" in
                                 pathlib.Path(f"/proc/{one}/cmdline").read_bytes())):
                os.kill(int(pid), signal.SIGKILL)
        return len(children)

    def stop(self):
        self.process.terminate()
        self.process.wait()
