"""Waits for the mail of a test and hands over its code or link.

with Tempmail() as tempmail, tempmail.inbox() as inbox:
    sign_up(inbox.address)
    confirm(inbox.code(subject="Confirm"))
"""

from ._awaited import AsyncInbox, AsyncTempmail
from ._blocking import Inbox, Tempmail
from .errors import ApiError, TempmailError, UnreachableError, WaitTimeoutError
from .models import Attachment, Code, Has, Link, Mail, Summary

__all__ = [
    "ApiError",
    "AsyncInbox",
    "AsyncTempmail",
    "Attachment",
    "Code",
    "Has",
    "Inbox",
    "Link",
    "Mail",
    "Summary",
    "Tempmail",
    "TempmailError",
    "UnreachableError",
    "WaitTimeoutError",
]
