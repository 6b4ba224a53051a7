"""certificates.py - authorities and certificates for tests, made with openssl in a private folder."""

import hashlib
import shutil
import ssl
import subprocess

from harness import Skip

CA_CONFIG = """[ca]
default_ca = here
[here]
database = {folder}/index.txt
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
organizationName = optional
"""


def openssl(*arguments, code=0):
    if shutil.which("openssl") is None:
        raise Skip("openssl is not installed (tools/setup test)")
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if code is not None and done.returncode != code:
        raise AssertionError(f"openssl {arguments}: {done.stderr.decode()}")
    return done


class Certificate:
    """An identity: files with a certificate and its key."""

    def __init__(self, folder, name):
        self.path, self.key = folder / f"{name}.pem", folder / f"{name}.key"

    @property
    def der(self):
        return ssl.PEM_cert_to_DER_cert(self.path.read_text())

    @property
    def fingerprint(self):
        return "sha256:" + hashlib.sha256(self.der).hexdigest()


EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority(Certificate):
    def __init__(self, folder, name="ca"):
        self.folder = folder / name
        self.folder.mkdir()
        super().__init__(self.folder, name)
        openssl("req", "-x509", *EC, "-days", 2, "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.path)
        (self.folder / "index.txt").touch()
        self.config = self.folder / "ca.cnf"
        self.config.write_text(CA_CONFIG.format(folder=self.folder), encoding="utf-8")

    def issue(self, name, subject=None, begin=None, end=None):
        """For localhost and 127.0.0.1, and for clients; times as openssl ca takes them."""
        made = Certificate(self.folder, name)
        request = self.folder / f"{name}.csr"
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        openssl("req", "-new", *EC, "-subj", subject or f"/CN={name}", "-addext", names, "-keyout", made.key, "-out", request)
        made.key.chmod(0o600)
        span = ("-startdate", begin, "-enddate", end) if end else ("-days", "2")
        signed = ("-cert", self.path, "-keyfile", self.key, "-in", request, "-out", made.path)
        openssl("ca", "-batch", "-notext", "-preserveDN", "-config", self.config, *signed, *span)
        return made

    def expired(self, name):
        return self.issue(name, begin="20200101000000Z", end="20200102000000Z")

    def context(self, client=None, **options):
        """Of a Python client that trusts this authority."""
        context = ssl.create_default_context(cafile=str(self.path))
        if client is not None:
            context.load_cert_chain(client.path, client.key)
        for name, value in options.items():
            setattr(context, name, value)
        return context
