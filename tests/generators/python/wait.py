"""Waits for a mail with the client that openapi-generator makes: python wait.py BASE_URL TOKEN ADDRESS"""

import sys

from openapi_client import ApiClient, Configuration, EmailFeature, TokenApi, WaitForEmailRequest, WaitForEmailRequestMatch

base_url, token, address = sys.argv[1:]
with ApiClient(Configuration(host=base_url), header_name="x-api-token", header_value=token) as client:
    api = TokenApi(client)
    match = WaitForEmailRequestMatch(has=[EmailFeature.CODE])
    found = api.wait_for_email(WaitForEmailRequest(address=address, since="0", match=match))
    print(found.codes[0].code, api.list_live_tokens().tokens[0].expires_at is None)
