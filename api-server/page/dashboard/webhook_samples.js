// What a webhook receives, and code that checks its signature: that of docs/webhooks.md, without the server around it.

const BODY = {
  id: "evt_d9234e4e-4475-4737-bd42-ac5c41965853",
  type: "email.received",
  created_at: "2026-11-21T14:16:31.399Z",
  data: {
    email_id: "01a1fe77-43a7-7d37-809c-543308f40d09",
    account_id: "01a1fe76-822a-7569-ac8e-6cdb88728f80",
    address: "ada@inbox.localhost",
    from: "Grace <grace@example.org>",
    sender: "grace@example.org",
    subject: "Hello",
    preview_text: "It works.",
    size: 285,
    created_at: "2026-11-21T14:16:31.399Z",
  },
};

export const PAYLOAD = `POST /mail HTTP/1.1
content-type: application/json
x-webhook-id: evt_d9234e4e-4475-4737-bd42-ac5c41965853
x-webhook-timestamp: 1795270591
x-webhook-signature: sha256=1c8a6f4989646f3f919bf039bdb966089360d3d4d89ee1fa375596fcba2f43c6

${JSON.stringify(BODY, null, 2)}
`;

export const SAMPLES = [
  {
    key: "javascript",
    label: "JavaScript",
    code: `import { createHmac, timingSafeEqual } from "node:crypto";

const secret = process.env.WEBHOOK_SECRET;

export function isGenuine(headers, body) {
  const timestamp = headers["x-webhook-timestamp"] ?? "";
  if (!/^[0-9]{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - timestamp) > 300) return false;
  const expected = createHmac("sha256", secret).update(\`\${timestamp}.\`).update(body).digest("hex");
  const [a, b] = [Buffer.from(\`sha256=\${expected}\`), Buffer.from(headers["x-webhook-signature"] ?? "")];
  return a.length === b.length && timingSafeEqual(a, b);
}
`,
  },
  {
    key: "python",
    label: "Python",
    code: `import hashlib, hmac, os, re, time

SECRET = os.environ["WEBHOOK_SECRET"].encode()

def is_genuine(headers, body):
    timestamp = headers.get("X-Webhook-Timestamp", "")
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        return False
    expected = hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    given = headers.get("X-Webhook-Signature", "")
    return hmac.compare_digest(given.encode(), f"sha256={expected}".encode())
`,
  },
  {
    key: "go",
    label: "Go",
    code: `var secret = []byte(os.Getenv("WEBHOOK_SECRET"))

func isGenuine(headers http.Header, body []byte) bool {
	timestamp := headers.Get("X-Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(headers.Get("X-Webhook-Signature")))
}
`,
  },
];
