"""Sends a mail with each program to a domain that is not served: a sink delivers it, and without one it is refused with a
clear reply. The programs are told host and port, and have their default options otherwise."""

import json
import os
import smtplib
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
RECIPIENT = "ada@customer.example.org"
REFUSAL = "This domain is not served here"


class Up:
    """A running `tempmail up`."""

    def __init__(self, *flags):
        self.flags = flags

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="tempmail-sink-", ignore_cleanup_errors=True)
        os.chmod(self.directory.name, 0o755)
        data = Path(self.directory.name, "data")
        listeners = [f"--{name}=127.0.0.1:0" for name in ("http", "smtp", "admin")]
        self.process = subprocess.Popen(
            [os.environ["TEMPMAIL"], "up", "--data-dir", str(data), *listeners, *self.flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
        else:
            raise RuntimeError("`tempmail up` did not start")
        credentials = json.loads(data.joinpath("credentials.json").read_text())
        self.certificate = data / "smtp-cert.pem"
        self.url, self.token = credentials["base_url"], credentials["live_token"]
        self.smtp = int(credentials["smtp"].rpartition(":")[2])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    def subjects(self):
        """The subjects of the mail to RECIPIENT, as one wait finds them."""
        request = urllib.request.Request(f"{self.url}/v1/inbox/{RECIPIENT}?limit=50",
                                         headers={"x-api-token": self.token})
        with urllib.request.urlopen(request) as answer:
            return [email["subject"] for email in json.load(answer)["emails"]]


def run(*command, **options):
    """The output of a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


def sender(*command):
    """Sends with a program that is given host, port, recipient and subject."""
    return lambda up, subject: run(*command, "127.0.0.1", str(up.smtp), RECIPIENT, subject, cwd=HERE)


def send_with_smtplib(up, subject):
    """Signs in where that is offered, over STARTTLS where that is, and sends lines that end in LF."""
    with smtplib.SMTP("127.0.0.1", up.smtp) as client:
        client.ehlo()
        if client.has_extn("starttls"):
            client.starttls(context=ssl.create_default_context(cafile=up.certificate))
            client.ehlo()
        if client.has_extn("auth"):
            client.login("any", "any password")
        client.docmd("MAIL", "FROM:<app@client.example>")
        code, text = client.docmd("RCPT", f"TO:<{RECIPIENT}>")
        if code != 250:
            raise RuntimeError(f"{code} {text.decode()}")
        client.docmd("DATA")
        client.send(f"From: app@client.example\nSubject: {subject}\n\nHello.\n.\n")
        code, text = client.getreply()
        if code != 250:
            raise RuntimeError(f"{code} {text.decode()}")


def send_with_django(up, subject):
    login = ("any", "any password") if up.flags else (None, None)
    program = """
import sys
from django.conf import settings
from django.core.mail import send_mail
port, user, password, recipient, subject = sys.argv[1:]
settings.configure(EMAIL_HOST="127.0.0.1", EMAIL_PORT=int(port), EMAIL_HOST_USER=user, EMAIL_HOST_PASSWORD=password)
send_mail(subject, "Hello.", "app@client.example", [recipient])
"""
    run(sys.executable, "-c", program, str(up.smtp), *(part or "" for part in login), RECIPIENT, subject)


def send_with_aiosmtplib(up, subject):
    program = """
import asyncio, sys
from email.message import EmailMessage
import aiosmtplib
host, port, recipient, subject = sys.argv[1:]
message = EmailMessage()
message["From"], message["To"], message["Subject"] = "app@client.example", recipient, subject
message.set_content("Hello.")
asyncio.run(aiosmtplib.send(message, hostname=host, port=int(port)))
"""
    sender(sys.executable, "-c", program)(up, subject)


def send_with_git(up, subject):
    with tempfile.TemporaryDirectory() as directory:
        patch = Path(directory, "0001.patch")
        patch.write_text(f"From: app@client.example\nDate: Tue, 24 Nov 2026 10:00:00 +0000\nSubject: {subject}\n\n"
                         "A change.\n---\n file | 1 +\n")
        environment = {**os.environ, "HOME": directory, "GIT_CONFIG_NOSYSTEM": "1"}
        run("git", "init", "--quiet", directory, env=environment)
        run("git", "-c", "user.name=App", "-c", "user.email=app@client.example", "send-email", "--confirm=never",
            "--suppress-cc=all", "--from=app@client.example", f"--to={RECIPIENT}", "--smtp-server=127.0.0.1",
            f"--smtp-server-port={up.smtp}", str(patch), cwd=directory, env=environment)


SENDERS = {
    "smtplib with login and LF": send_with_smtplib,
    "Django": send_with_django,
    "nodemailer": sender("node", "nodemailer.cjs"),
    "aiosmtplib": send_with_aiosmtplib,
    "Go's net/smtp": sender("go", "run", "send.go"),
    "Ruby's net/smtp": sender("ruby", "send.rb"),
    "PHPMailer": sender("php", "phpmailer.php"),
    "Symfony Mailer": sender("php", "symfony.php"),
    "git send-email": send_with_git,
}


def is_delivered(up, name, send):
    send(up, f"from {name}")
    found = up.subjects()
    assert f"from {name}" in found, found


def is_refused(up, name, send):
    try:
        send(up, f"from {name}")
    except RuntimeError as error:
        assert REFUSAL in str(error), error
    else:
        raise AssertionError("it was accepted")


def main():
    passed, failed = 0, 0
    verifying = {"smtplib that verifies the certificate": send_with_smtplib}
    for flags, check, word, senders in (
        (["--sink"], is_delivered, "delivers", SENDERS),
        (["--sink", "--starttls"], is_delivered, "delivers", verifying),
        ([], is_refused, "refuses", SENDERS),
    ):
        with Up(*flags) as up:
            for name, send in senders.items():
                title = f"up {' '.join(flags)} {word} mail of {name}".replace("  ", " ")
                began = time.monotonic()
                try:
                    check(up, name, send)
                    passed += 1
                    print(f"ok   {title} ({time.monotonic() - began:.1f} s)", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAIL {title}", flush=True)
                    traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


sys.exit(main())
