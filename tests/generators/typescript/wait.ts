// Waits for a mail with the client that openapi-generator makes: node wait.js BASE_URL TOKEN ADDRESS
import { Configuration, EmailFeature, TokenApi } from "./client";

async function main([basePath, token, address]: string[]) {
  const api = new TokenApi(new Configuration({ basePath, headers: { "x-api-token": token } }));
  const waitForEmailRequest = { address, since: "0", match: { has: [EmailFeature.Code] } };
  const found = await api.waitForEmail({ waitForEmailRequest });
  const { tokens } = await api.listLiveTokens();
  console.log(found?.codes[0].code, tokens[0].expiresAt === null);
}

main(process.argv.slice(2));
