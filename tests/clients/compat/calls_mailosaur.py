import os
import threading
from datetime import datetime, timedelta

from check import check, finish, send
from mailosaur import MailosaurClient
from mailosaur.models import MailosaurException, SearchCriteria, ServerCreateOptions

domain = os.environ["DOMAIN"]
server, host = domain.split(".", 1)
os.environ["MAILOSAUR_SMTP_HOST"] = host
client = MailosaurClient(os.environ["TOKEN"], os.environ["BASE_URL"] + "/")


def criteria(**fields):
    made = SearchCriteria()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def refused(call, *statuses):
    try:
        call()
    except MailosaurException as error:
        return not statuses or error.http_status_code in statuses
    return False


check("servers.list", lambda: any(item["id"] == server for item in client.servers.list().items))
check("servers.get", lambda: client.servers.get(server).name == domain)
address = check("servers.generate_email_address", lambda: client.servers.generate_email_address(server))
threading.Timer(0.3, send, [address, "First"]).start()
message = check("messages.get", lambda: client.messages.get(server, criteria(sent_to=address), timeout=20000))
check("messages.get: the message", lambda: message.subject == "First" and message.sender[0].email == "shop@sender.example")
check("messages.get: its codes", lambda: message.text.codes[0].value == "482913" and message.html.codes[0].value == "482913")
check("messages.get: its links", lambda: message.html.links[0].href == "https://sender.example/v")
check("messages.get_by_id", lambda: client.messages.get_by_id(message.id).server == server)
check("messages.search", lambda: len(client.messages.search(server, criteria(sent_to=address, subject="first")).items) == 1)
check("messages.search: times out", lambda: refused(
    lambda: client.messages.search(server, criteria(subject="nothing"), timeout=400)))
check("messages.search: times out without an error", lambda: client.messages.search(
    server, criteria(subject="nothing"), timeout=400, received_after=datetime.today() - timedelta(hours=1),
    error_on_timeout=False).items == [])
check("messages.search: no criteria", lambda: refused(
    lambda: client.messages.search(server, criteria()), 400))
send(os.environ["OWNED"], "Owned")
check("messages.list", lambda: [item.subject for item in client.messages.list(server, items_per_page=10).items] == ["Owned"])
check("files.get_email", lambda: b"Subject: First" in client.files.get_email(message.id).content)
check("files.get_attachment", lambda: client.files.get_attachment(message.attachments[0].id).content == b"hello")
check("messages.delete", lambda: client.messages.delete(message.id))
check("messages.get_by_id: a deleted message", lambda: refused(lambda: client.messages.get_by_id(message.id), 404, 410))
check("messages.delete_all", lambda: client.messages.delete_all(server))
check("messages.list: nothing is left", lambda: client.messages.list(server).items == [])
check("servers.create: is refused", lambda: refused(lambda: client.servers.create(ServerCreateOptions("x")), 405))
check("servers.delete: is refused", lambda: refused(lambda: client.servers.delete(server), 405))
check("servers.get_password: is refused", lambda: refused(lambda: client.servers.get_password(server), 404))
check("usage.limits: is refused", lambda: refused(client.usage.limits, 404))
check("devices.list: is refused", lambda: refused(client.devices.list, 404))
wrong = MailosaurClient("x", os.environ["BASE_URL"] + "/")
check("servers.list: a wrong API key", lambda: refused(wrong.servers.list, 401))
finish()
