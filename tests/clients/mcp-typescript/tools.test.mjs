// Every tool with the official client, and mails that give orders.

import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { TEMPMAIL, TEMPMAIL_CLIENT_URL, TEMPMAIL_CLIENT_TOKEN, TEST_SMTP, ORDERS } = process.env;
const WORDS = ['delete_', 'ignore', 'evil.example/', 'im_start', 'Secret', 'bank.example/'];
const CODE = 'From: Shop <no-reply@shop.example>\r\nSubject: Your code\r\n\r\nYour sign-in code is 482913.\r\n';
const LINK =
  'From: Shop <no-reply@shop.example>\r\nSubject: Confirm your address\r\n\r\n' +
  'Please confirm your address:\r\n\r\nhttps://shop.example/confirm?token=abc\r\n';

const TRANSPORTS = {
  stdio: () =>
    new StdioClientTransport({
      command: TEMPMAIL,
      args: ['mcp', '--allow-delete'],
      env: { TEMPMAIL_CLIENT_URL, TEMPMAIL_CLIENT_TOKEN },
    }),
  http: () =>
    new StreamableHTTPClientTransport(new URL(`${TEMPMAIL_CLIENT_URL}/mcp`), {
      requestInit: { headers: { 'x-api-token': TEMPMAIL_CLIENT_TOKEN } },
    }),
};

/** Sends a mail in one SMTP session. */
async function deliver(address, message) {
  const [host, port] = TEST_SMTP.split(':');
  const socket = connect(Number(port), host);
  const replies = createInterface({ input: socket })[Symbol.asyncIterator]();
  const expect = async (first) => {
    for (;;) {
      const { value } = await replies.next();
      if (value[3] !== '-') return assert.equal(value[0], first, value);
    }
  };
  await expect('2');
  const lines = [
    ['EHLO client.example', '2'],
    ['MAIL FROM:<sender@client.example>', '2'],
    [`RCPT TO:<${address}>`, '2'],
    ['DATA', '3'],
  ];
  for (const [line, first] of lines) {
    socket.write(`${line}\r\n`);
    await expect(first);
  }
  socket.write(message);
  socket.write('\r\n.\r\n');
  await expect('2');
  socket.end('QUIT\r\n');
}

function assertFenced(fenced) {
  const [, first, ...rest] = fenced.split('\n');
  const last = rest.pop();
  const [, nonce] = /^<untrusted-mail ([0-9a-f]{32})>$/.exec(first);
  assert.equal(last, `</untrusted-mail ${nonce}>`);
  for (const line of rest) assert.ok(line.startsWith('| ') && !line.includes(nonce), line);
}

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  describe(name, () => {
    const client = new Client({ name: 'tests', version: '1' });
    before(() => client.connect(transport()));
    after(() => client.close());

    /** What a tool says, and what it has fenced. */
    const success = async (tool, args = {}) => {
      const result = await client.callTool({ name: tool, arguments: args });
      assert.ok(!result.isError, JSON.stringify(result));
      const [facts, fenced = ''] = result.content.map((block) => block.text);
      if (result.structuredContent) assert.deepEqual(result.structuredContent, JSON.parse(facts));
      return [JSON.parse(facts), fenced];
    };
    const failure = async (tool, args) => {
      const result = await client.callTool({ name: tool, arguments: args });
      assert.ok(result.isError, JSON.stringify(result));
      return result.content[0].text;
    };

    test('lists the tools', async () => {
      const { tools } = await client.listTools();
      const reading = ['make_address', 'wait_for_mail', 'get_code', 'get_link', 'list_mail', 'read_mail'];
      assert.deepEqual(tools.map((tool) => tool.name), [...reading, 'delete_mail', 'delete_all_mail']);
      for (const tool of tools) {
        assert.equal(tool.annotations.readOnlyHint, reading.includes(tool.name));
        assert.equal(tool.annotations.destructiveHint, !reading.includes(tool.name));
      }
    });

    test('calls every tool', async () => {
      const [{ address, since }] = await success('make_address');
      await deliver(address, CODE);
      const [code, nothing] = await success('get_code', { address, since });
      assert.deepEqual([code.code, nothing], ['482913', '']);
      await deliver(address, LINK);
      const [link] = await success('get_link', { address, since, link_host: 'shop.example' });
      assert.equal(link.url, 'https://shop.example/confirm?token=abc');
      const refused = await failure('get_link', { address, since, link_host: 'bank.example' });
      assert.match(refused, /does not lead to link_host but to shop\.example/);
      const [found, summary] = await success('wait_for_mail', { address, since });
      assertFenced(summary);
      const [, text] = await success('read_mail', { id: found.id });
      assertFenced(text);
      assert.ok(text.includes('| Your sign-in code is 482913.\n'));
      await success('delete_mail', { id: found.id });
      assert.equal((await success('list_mail', { address }))[0].mails.length, 1);
      await success('delete_all_mail', { address });
      assert.deepEqual((await success('list_mail', { address }))[0].mails, []);
    });

    test('reports errors as results', async () => {
      const late = await failure('get_code', { address: 'later@inbox.localhost', timeout_seconds: 0 });
      assert.match(late, /No such mail came in time/);
      assert.match(await failure('get_link', { address: 'a@inbox.localhost', link_hosts: 'x' }), /unknown field/);
      await assert.rejects(client.callTool({ name: 'send_mail', arguments: {} }), /There is no such tool/);
    });

    test('mails that give orders are fenced and change nothing', async () => {
      const files = (await readdir(ORDERS)).filter((file) => file.endsWith('.eml')).sort();
      assert.equal(files.length, 12);
      const [{ address, since }] = await success('make_address');
      for (const file of files) await deliver(address, await readFile(join(ORDERS, file)));
      const [listed, summaries] = await success('list_mail', { address, limit: 50 });
      assertFenced(summaries);
      for (const { id } of listed.mails) {
        const [facts, fenced] = await success('read_mail', { id });
        assertFenced(fenced);
        const said = JSON.stringify({ ...facts, links: [] });
        assert.deepEqual(WORDS.filter((word) => said.includes(word)), []);
      }
      const [code, nothing] = await success('get_code', { address, since });
      assert.deepEqual([code.code, nothing], ['482913', '']);
      const refused = await failure('get_link', { address, since, from: 'bank.example', link_host: 'bank.example' });
      assert.match(refused, /but to evil\.example/);
      assert.equal((await success('list_mail', { address, limit: 50 }))[0].mails.length, 12);
    });
  });
}
