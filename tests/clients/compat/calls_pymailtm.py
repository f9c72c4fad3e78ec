import os
import threading

from check import check, finish, send
from pymailtm import MailTm
from pymailtm.pymailtm import Account, CouldNotGetAccountException

MailTm.api_address = os.environ["BASE_URL"]
MailTm.db_file = os.path.join(os.environ["HOME"], ".pymailtm")
client = MailTm()
account = check("get_account", client.get_account)
check("get_account: its address", lambda: account.address.endswith("@" + os.environ["DOMAIN"]))
check("get_messages: none", lambda: account.get_messages() == [])
threading.Timer(1, send, [account.address, "First"]).start()
message = check("wait_for_message", account.wait_for_message)
check("wait_for_message: the message", lambda: message.subject == "First" and message.from_["address"] == "shop@sender.example")
check("wait_for_message: its text and HTML", lambda: "482913" in message.text and "<b>482913</b>" in message.html[0])
check("get_messages", lambda: [one.id_ for one in account.get_messages()] == [message.id_])
check("get_account: the stored one", lambda: client._open_account().id_ == account.id_)


def is_refused():
    try:
        Account(account.id_, account.address, "wrong password")
    except CouldNotGetAccountException:
        return True
    return False


check("get_account: a wrong password", is_refused)
check("delete_account", account.delete_account)
check("delete_account: a deleted account", lambda: not account.delete_account())
finish()
