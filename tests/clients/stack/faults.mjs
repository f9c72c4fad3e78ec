// A proxy before tempmail whose faults are the first part of the path: `/cut/v1/wait` is `/v1/wait`, and is cut.
import { once } from "node:events";
import { createServer, request as send } from "node:http";

/** For how long `cut` keeps a connection open, in milliseconds. */
const OPEN = 300;

/** Until when `dated` accepts nothing. */
let notBefore = 0;

/** What is wrong, by name: called for each request with its number from 1 and what forwards it. */
const FAULTS = {
  /** Connections are closed before most waits have ended, as a middlebox does. */
  cut: (number, { response, forward }) => {
    setTimeout(() => response.headersSent || response.destroy(), OPEN);
    forward();
  },
  /** Every other request is carried out, and its answer gets lost. */
  lost: (number, { response, forward }) => forward(number % 2 === 1 ? { answered: () => response.destroy() } : {}),
  /** Every other request is refused, and is to be repeated. */
  limited: (number, { response, forward }) => {
    if (number % 2 === 0) return forward();
    response.writeHead(429, { "content-type": "application/json", "retry-after": "1" });
    response.end('{"error":"rate_limit_exceeded"}');
  },
  /** Every other request is answered by a gateway whose server is away. */
  away: (number, { response, forward }) => {
    if (number % 2 === 0) return forward();
    response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
  },
  /** Every other request is answered by a CDN that does not reach its origin. */
  cdn: (number, { response, forward }) => {
    if (number % 2 === 0) return forward();
    response.writeHead([520, 522, 524, 530][(number >> 1) % 4]).end();
  },
  /** Every other request is refused until a date, before which nothing is accepted, and the body of the refusal is cut. */
  dated: (number, { response, forward }) => {
    const now = Date.now();
    if (now < notBefore) return response.writeHead(400, { "content-type": "application/json" }).end('{"error":"too_early"}');
    if (number % 2 === 0) return forward();
    notBefore = Math.ceil(now / 1000 + 1) * 1000;
    // Two of the forms of a date; the second one names no zone.
    const [day, date, month, year, time] = new Date(notBefore).toUTCString().replace(",", "").split(" ");
    const forms = [`${day}, ${date} ${month} ${year} ${time} GMT`, `${day} ${month} ${date.replace(/^0/, " ")} ${time} ${year}`];
    response.writeHead(503, { "retry-after": forms[(number >> 1) % 2], "content-length": "100" });
    response.write("part");
    setTimeout(() => response.destroy(), OPEN);
  },
  /** Every wait ends after a second, long before its own timeout. */
  short: (number, { forward }) => forward({ change: (body) => ({ ...body, timeout: Math.min(body.timeout, 1) }) }),
  /** All requests are refused by something else. */
  login: (number, { response }) => response.writeHead(302, { location: "http://login.example/" }).end(),
};

/** Starts the proxy on a free port. */
export async function startFaults(target) {
  const counts = {};
  const server = createServer(async (request, response) => {
    const [, name, path] = /^\/(\w+)(\/.*)$/.exec(request.url);
    const body = Buffer.concat(await collect(request));
    counts[name] = (counts[name] ?? 0) + 1;
    FAULTS[name](counts[name], { response, forward: forward.bind(null, target + path, request, body, response) });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => (server.close(), server.closeAllConnections()),
  };
}

/** Forwards a request; `change` changes its JSON body, and `answered` replaces the answer. */
function forward(url, request, body, response, { change, answered } = {}) {
  const { host, connection, "content-length": length, ...headers } = request.headers;
  const changed = change !== undefined && body.length > 0 && "timeout" in JSON.parse(body);
  const content = changed ? JSON.stringify(change(JSON.parse(body))) : body;
  const forwarded = send(url, { method: request.method, headers }, (answer) => {
    if (answered !== undefined) return answer.resume().once("end", answered);
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  forwarded.once("error", () => response.destroy());
  response.once("close", () => forwarded.destroy());
  forwarded.end(content);
}

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}
