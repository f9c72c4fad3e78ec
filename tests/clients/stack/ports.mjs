// Ports for a server that is restarted at the same address: a port of those that Linux gives to connections, from 32768 on,
// may be taken while the server is away. The blocks are those of tests/harness/port.rs.
import { once } from "node:events";
import { createServer } from "node:net";

const FIRST = 10_000;
const BLOCK = 100;
const BLOCKS = 220;

/** Addresses of loopback, at most 100, that nobody listens on, and that no test is given while this process runs. */
export async function freeAddresses(count) {
  const first = await claimBlock();
  const addresses = [];
  for (let port = first; addresses.length < count && port < first + BLOCK; port += 1) {
    const probe = await listen({ host: "127.0.0.1", port });
    // Programs that are no tests use ports, too.
    if (probe === undefined) continue;
    probe.close();
    await once(probe, "close");
    addresses.push(`127.0.0.1:${port}`);
  }
  return addresses;
}

/** The first port of a block, claimed by an abstract name that lives as long as this process. */
async function claimBlock() {
  for (let block = 0; block < BLOCKS; block += 1) {
    const claim = await listen({ path: `\0tempmail-test-ports-${block}` });
    if (claim === undefined) continue;
    claim.unref();
    return FIRST + block * BLOCK;
  }
  throw new Error("no block of ports is left");
}

/** A server that listens, or nothing where somebody else does. */
async function listen(address) {
  const server = createServer().listen(address);
  try {
    await once(server, "listening");
    return server;
  } catch (error) {
    if (error.code === "EADDRINUSE") return undefined;
    throw error;
  }
}
