read -r address since < <(tempmail mail new)

curl -sS --fail --json "{\"email\": \"$address\"}" "$SITE_URL/api/sign-up"

code=$(tempmail mail code "$address" --since "$since" --subject Confirm)
curl -sS --fail --json "{\"email\": \"$address\", \"code\": \"$code\"}" "$SITE_URL/api/confirm"
