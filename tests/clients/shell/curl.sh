# An address and a token that reads it alone. Its `since` is before the first mail.
address="sign-up-$RANDOM$RANDOM@inbox.localhost"
inbox=$(curl -sS --fail --retry 5 --json "{\"address\": \"$address\"}" --header "x-api-token: $TEMPMAIL_CLIENT_TOKEN" "$TEMPMAIL_CLIENT_URL/v1/tokens")

curl -sS --fail --json "{\"email\": \"$address\"}" "$SITE_URL/api/sign-up"

# Waits for the mail, and takes its code.
mail=$(jq '{address, since, match: {subject: "Confirm", has: "code"}}' <<<"$inbox" |
    curl -sS --fail --retry 5 --json @- --header "x-api-token: $(jq -r .token <<<"$inbox")" "$TEMPMAIL_CLIENT_URL/v1/wait")
code=$(jq -r '.codes[0].code' <<<"$mail")

curl -sS --fail --json "{\"email\": \"$address\", \"code\": \"$code\"}" "$SITE_URL/api/confirm"
