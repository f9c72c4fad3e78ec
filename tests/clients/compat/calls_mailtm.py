import os
import threading

import requests
from check import check, finish, send


class Redirected(requests.Session):
    """The client has the address of the service in each call, so it is replaced on the way."""

    def request(self, method, url, **options):
        return super().request(method, url.replace("https://api.mail.tm", os.environ["BASE_URL"]), **options)


from mailtm import Email  # noqa: E402

Email.session = Redirected()
account = check("Email", Email)
check("Email: its domain", lambda: account.domain == os.environ["DOMAIN"])
check("register", lambda: account.register("kim", "correct horse"))
check("register: its address and token", lambda: account.address == "kim@" + os.environ["DOMAIN"] and account.token != "")
check("message_list: none", lambda: account.message_list() == [])
received, arrived = [], threading.Event()


def listener(message):
    received.append(message)
    arrived.set()


check("start", lambda: account.start(listener, interval=0.2))
send(account.address, "First")
check("start: the listener is called", lambda: arrived.wait(60))
check("stop", account.stop)
check("start: the message", lambda: received[0]["subject"] == "First" and "482913" in received[0]["text"])
check("message", lambda: account.message(received[0]["id"])["html"][0].startswith("<p>"))
check("message_list: new ones only", lambda: account.message_list() == [])

def refused(call):
    try:
        call()
    except requests.HTTPError as error:
        return error.response.status_code
    return None


check("register: an address that is taken", lambda: refused(lambda: Email().register("kim", "correct horse")) == 422)
finish()
