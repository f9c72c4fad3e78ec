"""Checks calls of a client, and sends mail."""
import email.message
import os
import smtplib
import sys

failed = 0


def check(name, call):
    """Runs a call: `name` begins with it, as `register: a wrong password`. What it returns is returned, and must not be
    false."""
    global failed
    try:
        result = call()
        if result is False:
            raise AssertionError("not as expected")
    except BaseException as error:  # a client may exit, too
        failed += 1
        print(f"FAILED: {name}\n{type(error).__name__}: {error}", flush=True)
        return None
    print(f"ok: {name}", flush=True)
    return result


def finish():
    sys.exit(1 if failed else 0)


def send(to, subject="Hello"):
    """Sends a mail with text, HTML and a file."""
    message = email.message.EmailMessage()
    message["From"], message["To"], message["Subject"] = "Shop <shop@sender.example>", to, subject
    message.set_content("Your verification code is 482913.\n")
    html = '<p>Your verification code is <b>482913</b></p><a href="https://sender.example/v">Verify</a>'
    message.add_alternative(html, subtype="html")
    message.add_attachment(b"hello", maintype="application", subtype="pdf", filename="bill.pdf")
    host, port = os.environ["TEST_SMTP"].rsplit(":", 1)
    with smtplib.SMTP(host, int(port)) as smtp:
        smtp.send_message(message)
